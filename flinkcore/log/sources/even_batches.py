"""Batches of about the size that a reader wants, of columns that may be dictionary-encoded."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa

from flinkcore._internal.arrow.batch_bytes import bytes_of
from flinkcore._internal.arrow.joined_batches import compacted
from flinkcore._internal.arrow.plain_columns import fitting_pieces, plain_column, plain_type


def even_batches(
    batches: Iterator[pa.RecordBatch], batch_rows: int, batch_bytes: int, label: str
) -> Iterator[pa.RecordBatch]:
    """Cut batches that are too long, join those that are much too short, drop those without rows.

    Columns whose dictionaries have no common one are plain where they are joined.
    """
    short: list[pa.RecordBatch] = []
    held = held_bytes = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        is_short = batch.num_rows < batch_rows // 4
        n_bytes = bytes_of(batch) if is_short else 0
        if held and (
            not is_short or held + batch.num_rows > batch_rows or held_bytes + n_bytes > batch_bytes
        ):
            yield from _joined(short, batch_bytes, label)
            short, held, held_bytes = [], 0, 0
        if is_short:
            short.append(batch)
            held, held_bytes = held + batch.num_rows, held_bytes + n_bytes
            continue
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)
    yield from _joined(short, batch_bytes, label)


def _joined(batches: list[pa.RecordBatch], most_bytes: int, label: str) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    table = compacted(pa.Table.from_batches(batches))
    apart = frozenset(name for name in table.column_names if table.column(name).num_chunks > 1)
    if apart:  # their dictionaries have no common one
        pieces = fitting_batches(table.to_batches(), apart, label, most_bytes)
        table = compacted(pa.Table.from_batches([_with_plain(piece, apart) for piece in pieces]))
    return table.to_batches()  # type: ignore[no-any-return]


def _with_plain(batch: pa.RecordBatch, names: frozenset[str]) -> pa.RecordBatch:
    arrays = [
        plain_column(column, plain_type(column.type)) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def fitting_batches(
    batches: Iterable[pa.RecordBatch], decoded: Collection[str], label: str, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Cut batches into pieces whose text fits into plain columns, in which those of `decoded` are to be."""
    for batch in batches:
        there = frozenset(batch.schema.names)
        yield from fitting_pieces(batch, [name for name in decoded if name in there], label, most_bytes)


def stays_encoded(column: pa.Array, name: str, encoded: Sequence[str], plain: pa.DataType) -> bool:
    """Return whether a column is to stay dictionary-encoded, as one with values of its plain type can."""
    return name in encoded and pa.types.is_dictionary(column.type) and column.type.value_type == plain
