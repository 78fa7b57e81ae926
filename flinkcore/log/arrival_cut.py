"""Cuts of a log at times of arrival: which rows a run takes, which the run before it took, and which wait for the next.

A row whose arrival cannot be read goes with the row before it in its file, or at its start with the first one after it,
so that one of two runs over the file takes it. Where rows have no positions, or no arrival of the file can be read,
each run takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import DataError
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.split_rows import SplitRows

Sides = npt.NDArray[np.int8]
"""Sides of rows: -1 where an earlier run took them, 0 where this one takes them, 1 where they wait for the next."""


@dataclass(frozen=True)
class ArrivalCut:
    """The arrivals that a run takes.

    Parameters
    ----------
    since_ms, until_ms : int
        From the one on, up to before the other, in ms since the epoch; the ends of the axis where there is no cut.
    has_positions : bool
        Whether the rows of a split lie in its order.
    """

    since_ms: int
    until_ms: int
    has_positions: bool

    @classmethod
    def of(cls, since_ms: int | None, until_ms: int | None, has_positions: bool) -> ArrivalCut | None:
        """Return the cut of a log, or None if all of it is taken."""
        if since_ms is None and until_ms is None:
            return None
        since = MIN_TIMESTAMP if since_ms is None else since_ms
        return cls(since, MAX_TIMESTAMP if until_ms is None else until_ms, has_positions)

    def sides(self, arrivals_ms: Int64s) -> Sides:
        """Return on which side rows with these arrivals lie."""
        late: Sides = (arrivals_ms >= self.until_ms).astype(np.int8)
        return late - (arrivals_ms < self.since_ms)

    def refuse_return(
        self, row: str, split: object, arrival_ms: int, before_ms: int, chunk: Chunk | None
    ) -> None:
        """Raise the DataError of a row that lies after one from beyond the cut.

        Parameters
        ----------
        row : str
            Name of the row.
        split : object
            Value of its split.
        arrival_ms, before_ms : int
            Arrivals of the row, and of one before it in its split.
        chunk : Chunk or None
            Chunk of the row, if it is known.
        """
        cut_ms = self.until_ms if before_ms >= self.until_ms else self.since_ms
        of_split = "the log" if split is None else f"split {split!r}"
        raise DataError(
            f"{row} arrived at {dated(arrival_ms, ' ms')}, before the cut at {dated(cut_ms, ' ms')}, but lies after a "
            f"row of {of_split} that arrived at {dated(before_ms, ' ms')}: one run over all would take it at the later "
            "time. Cut at an arrival over which the splits do not go back, or give position=, a column such as the "
            "offset: then arrival orders the rows",
            split=split,
            file=None if chunk is None else chunk.path,
        )


class ReadArrivals(NamedTuple):
    """Arrivals of a batch.

    Attributes
    ----------
    arrivals_ms : numpy.ndarray, shape (n,), int64
        Anything where they are not known.
    is_known : numpy.ndarray, shape (n,), bool
        Where they could be read.
    """

    arrivals_ms: Int64s
    is_known: npt.NDArray[np.bool_]

    @property
    def first_ms(self) -> int | None:
        """The first arrival that is known, if there is one."""
        known = np.flatnonzero(self.is_known)
        return int(self.arrivals_ms[known[0]]) if len(known) else None

    @property
    def last_ms(self) -> int | None:
        """The last arrival that is known, if there is one."""
        known = np.flatnonzero(self.is_known)
        return int(self.arrivals_ms[known[-1]]) if len(known) else None


class SideOfCut(NamedTuple):
    """Rows of one split that all lie on one side of a cut, so that they need not be read.

    Attributes
    ----------
    side : int
        As of `Sides`; not 0.
    split : object
        Value of the split.
    rows : int
    least_ms, greatest_ms : int
        The range of their arrivals.
    """

    side: int
    split: Any
    rows: int
    least_ms: int
    greatest_ms: int


@dataclass(frozen=True)
class CutRows:
    """The rows of a batch, by the side of the cut.

    Attributes
    ----------
    cut : ArrivalCut
    chunk : Chunk
    first_row : int
        Number of its first row in the chunk.
    arrivals_ms : numpy.ndarray, shape (n,), int64
    is_known : numpy.ndarray, shape (n,), bool
        Where the arrival could be read; elsewhere it is that of a row nearby.
    sides : numpy.ndarray, shape (n,), int8
    """

    cut: ArrivalCut
    chunk: Chunk
    first_row: int
    arrivals_ms: Int64s
    is_known: npt.NDArray[np.bool_]
    sides: Sides
    number_splits: Callable[[], SplitRows]

    @cached_property
    def splits(self) -> SplitRows:
        """The splits of all rows."""
        return self.number_splits()

    @cached_property
    def taken(self) -> npt.NDArray[np.uint32] | None:
        """Return the numbers of the rows that this run takes, or None for all."""
        return np.flatnonzero(self.sides == 0).astype(np.uint32) if self.sides.any() else None


class ChunkCutter:
    """Cuts the batches of a chunk, one after the other.

    Parameters
    ----------
    cut : ArrivalCut
    chunk : Chunk
    read : callable
        Reads the arrivals of a chunk, batch by batch.
    """

    def __init__(
        self, cut: ArrivalCut, chunk: Chunk, read: Callable[[Chunk], Iterator[ReadArrivals]]
    ) -> None:
        self._cut = cut
        self._chunk = chunk
        self._read = read
        self._last_ms: int | None = None

    def rows(self, first_row: int, arrivals: ReadArrivals, number_splits: Callable[[], SplitRows]) -> CutRows:
        """Return the rows of the next batch; parameters as of `CutRows`."""
        arrivals_ms, is_known = arrivals
        sides = self._cut.sides(arrivals_ms)
        if not is_known.all():
            if self._cut.has_positions and self._last_ms is None:
                self._last_ms = int(arrivals_ms[0]) if is_known[0] else self._nearest_ms()
            if self._cut.has_positions and self._last_ms is not None:
                arrivals_ms = self._filled(arrivals_ms, is_known, self._last_ms)
                sides = self._cut.sides(arrivals_ms)
            else:
                sides[~is_known] = 0
        last_ms = arrivals.last_ms
        if last_ms is not None:
            self._last_ms = last_ms
        return CutRows(self._cut, self._chunk, first_row, arrivals_ms, is_known, sides, number_splits)

    def _nearest_ms(self) -> int | None:
        """Return the arrival of the last row before the chunk in its file that has one, or of the first one after.

        Where the log is cut into chunks depends on the parallelism, and must not decide which run takes a row.
        """
        for chunk in self._chunk.before():
            found = [ms for batch in self._read(chunk) if (ms := batch.last_ms) is not None]
            if found:
                return found[-1]
        chunks = chain([self._chunk], self._chunk.after())
        found_ms = (batch.first_ms for chunk in chunks for batch in self._read(chunk))
        return next((ms for ms in found_ms if ms is not None), None)

    @staticmethod
    def _filled(arrivals_ms: Int64s, is_known: npt.NDArray[np.bool_], last_ms: int) -> Int64s:
        """Return the arrivals, where they are not known that of the row before; before the first row it is given."""
        before = np.maximum.accumulate(np.where(is_known, np.arange(len(arrivals_ms)), -1))
        return np.where(before < 0, last_ms, arrivals_ms[before])
