"""From the columns of a batch to rows and keys as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.column_values import column_values, exact_values, key_values
from flinkcore._internal.arrow.exact_columns import exact_column
from flinkcore._internal.show.tables import shown_fields
from flinkcore._internal.values.row import Row, rows_of_columns
from flinkcore._native.key_groups import key_groups
from flinkcore.errors import SchemaError
from flinkcore.operators.keys.java_keys import JavaKeys

Values = Callable[[pa.Array, str], list[Any]]
"""From a column and its name to its values."""

ALL: Final = 0
"""The key of all rows, where there are no key columns."""


def element_rows(batch: pa.RecordBatch, values: Values = column_values) -> Iterator[Row]:
    """Rows with the values of `column_values`; each is made when it is asked for.

    Raises
    ------
    DataError
        At once, if Python has no value for one of a column's, such as a date beyond the year 9999.
    """
    names = batch.schema.names
    columns = [values(column, name) for name, column in zip(names, batch.columns, strict=True)]
    return rows_of_columns(names, columns)


def element_keys(batch: pa.RecordBatch, columns: list[str], values: Values = key_values) -> list[Any]:
    """Keys as functions get them.

    The value itself, as of `key_values`, for one column, a tuple of the values for several; for none the same for all
    rows.
    """
    if not columns:
        return [ALL] * batch.num_rows
    found = [values(batch.column(name), name) for name in columns]
    return found[0] if len(found) == 1 else list(zip(*found, strict=True))


def exact_keys(keys: pa.RecordBatch, columns: list[str]) -> list[Any]:
    """Keys as of `element_keys`, but with numbers in place of times where Python cannot hold one of a column's."""
    return element_keys(keys, columns, partial(exact_values, as_keys=True))


def exact_rows(batch: pa.RecordBatch) -> list[Row]:
    """Rows as of `element_rows`, but with numbers in place of times where Python cannot hold one of a column's."""
    return list(element_rows(batch, exact_values))


def event_key_groups(
    batch: pa.RecordBatch, columns: Sequence[str], max_parallelism: int
) -> npt.NDArray[np.int32]:
    """Key groups of the rows; without key columns all are in the first. Null keys are refused where rows are read."""
    if not columns:
        return np.zeros(batch.num_rows, np.int32)
    return key_groups(batch.select(list(columns)), max_parallelism, null_keys=True)


def key_columns(keys: Sequence[Any], fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """Columns of keys as `element_keys` gives them.

    Parameters
    ----------
    keys : sequence of object
    fields : sequence of pyarrow.Field
        Fields of the key columns, one or more.

    Raises
    ------
    SchemaError
        If keys are not of these types.
    """
    rows = keys if len(fields) > 1 else [(key,) for key in keys]
    return value_columns(rows, fields, "keys of the checkpoint")


def value_columns(rows: Sequence[Any], fields: Sequence[pa.Field], what: str) -> pa.RecordBatch:
    """Columns of rows as `exact_rows` gives them, or of tuples of such values.

    Parameters
    ----------
    rows : sequence of iterable
    fields : sequence of pyarrow.Field
        One or more.
    what : str
        Name of the values in messages.

    Raises
    ------
    SchemaError
        If the rows have other columns or types.
    """
    try:
        columns = list(zip(*rows, strict=True)) or [()] * len(fields)
        arrays = [
            # A checkpoint may have a number for a time.
            exact_column(values, field.type)
            for values, field in zip(columns, fields, strict=True)
        ]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
        raise SchemaError(
            f"{what} are not those of this job, which are {shown_fields(fields)}: {failure}"
        ) from failure
    return pa.record_batch(arrays, [field.name for field in fields])


def groups_of_keys(
    keys: Sequence[Any], fields: Sequence[pa.Field], max_parallelism: int
) -> npt.NDArray[np.int32]:
    """Key groups of keys as `element_keys` gives them; without key columns, -1 for what is not the key of all rows.

    Raises
    ------
    SchemaError
        As `key_columns`.
    """
    if not fields:
        return np.array([0 if key == ALL else -1 for key in keys], np.int32)
    if any(pa.types.is_null(field.type) for field in fields):  # keys without a type are any Python objects
        return np.array(list(map(JavaKeys(max_parallelism), keys)), np.int32)
    return key_groups(key_columns(keys, fields), max_parallelism)
