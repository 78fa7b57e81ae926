"""From the columns of a batch to rows and keys as Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.key_groups import key_groups
from flinkcore.common.column_values import column_values, key_values
from flinkcore.common.row import Row, rows_of_columns
from flinkcore.errors import DataError

ALL: Final = 0
"""The key of all rows, where there are no key columns."""


def element_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Rows with the values of `column_values`; each is made when it is asked for.

    Raises
    ------
    DataError
        At once, if Python has no value for one of a column's, such as a date beyond the year 9999.
    """
    names = batch.schema.names
    columns = [column_values(column, name) for name, column in zip(names, batch.columns, strict=True)]
    return rows_of_columns(names, columns)


def element_keys(batch: pa.RecordBatch, columns: list[str]) -> list[Any]:
    """Keys as functions get them.

    The value itself, as of `key_values`, for one column, a tuple of the values for several; for none the same for all
    rows.
    """
    if not columns:
        return [ALL] * batch.num_rows
    values = [key_values(batch.column(name), name) for name in columns]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def exact_keys(keys: pa.RecordBatch, columns: list[str]) -> list[Any]:
    """Keys as of `element_keys`, but with numbers in place of times where Python cannot hold one of them."""
    try:
        return element_keys(keys, columns)
    except DataError:
        numbers = [_with_numbers(keys.column(name)) for name in columns]
        return element_keys(pa.record_batch(numbers, columns), columns)


def _with_numbers(column: pa.Array) -> pa.Array:
    """A column with integers in place of times, also in structs."""
    if pa.types.is_struct(column.type):
        children = [_with_numbers(child) for child in column.flatten()]
        names = [field.name for field in column.type]
        return pa.StructArray.from_arrays(children, names, mask=column.is_null())
    if pa.types.is_temporal(column.type):
        return column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
    return column


def event_key_groups(
    batch: pa.RecordBatch, columns: Sequence[str], max_parallelism: int
) -> npt.NDArray[np.int32]:
    """Key groups of the rows; without key columns all are in the first."""
    if not columns:
        return np.zeros(batch.num_rows, np.int32)
    return key_groups(batch.select(list(columns)), max_parallelism)
