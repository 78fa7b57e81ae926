"""Slices of a table, as pieces of an event log that any worker can read alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.arrow.nested_fields import named_columns, nested_fields
from flinkcore._internal.arrow.plain_columns import plain_column, plain_schema, plain_type
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.even_batches import even_batches, fitting_batches, stays_encoded

_NEAR_ROWS: Final = 1 << 12
"""Rows of a table that `Chunk.before` gives at once."""


@dataclass(frozen=True)
class TableChunk(Chunk):
    """A slice of an in-memory table; ``whole``: the table, if `before` and `after` are asked for."""

    table: pa.Table
    whole: pa.Table | None = None

    @property
    def growth(self) -> int:
        is_plain = self.table.schema == plain_schema(self.table.schema)
        return 1 if is_plain else super().growth

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        names = list(self.table.column_names if columns is None else columns)
        nested = nested_fields(plain_schema(self.table.schema), names)
        holding = [nested[name].column if name in nested else name for name in names]
        table = self.table if columns is None else self.table.select(list(dict.fromkeys(holding)))
        batches: Iterator[pa.RecordBatch] = iter(table.to_batches(max_chunksize=batch_rows))
        if nested:
            batches = (named_columns(batch, names, nested) for batch in batches)
        decoded = [name for name in names if name not in encoded]
        even = even_batches(batches, batch_rows, batch_bytes, self.label)
        for batch in fitting_batches(even, decoded, self.label, batch_bytes):
            arrays = [
                column
                if stays_encoded(column, name, encoded, plain_type(column.type))
                else plain_column(column, plain_type(column.type))
                for name, column in zip(names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names)

    @property
    def file_name(self) -> str:
        return "the table"

    def before(self) -> Iterator[Chunk]:
        if self.whole is not None and self.first_row is not None:
            for stop in range(self.first_row, 0, -_NEAR_ROWS):
                start = max(0, stop - _NEAR_ROWS)
                yield replace(self, table=self.whole.slice(start, stop - start))

    def after(self) -> Iterator[Chunk]:
        if self.whole is not None and self.first_row is not None:
            yield replace(self, table=self.whole.slice(self.first_row + self.table.num_rows))

    def __getstate__(self) -> dict[str, Any]:
        # The IPC stream holds the slice only; pyarrow's own pickle takes the whole table's buffers along.
        whole = None if self.whole is None else _to_ipc(self.whole)
        return {**self.__dict__, "table": _to_ipc(self.table), "whole": whole}

    def __setstate__(self, state: dict[str, Any]) -> None:
        whole = None if state["whole"] is None else _from_ipc(state["whole"])
        self.__dict__.update(state, table=_from_ipc(state["table"]), whole=whole)


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
