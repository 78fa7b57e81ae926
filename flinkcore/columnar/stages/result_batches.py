"""From what a function gives to batches with the columns that it was declared to have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from sys import getsizeof
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.arrow.exact_columns import exact_column
from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.errors import UserCodeError
from flinkcore.operators.records.copies import copied
from flinkcore.operators.records.shown_values import cut_off, shown

BATCH_ROWS = 1 << 15

_WEIGHED: Final = 7
"""One value is weighed, and so many are not: to weigh each would take as long as to take it in."""

Subject = int | tuple[Any]
"""Subject of a value: the row of an element among the current ones, or the key, in a tuple, of a timer."""

Describe = Callable[[Subject, int | None], str]
"""From a subject and the timestamp of the value to a text for messages."""


class ResultBatches:
    """Collects the values of one output, and makes batches of them.

    Parameters
    ----------
    output : str
        Named in error messages.
    schema : pyarrow.Schema
        Columns of the values.
    batch_schema : pyarrow.Schema
        Columns of the batches: those, one more where the batches have the records' timestamps, and `emitted_at`.
    describe : callable
        Says what a value was given for.
    when_full : callable
        Called with each batch that a value has filled.
    batch_bytes : int
        A batch is also full when its values take so much memory, about.
    emitted_at : callable or None
        Function that returns when a current value is emitted, for a last column of the batches, or None without one.
    """

    def __init__(
        self,
        output: str,
        schema: pa.Schema,
        batch_schema: pa.Schema,
        describe: Describe,
        when_full: Callable[[pa.RecordBatch], None],
        batch_bytes: int,
        emitted_at: Callable[[], int] | None = None,
    ) -> None:
        self._output = output
        self._schema = schema
        self._names = tuple(schema.names)
        self._batch_schema = batch_schema
        self._emitted_at = emitted_at
        self._has_timestamps = len(batch_schema) > len(schema) + (emitted_at is not None)
        self._has_nested = any(_is_nested(field.type) for field in schema)
        self._is_nested = self._has_nested and len(schema) == 1
        declared = ", ".join(
            f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema
        )
        self._remedy = f"let the function give the declared columns ({cut_off(declared)}), or declare others"
        self._describe = describe
        self._when_full = when_full
        self._batch_bytes = batch_bytes
        self._bytes = 0
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._subjects: list[Subject] = []
        self._emitted: list[int] = []
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0

    def add(self, value: Any, timestamp: int | None, subject: Subject) -> None:
        """Take in a value as it is now: the function may change it afterwards.

        Raises
        ------
        UserCodeError
            As :meth:`take`.
        """
        if type(value) is not tuple or self._has_nested:
            try:
                value = copied(value)
            except RecursionError as failure:
                raise UserCodeError(
                    f"{self._output} got a value from {self._describe(subject, timestamp)} that nests too many values "
                    f"within values; {self._remedy}"
                ) from failure
        # Three lists, and no object that holds the three: each object kept is one more for the garbage collector.
        self._values.append(value)
        self._timestamps.append(timestamp)
        self._subjects.append(subject)
        if self._emitted_at is not None:
            self._emitted.append(self._emitted_at())
        if len(self._values) & _WEIGHED == 1:
            self._bytes += (_WEIGHED + 1) * _nbytes(value)
        if len(self._values) >= BATCH_ROWS or self._bytes >= self._batch_bytes:
            self._convert()
            self._when_full(self._batches[-1])

    def take(self) -> list[pa.RecordBatch]:
        """Return everything that was added since the last time; to be called before other elements are taken.

        Raises
        ------
        UserCodeError
            If a value does not fit the schema; names the column, the key, and the element or the timer.
        """
        if self._values:
            self._convert()
        batches, self._batches = self._batches, []
        return batches

    def _convert(self) -> None:
        self.rows += len(self._values)
        rows = [self._as_tuple(value, place) for place, value in enumerate(self._values)]
        columns = [
            self._column(field, values)
            for field, values in zip(self._schema, zip(*rows, strict=True), strict=True)
        ]
        if self._has_timestamps:
            columns.append(self._times(self._timestamps))
        if self._emitted_at is not None:
            columns.append(self._times(self._emitted))
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=self._batch_schema))
        self._values, self._timestamps, self._subjects, self._emitted = [], [], [], []
        self._bytes = 0

    def _times(self, times: Iterable[int | None]) -> pa.Array:
        known = [None if time == MIN_TIMESTAMP else time for time in times]
        return pa.array(known, pa.int64()).cast(self._batch_schema.field(-1).type)

    def _as_tuple(self, value: Any, place: int) -> tuple[Any, ...]:
        if type(value) is tuple and not self._is_nested:
            values = value
        elif isinstance(value, Row):
            values = self._of_row(value, place)
        elif self._is_nested:
            return (value,)
        elif isinstance(value, tuple | list):
            values = tuple(value)
        elif isinstance(value, dict):
            values = self._by_name(value, place)
        elif len(self._names) == 1:
            return (value,)
        else:
            raise self._error(
                "neither a Row nor a tuple, list or dict (a row that is returned by itself is taken for a list of its "
                "values: return a list of results, or yield)",
                place,
            )
        if len(values) != len(self._names):
            raise self._error(
                f"{len(values)} values for the {len(self._names)} columns {', '.join(self._names)}", place
            )
        return values

    def _of_row(self, row: Row, place: int) -> tuple[Any, ...]:
        if row.get_row_kind() is not RowKind.INSERT:
            raise self._error(
                f"a row of the kind {row.get_row_kind()}, but results are insertions only", place
            )
        if row._fields is None or row._fields == self._names:
            return row._values
        return self._by_name(row.as_dict(), place)

    def _by_name(self, value: dict[str, Any], place: int) -> tuple[Any, ...]:
        names = self._names
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
                place,
            )
        return tuple(value[name] for name in names)

    def _column(self, field: pa.Field, values: tuple[Any, ...]) -> pa.Array:
        try:
            column = exact_column(values, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
            raise self._misfit(field, values) from failure
        if column.null_count and not field.nullable:
            place = column.is_null().index(True).as_py()
            raise self._error(f"None in the column {field.name!r}, which cannot be null", place)
        return column

    def _misfit(self, field: pa.Field, values: tuple[Any, ...]) -> UserCodeError:
        for place, value in enumerate(values):
            try:
                exact_column((value,), field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
                return self._error(
                    f"{shown(value)} ({type(value).__qualname__}) in the column {field.name!r}, which is {field.type}: "
                    f"{failure}",
                    place,
                )
        return UserCodeError(
            f"{self._output}: values of the column {field.name!r} do not make a {field.type} column"
        )

    def _error(self, problem: str, place: int) -> UserCodeError:
        subject = self._describe(self._subjects[place], self._timestamps[place])
        return UserCodeError(
            f"{self._output} got {shown(self._values[place])} from {subject}: {problem}; {self._remedy}"
        )


def _nbytes(value: Any) -> int:
    """Return about how much memory a value takes: of nested ones, no more than two levels."""
    fields = value._values if isinstance(value, Row) else value.values() if isinstance(value, dict) else value
    if not isinstance(fields, tuple | list) and fields is value:
        return getsizeof(value)
    return sum(
        sum(map(getsizeof, each)) if isinstance(each, list | tuple) else getsizeof(each) for each in fields
    )


def _is_nested(kind: pa.DataType) -> bool:
    # Encoded runs are nested to Arrow only.
    return bool(pa.types.is_nested(kind)) and not pa.types.is_run_end_encoded(kind)
