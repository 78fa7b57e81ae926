"""From the columns of a batch to rows and keys as Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.key_groups import key_groups
from flinkcore.common.row import Row, rows_of_columns
from flinkcore.errors import DataError

ALL: Final = 0
"""The key of all rows, where there are no key columns."""


def element_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Rows with the values that Arrow gives in Python; each is made when it is asked for.

    Raises
    ------
    DataError
        At once, if Python has no value for one of a column's, such as a date beyond the year 9999.
    """
    names = batch.schema.names
    columns = [_values(column, name) for name, column in zip(names, batch.columns, strict=True)]
    return rows_of_columns(names, columns)


def _values(column: pa.Array, name: str) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as failure:
        raise DataError(_without_value(column, name, failure)) from failure
    return values


def _without_value(column: pa.Array, name: str, failure: Exception) -> str:
    at = 0
    for at in range(len(column)):
        try:
            column[at].as_py()
        except (OverflowError, ValueError):
            break
    number = getattr(column[at], "value", None)  # Arrow shows times as text only if Python can hold them
    return (
        f"the column {name!r} ({column.type}) holds {'a value' if number is None else number} that no value in Python "
        f"stands for ({failure}): filter such rows out, leave the column out by select(...), or cast it in the log, to "
        "int64 or to a coarser unit"
    )


def element_keys(batch: pa.RecordBatch, columns: list[str]) -> list[Any]:
    """Keys that are equal in Python exactly if they are in Flink.

    The value itself for one column, a tuple of the values for several; for none the same for all rows. A timestamp
    with a time zone is in UTC: in another zone, two moments of the hour that comes twice in autumn are equal in
    Python.
    """
    if not columns:
        return [ALL] * batch.num_rows
    values = [_key_values(batch.column(name), name) for name in columns]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def event_key_groups(
    batch: pa.RecordBatch, columns: Sequence[str], max_parallelism: int
) -> npt.NDArray[np.int32]:
    """Key groups of the rows; without key columns all are in the first."""
    if not columns:
        return np.zeros(batch.num_rows, np.int32)
    return key_groups(batch.select(list(columns)), max_parallelism)


class NegativeZero(float):
    """The key -0.0, which is another one than 0.0, as for Java's Double."""

    def __new__(cls) -> NegativeZero:
        """Return the float -0.0."""
        return super().__new__(cls, -0.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NegativeZero)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, NegativeZero)

    def __hash__(self) -> int:
        return hash(NegativeZero)

    def __reduce__(self) -> tuple[Any, ...]:
        return NegativeZero, ()


_NAN = float("nan")
_NEGATIVE_ZERO = NegativeZero()


def _key_values(column: pa.Array, name: str) -> list[Any]:
    types = pa.types
    if types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    values = _values(column, name)
    if not types.is_floating(column.type):
        return values
    numbers = np.array([np.nan if value is None else value for value in values])
    for row in np.flatnonzero((numbers != numbers) | ((numbers == 0) & np.signbit(numbers))).tolist():
        if values[row] is not None:
            values[row] = _NEGATIVE_ZERO if values[row] == 0 else _NAN
    return values
