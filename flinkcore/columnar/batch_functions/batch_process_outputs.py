"""From what a function over batches gives to batches with the columns that it was declared to have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.batch_bytes import gathered
from flinkcore._internal.arrow.joined_batches import joined
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.columnar.batch_functions.given_columns import GivenColumns
from flinkcore.common import MIN_TIMESTAMP, OutputTag
from flinkcore.datastream.functions import RowResults
from flinkcore.errors import DataError, SchemaError
from flinkcore.operators.records.shown_values import shown

HELD_ROWS = 1 << 15

CALL_BYTES = 1 << 31
"""So much of one call is held; a call that never ends gives more."""


class BatchProcessOutputs:
    """Takes results and side outputs as batches.

    Parameters
    ----------
    output_type : pyarrow.Schema
        Schema of the main output.
    tags : sequence of OutputTag
        Side outputs that are wanted, each with its schema.
    place : callable, optional
        Called with the rows of elements or timers that results are for, as they come, if places are required.
    batch_bytes : int
        Most bytes of a batch, unless it has only one row.
    emitted_at : pyarrow.Field, optional
        Last column of all outputs, for the time at which each result was emitted, or None.

    Attributes
    ----------
    emitted_ms : numpy.ndarray of int64, shape (n_rows,)
        When results are emitted that are for each of the elements or timers of the call; -2**63: not within the log.
    """

    emitted_ms: Int64s

    def __init__(
        self,
        output_type: pa.Schema,
        tags: Sequence[OutputTag],
        place: Callable[[Int64s], None] | None = None,
        emitted_at: pa.Field | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._place = place
        self._emitted_at = emitted_at
        self._batch_bytes = batch_bytes
        self._schemas: dict[OutputTag | None, pa.Schema] = {None: output_type}
        self._schemas.update({tag: tag.type_info for tag in tags})
        self._held: dict[OutputTag | None, list[pa.RecordBatch]] = {tag: [] for tag in self._schemas}
        self._rows: dict[OutputTag | None, int] = dict.fromkeys(self._schemas, 0)
        self._held_rows = 0
        self._held_bytes = 0
        self._dropped = 0

    @property
    def are_many(self) -> bool:
        """Return whether so much is held that it should be taken."""
        return self._held_rows >= HELD_ROWS or self._held_bytes >= self._batch_bytes

    def add_all(self, given: Any, n_rows: int) -> None:
        """Take what a call of the function for so many elements or timers yielded or returned.

        Raises
        ------
        SchemaError
            If it is not a batch, or has other columns or types than declared.
        DataError
            If columns are not equally long, there is a null where none may be, or the call gives too much.
        """
        before = self._held_bytes
        for result in _results(given):
            tag, results = result if _is_of_side_output(result) else (None, result)
            self._add(tag, results, n_rows)
            if self._held_bytes - before > CALL_BYTES:
                raise DataError(
                    f"one call gave more than {CALL_BYTES >> 20:,} MiB, and has not ended: what it gives is held until "
                    "it has. Let it end, or give the rest at a timer"
                )

    def _add(self, tag: OutputTag | None, results: Any, n_rows: int) -> None:
        of_rows = results if isinstance(results, RowResults) else None
        columns = GivenColumns(results if of_rows is None else of_rows.batch, _name(tag))
        schema = self._schemas.get(tag)
        if schema is None:
            self._dropped += columns.n_rows
            return
        batch = columns.batch(schema)
        if of_rows is None:
            self._refuse_without_rows(tag)
        else:
            rows = _checked_rows(of_rows, batch.num_rows, n_rows)
            if self._place is not None and tag is None and len(rows):
                self._place(rows)
            if self._emitted_at is not None:
                batch = _with_times(batch, self._emitted_at, self.emitted_ms[rows])
        if batch.num_rows:
            self._held[tag].append(batch)
            self._rows[tag] += batch.num_rows
            self._held_rows += batch.num_rows
            self._held_bytes += batch.nbytes

    def _refuse_without_rows(self, tag: OutputTag | None) -> None:
        if self._emitted_at is not None:
            why = f"with_emitted_at({self._emitted_at.name!r}) says of each when it was emitted"
        elif self._place is not None and tag is None:
            why = "another operator takes them in order"
        else:
            return
        raise SchemaError(
            f"it gave results that do not say which elements or timers they are for, and {why}. Yield "
            "elements.results(batch, rows) or timers.results(batch, rows)"
        )

    def take(self) -> Iterator[tuple[OutputTag | None, pa.RecordBatch]]:
        """Yield what has come since the last time, by side output; results under None."""
        self._held_rows = self._held_bytes = 0
        for tag, batches in self._held.items():
            if batches:
                self._held[tag] = []
                for together in gathered(batches, self._batch_bytes):
                    yield tag, joined(together)

    def counts(self) -> dict[str, int]:
        """Rows by what became of them."""
        side = sum(rows for tag, rows in self._rows.items() if tag is not None)
        return {"results": self._rows[None], "side_results": side, "dropped_side_results": self._dropped}


def _results(given: Any) -> Iterable[Any]:
    if isinstance(given, pa.RecordBatch | pa.Table | Mapping):
        return [given]
    if isinstance(given, RowResults) or _is_of_side_output(given):
        return [given]
    if isinstance(given, str | bytes | pa.Array | pa.ChunkedArray | np.ndarray) or not hasattr(
        given, "__iter__"
    ):
        raise SchemaError(f"it gave {shown(given)}. Yield batches, or return one or a list of them, or None")
    results: Iterable[Any] = given
    return results


def _is_of_side_output(given: Any) -> bool:
    return (
        isinstance(given, tuple)
        and not isinstance(given, RowResults)
        and len(given) == 2
        and isinstance(given[0], OutputTag)
    )


def _checked_rows(results: RowResults, given: int, n_rows: int) -> Int64s:
    """Return the rows, of so many elements or timers, that so many results are for."""
    rows = np.arange(given) if results.rows is None else np.asarray(results.rows)
    if rows.size == 0:
        rows = np.empty(0, np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise SchemaError(
            f"it gave {shown(results.rows)} as the rows that results are for. Give their numbers"
        )
    if len(rows) != given:
        raise DataError(f"it gave {given:,} results, and {len(rows):,} rows that they are for")
    if given and not 0 <= rows.min() <= rows.max() < n_rows:
        raise DataError(
            f"it gave results for the rows {rows.min():,} to {rows.max():,}, but the batch has {n_rows:,}"
        )
    return rows.astype(np.int64)


def _with_times(batch: pa.RecordBatch, field: pa.Field, times_ms: Int64s) -> pa.RecordBatch:
    times = pa.array(times_ms, mask=times_ms == MIN_TIMESTAMP).cast(field.type)
    return pa.RecordBatch.from_arrays([*batch.columns, times], schema=batch.schema.append(field))


def _name(tag: OutputTag | None) -> str:
    return "the output" if tag is None else f"the side output {tag.tag_id!r}"
