"""Times of the chunks of a log, held until all have come."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.event_log import packed_integers, unpacked_integers
from flinkcore.errors import DataError, SchemaError
from flinkcore.time_plane.chunk_times import ChunkTimes


@dataclass(frozen=True, eq=False)
class TakenChunk:
    """Times of a chunk, of which the log may have many with many splits: columns of splits are packed.

    Attributes
    ----------
    splits : int32 array (n_splits,)
        Numbers of its splits.
    names : tuple of str
        Names of its columns: of the parts of `ChunkTimes`, and within them.
    packed : uint8 array
        The columns, one after the other.
    index, rows_read, floors, warnings, checksum
        As of `ChunkTimes`.
    """

    splits: Int32s
    names: tuple[str, ...]
    packed: npt.NDArray[np.uint8]
    index: int
    rows_read: int
    floors: dict[str, Int64s]
    warnings: list[str]
    checksum: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, times: ChunkTimes, numbers: dict[Any, int], of_cut: Any) -> "TakenChunk":
        """Take in a chunk; its splits get numbers, and must be of the type of a split of the cut, if there is one."""
        _refuse_other_type(of_cut, times.split_values)
        columns = {"rows": times.rows, "bases": times.bases}
        for part in ("times", "cut"):
            columns |= {f"{part}.{name}": column for name, column in getattr(times, part).items()}
        splits = np.array([numbers.setdefault(value, len(numbers)) for value in times.split_values], np.int32)
        return cls(
            splits,
            tuple(columns),
            packed_integers(np.concatenate([*columns.values()])),
            times.index,
            times.rows_read,
            {name: column.copy() for name, column in times.floors.items()},
            times.warnings,
            times.checksum.copy(),
        )

    def times(self) -> ChunkTimes:
        """Return the times, without the values of the splits."""
        columns = np.empty((len(self.names), len(self.splits)), np.int64)
        unpacked_integers(self.packed, columns.reshape(-1))
        parts: dict[str, dict[str, Int64s]] = {"times": {}, "cut": {}}
        found = dict(zip(self.names, columns, strict=True))
        rows, bases = found.pop("rows"), found.pop("bases")
        for name, column in found.items():
            part, _, member = name.partition(".")
            parts[part][member] = column
        return ChunkTimes(
            self.index,
            [],
            rows,
            bases,
            times=parts["times"],
            floors=self.floors,
            rows_read=self.rows_read,
            cut=parts["cut"],
        )


def tick_floors(times: dict[str, Int64s], arrivals_before: Int64s, interval_ms: int) -> Int64s | None:
    """Return the floors of a chunk, if it needs some, as of `ChunkSplits`."""
    goes_back = (times["events"] > 0) & (times["first_arrival_ms"] < arrivals_before)
    if interval_ms == 0 or not goes_back.any():
        return None
    floors = np.full(len(goes_back), MIN_TIMESTAMP)
    floors[goes_back] = -arrivals_before[goes_back] // interval_ms * -interval_ms
    return floors


def in_log_order(chunks: Iterable[TakenChunk]) -> list[TakenChunk]:
    ordered = sorted(chunks, key=attrgetter("index"))
    for before, chunk in pairwise(ordered):
        if before.index == chunk.index:
            raise DataError(f"chunk {chunk.index} comes twice; combine the times of each chunk once")
    return ordered


def _refuse_other_type(of_cut: Any, values: Iterable[Any]) -> None:
    """Refuse splits of another type than one of a cut, of which some might be equal: True is 1."""
    if of_cut is None:
        return
    for value in values:
        if value is not None and type(value) is not type(of_cut):
            raise SchemaError(
                f"the splits of the log have values of type {type(value).__name__}, such as {value!r}, and those of "
                f"the checkpoint of type {type(of_cut).__name__}, such as {of_cut!r}: resume the job with a split= as "
                "it had"
            )


def in_split_order(values: Iterable[Any]) -> list[Any]:
    # Python orders strings as their UTF-8 bytes.
    try:
        return sorted(values, key=lambda value: (value is not None, value))
    except TypeError as error:
        raise SchemaError(f"the split column has values of different types: {error}") from error
