"""Aggregates over frames of rows, of one partition: what OVER and aggregates without windows run, keep and restore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.aggregates import Accumulators
from flinkcore._native.frames import Frames
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns, restore_accumulators
from flinkcore.errors import SchemaError

FRAMES: Final = "frames"
"""Name of the table of frames in the state of an operator."""

GROWTH_SHARE: Final = 8
"""Memory is counted again once as many rows have come as an eighth of the entries that there are."""

KeyIds = npt.NDArray[np.uint32]


class FrameAggregates:
    """Aggregates of keys over their frames.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns of the rows.
    specs : sequence of tuple
        Aggregates as `Accumulators` take them.
    rows, range_ms, peers
        As of `Frames`.
    retracts : bool
        Whether any row may be taken back; of frames that are all rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        specs: Sequence[Any],
        *,
        rows: int | None = None,
        range_ms: int | None = None,
        peers: bool = False,
        retracts: bool = False,
    ) -> None:
        slides = rows is not None or range_ms is not None
        self._accumulators = Accumulators(schema, specs, slides=slides, runs=not slides, retracts=retracts)
        self._frames = Frames(self._accumulators, rows=rows, range_ms=range_ms, peers=peers)
        names = {name for spec in specs for name in spec[1:3] if name is not None}
        self._columns = [name for name in schema.names if name in names]
        self._bytes = self._rows_since_bytes = 0

    @property
    def columns(self) -> list[str]:
        """Names of the columns that the aggregates read."""
        return self._columns

    @property
    def types(self) -> list[pa.DataType]:
        """Types of the results; called before the first row."""
        return [pa.array(column).type for column in self._accumulators.take()]

    @property
    def can_retract(self) -> bool:
        """Return whether rows can be taken back."""
        return self._frames.can_retract

    def process(
        self,
        rows: pa.RecordBatch,
        key_ids: KeyIds,
        times: Int64s | None = None,
        *,
        retracts: npt.NDArray[np.uint8] | None = None,
        cleared: tuple[Int64s, KeyIds] | None = None,
        emits: bool = True,
    ) -> npt.NDArray[np.uint32]:
        """Take in rows; parameters and result as of `Frames.process`."""
        before, keys = (None, None) if cleared is None else cleared
        self._rows_since_bytes += len(key_ids)
        # Without columns a batch would not know how many rows it has.
        columns = rows.select(self._columns or rows.schema.names[:1])
        return self._frames.process(
            columns,
            key_ids,
            times,
            retracts=retracts,
            cleared_before=before,
            cleared_keys=keys,
            emits=emits,
        )

    def clear(self, key_ids: KeyIds) -> None:
        """Forget keys."""
        self._frames.clear(key_ids)

    def emit(self, key_ids: KeyIds) -> None:
        """Append the present results of keys."""
        self._frames.emit(key_ids)

    def rows_of(self, key_ids: KeyIds) -> Int64s:
        """Return how many rows of keys have come and not been taken back."""
        return self._frames.rows_of(key_ids)

    def previous(self, key_ids: KeyIds) -> Int64s:
        """Return the place of the row before each row of the same key, or -1."""
        return self._frames.previous(key_ids)

    def take(self) -> list[pa.Array]:
        """Return the results that wait, a column for each aggregate.

        Raises
        ------
        DataError
            If a decimal has more digits than its type.
        """
        return [pa.array(column) for column in self._accumulators.take("the rows of a key")]

    def memory_bytes(self) -> int:
        """Bytes of frames and accumulators, counted now and then."""
        if self._bytes == 0 or self._rows_since_bytes * GROWTH_SHARE >= len(self._accumulators):
            self._bytes = self._frames.memory_bytes() + self._accumulators.memory_bytes()
            self._rows_since_bytes = 0
        return self._bytes

    def snapshot(self) -> Mapping[str, Any]:
        """Return the frames of all keys, by id: `key`, `part`, `time`, and what the aggregates hold, as NUMBER_PART."""
        rows = self._frames.snapshot()
        return {
            "key": rows.key_ids.astype(np.int64),
            "part": rows.parts,
            "time": rows.times,
            **columns_of_frames(accumulator_columns(self._accumulators, rows.entries)),
        }

    def restore(self, keys: Int64s, columns: pa.RecordBatch) -> None:
        """Take rows of a table of `snapshot`, before the first event.

        Parameters
        ----------
        keys : int64 array (n,)
            Ids of now.
        columns : pyarrow.RecordBatch
            The other columns.

        Raises
        ------
        SchemaError
            If they do not fit these aggregates.
        """
        parts, times = columns.column("part"), columns.column("time")
        entries = self._frames.restore(keys.astype(np.uint32), parts.to_numpy(), times.to_numpy())
        held = held_by_frames(columns.drop_columns(["part", "time"]))
        if len(np.unique(entries)) != len(entries):
            raise SchemaError("the frames of a checkpoint have a row twice")
        restore_accumulators(self._accumulators, entries, np.zeros(len(entries), np.uint8), held)

    def _check(self) -> None:
        """Assert their invariants."""
        self._frames._check()
        self._accumulators._check()


def columns_of_frames(held: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return what accumulators hold, by columns of `accumulator_columns`, as columns of a table of frames."""
    # Aggregates that slide know themselves whether they have been touched.
    return {name.replace(".", "_", 1): column for name, column in held.items() if name != "touched"}


def held_by_frames(columns: pa.RecordBatch) -> pa.RecordBatch:
    """Return such columns of a table of frames as those of `accumulator_columns`."""
    return columns.rename_columns([name.replace("_", ".", 1) for name in columns.schema.names])
