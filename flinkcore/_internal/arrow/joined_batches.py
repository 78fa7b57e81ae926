"""Batches empty, joined and taken, whatever their types: pyarrow lacks empty unions, and `take` of views."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from flinkcore.errors import DataError


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table without rows."""
    return pa.Table.from_batches([empty_batch(schema)])


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches of one schema, at least one, one batch after the other.

    Raises
    ------
    DataError
        If a column has more text, or elements of lists, than its type can count.
    """
    table = pa.Table.from_batches(batches)
    if len(batches) == 1 or table.num_rows == 0:
        return batches[0]
    if not table.num_columns:
        (batch,) = table.combine_chunks().to_batches()
        return batch
    return _of_columns(table, lambda column: pa.concat_arrays(column.chunks))


def compacted(table: pa.Table) -> pa.Table:
    """Return a table with the chunks of each column in one, but for columns whose dictionaries have no common one.

    Arrow makes none where it would need wider codes, where nulls are among the values, and of nested values.
    """
    try:
        return table.combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if table.num_columns == 1:
            return table
        columns = [compacted(table.select([number])) for number in range(table.num_columns)]
    return pa.Table.from_arrays([column.column(0) for column in columns], schema=table.schema)


def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch in memory of their own: that of the batch may change, or be that of many more rows."""
    columns = [pa.concat_arrays([column]) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def taken(batch: pa.RecordBatch, rows: npt.NDArray[Any]) -> pa.RecordBatch:
    """Return the given rows of a batch, in the given order.

    Raises
    ------
    DataError
        As of `joined`.
    """
    numbers = pa.array(rows)
    try:
        return batch.take(numbers)
    except pa.ArrowNotImplementedError:
        return joined([batch.slice(row, 1) for row in rows.tolist()] or [batch.slice(0, 0)])
    except pa.ArrowInvalid:
        return _of_columns(batch, lambda column: column.take(numbers))


def too_long(name: str, kind: pa.DataType) -> DataError:
    """Return the error of a column of rows that come together, which are longer than its type can count."""
    return DataError(
        f"the column {name!r} of rows that come together has more than a column of type {kind} holds, "
        "2,147,483,647 bytes of text or elements of lists: let fewer rows come together, or cast it to "
        f"{_large(kind)} where it is read or made",
        column=name,
    )


def _of_columns(rows: pa.Table | pa.RecordBatch, made: Callable[[Any], pa.Array]) -> pa.RecordBatch:
    columns = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            columns.append(made(column))
        except pa.ArrowInvalid as failure:
            raise too_long(name, column.type) from failure
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _large(kind: pa.DataType) -> str:
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return f"large_{kind}"
    return "a type with large_string, large_binary or large_list in it"
