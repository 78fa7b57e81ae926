"""From what a function gives to batches with the columns that it was declared to have."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore.common import MIN_TIMESTAMP
from flinkcore.common.row import Row
from flinkcore.common.row_kind import RowKind
from flinkcore.errors import UserCodeError
from flinkcore.runtime.operators.function_results import shown

BATCH_ROWS = 1 << 15

Result = tuple[Any, int | None, Any, Row | None]
"""A value, its timestamp in ms, the key, and the element that it was made for; None: for a timer."""


class RowResults:
    """Collects the values of one output, and makes batches of them.

    Parameters
    ----------
    output : str
        Named in error messages.
    schema : pyarrow.Schema
        Columns of the values.
    batch_schema : pyarrow.Schema
        Columns of the batches: those, and one more where the batches have the records' timestamps.
    """

    def __init__(self, output: str, schema: pa.Schema, batch_schema: pa.Schema) -> None:
        self._output = output
        self._schema = schema
        self._batch_schema = batch_schema
        self._has_timestamps = len(batch_schema) > len(schema)
        self._is_nested = len(schema) == 1 and pa.types.is_nested(schema.field(0).type)
        self._waiting: list[Result] = []
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0

    def add(self, value: Any, timestamp: int | None, key: Any, element: Row | None) -> None:
        """Take in a value.

        Raises
        ------
        UserCodeError
            As :meth:`take`.
        """
        self._waiting.append((value, timestamp, key, element))
        if len(self._waiting) >= BATCH_ROWS:
            self._convert()

    def take(self) -> list[pa.RecordBatch]:
        """Give everything that was added since the last time.

        Raises
        ------
        UserCodeError
            If a value does not fit the schema; names the column, the key, and the element or the timer.
        """
        if self._waiting:
            self._convert()
        batches, self._batches = self._batches, []
        return batches

    def _convert(self) -> None:
        results, self._waiting = self._waiting, []
        self.rows += len(results)
        rows = [self._as_tuple(result) for result in results]
        columns = [
            self._column(field, values, results)
            for field, values in zip(self._schema, zip(*rows, strict=True), strict=True)
        ]
        if self._has_timestamps:
            times = [None if time == MIN_TIMESTAMP else time for _, time, _, _ in results]
            columns.append(pa.array(times, pa.int64()).cast(self._batch_schema.field(-1).type))
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=self._batch_schema))

    def _as_tuple(self, result: Result) -> tuple[Any, ...]:
        value = result[0]
        names = self._schema.names
        if isinstance(value, Row):
            if value.get_row_kind() is not RowKind.INSERT:
                raise self._error(
                    f"a row of the kind {value.get_row_kind()}, but results are insertions only", result
                )
            if value._fields is None or value._fields == tuple(names):
                values = value._values
            else:
                values = self._by_name(value.as_dict(), result)
        elif self._is_nested:
            return (value,)
        elif isinstance(value, tuple):
            values = value
        elif isinstance(value, list):
            values = tuple(value)
        elif isinstance(value, dict):
            values = self._by_name(value, result)
        elif len(names) == 1:
            return (value,)
        else:
            raise self._error("neither a Row nor a tuple, list or dict", result)
        if len(values) != len(names):
            raise self._error(f"{len(values)} values for the {len(names)} columns {', '.join(names)}", result)
        return values

    def _by_name(self, value: dict[str, Any], result: Result) -> tuple[Any, ...]:
        names = self._schema.names
        if value.keys() != set(names):
            missing = [name for name in names if name not in value]
            unknown = [str(name) for name in value if name not in names]
            raise self._error(
                "; ".join(
                    f"{what} {', '.join(found)}"
                    for what, found in (
                        ("without the columns", missing),
                        ("with the unknown columns", unknown),
                    )
                    if found
                ),
                result,
            )
        return tuple(value[name] for name in names)

    def _column(self, field: pa.Field, values: tuple[Any, ...], results: list[Result]) -> pa.Array:
        try:
            column = _array(values, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
            raise self._misfit(field, values, results) from failure
        if column.null_count and not field.nullable:
            place = column.is_null().index(True).as_py()
            raise self._error(f"None in the column {field.name!r}, which cannot be null", results[place])
        return column

    def _misfit(self, field: pa.Field, values: tuple[Any, ...], results: list[Result]) -> UserCodeError:
        for value, result in zip(values, results, strict=True):
            try:
                _array((value,), field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
                return self._error(
                    f"{shown(value)} ({type(value).__qualname__}) in the column {field.name!r}, which is {field.type}: "
                    f"{failure}",
                    result,
                )
        return UserCodeError(
            f"{self._output}: values of the column {field.name!r} do not make a {field.type} column"
        )

    def _error(self, problem: str, result: Result) -> UserCodeError:
        value, timestamp, key, element = result
        if element is not None:
            subject = f"the element {shown(element)} with the timestamp {timestamp}"
        else:
            subject = "a processing-time timer" if timestamp is None else f"the timer at {timestamp} ms"
        return UserCodeError(
            f"{self._output} got {shown(value)} from {subject} of the key {shown(key)}: {problem}"
        )


def _array(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    values = list(values)
    _refuse_fractions(values, kind)
    return pa.array(values, kind)


def _refuse_fractions(values: Collection[Any], kind: pa.DataType) -> None:
    """Raise TypeError if floats are to become integers: Arrow would cut off what is behind the point."""
    types = pa.types
    if types.is_integer(kind):
        if any(issubclass(found, float | np.floating) for found in set(map(type, values))):
            raise TypeError("a float is no integer")
    elif types.is_map(kind):
        pairs = [pair for value in values if value is not None for pair in dict(value).items()]
        _refuse_fractions([key for key, _ in pairs], kind.key_type)
        _refuse_fractions([item for _, item in pairs], kind.item_type)
    elif types.is_struct(kind):
        for field in kind:
            inner = [value[field.name] for value in values if isinstance(value, dict) and field.name in value]
            _refuse_fractions(inner, field.type)
    elif types.is_nested(kind) and not types.is_union(kind):
        _refuse_fractions([item for value in values if value is not None for item in value], kind.value_type)
