"""Aggregate functions of the user: their accumulators, their arguments, and their results over windows."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.errors import DataError
from flinkcore.sql.expressions.evaluation import NOT_OF_TYPE, truth
from flinkcore.sql.expressions.python_values import arrow_values, python_values
from flinkcore.sql.expressions.user_functions import OpenedFunction, UserFunction
from flinkcore.sql.nodes.panes import Panes
from flinkcore.sql.types.logical_types import LogicalType

_PANE: Final = "pane"
_UNCHANGING: Final = (type(None), bool, int, float, str, bytes, Decimal, date, time, timedelta)
"""Types of results that an accumulator cannot share with them."""


@dataclass(frozen=True, eq=False)
class CalledAggregate:
    """An aggregate function over arguments of a plan; an `AccumulatorFunction`.

    Attributes
    ----------
    function : UserFunction
    argument_types : tuple of LogicalType
    result_type : LogicalType
    """

    function: UserFunction
    argument_types: tuple[LogicalType, ...]
    result_type: LogicalType

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def type(self) -> pa.DataType:
        return self.result_type.with_nullable(True).arrow

    def create(self) -> Any:
        return self._called("create_accumulator")

    def arguments(self, fields: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
        """Return the arguments of rows, as `accumulate` takes them."""
        values = (python_values(field, kind) for field, kind in zip(fields, self.argument_types, strict=True))
        return list(zip(*values, strict=True))

    def accumulate(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int = 0) -> None:
        self._called("accumulate", accumulator, *arguments)

    def retract(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int = 0) -> None:
        self._called("retract", accumulator, *arguments)

    def merge(self, accumulator: Any, others: Sequence[Any]) -> None:
        """Take other accumulators into one."""
        self._called("merge", accumulator, others)

    def value(self, accumulator: Any) -> Any:
        found = self._called("get_value", accumulator)
        return found if isinstance(found, _UNCHANGING) else copy.deepcopy(found)

    def _called(self, method: str, *given: Any) -> Any:
        assert isinstance(self.function.function, OpenedFunction)
        try:
            return getattr(self.function.function.opened(), method)(*given)
        except Exception as error:  # whatever the user's function raises
            raise self._failure(method, given, error) from error

    def _failure(self, method: str, given: tuple[Any, ...], error: Exception) -> DataError:
        shown = ", ".join(f"{each!r:.200}" for each in given)
        return DataError(f"the function {self.name}, {method}({shown}): {error!r}")

    def column(self, values: Sequence[Any]) -> pa.Array:
        try:
            return pa.array(arrow_values(values, self.result_type), self.type)
        except NOT_OF_TYPE:
            for value in values:
                try:
                    pa.array(arrow_values([value], self.result_type), self.type)
                except NOT_OF_TYPE as error:
                    raise DataError(
                        f"the function {self.name} returned {value!r:.200}, which is not {self.type} ({error})"
                    ) from error
            raise


class CalledOverSeries(CalledAggregate):
    """An aggregate function that takes a Series of all values of each argument: a vectorized one of PyFlink."""

    def create(self) -> Any:
        return deque()

    def accumulate(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int = 0) -> None:
        accumulator.append(arguments)

    def retract(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int = 0) -> None:
        accumulator.popleft()  # the oldest row leaves a frame

    def merge(self, accumulator: Any, others: Sequence[Any]) -> None:
        for other in others:
            accumulator.extend(other)

    def value(self, accumulator: Any) -> Any:
        columns = zip(*accumulator, strict=True) if accumulator else ((),) * len(self.argument_types)
        series = [
            pa.array(arrow_values(list(values), kind), kind.arrow).to_pandas()
            for values, kind in zip(columns, self.argument_types, strict=True)
        ]
        function = self.function.function
        try:
            if not isinstance(function, OpenedFunction):
                return _plain(function(*series))
            instance = function.opened()
            held = instance.create_accumulator()
            instance.accumulate(held, *series)
            return _plain(instance.get_value(held))
        except Exception as error:  # whatever the user's function raises
            raise self._failure("called", tuple(series), error) from error


def _plain(value: Any) -> Any:
    """Return a value of pandas or NumPy as one of Python: what pandas takes as missing is null, as in PyFlink."""
    from pandas import isna
    from pandas.api.types import is_scalar

    if is_scalar(value) and isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


@dataclass(frozen=True, eq=False)
class Arguments(ColumnExpression):
    """The arguments of a call as one column of structs; null where the call does not take a row. Picklable.

    Attributes
    ----------
    columns : tuple of str
    condition : str or None
        Boolean column; rows are left out where it is not true.
    panes : Panes or None
        Panes whose numbers are the first field, null without.
    """

    columns: tuple[str, ...]
    condition: str | None = None
    panes: Panes | None = None

    @property
    def required_columns(self) -> frozenset[str]:
        rowtime = None if self.panes is None else self.panes.column
        return frozenset(name for name in (*self.columns, self.condition, rowtime) if name is not None)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        pane = pa.nulls(batch.num_rows, pa.int64()) if self.panes is None else self.panes.numbers(batch)
        names = [_PANE, *(f"a{number}" for number in range(len(self.columns)))]
        mask = None
        if self.condition is not None:
            mask = pc.invert(pa.array(truth(batch.column(self.condition))))
        arrays = [pane, *(batch.column(name) for name in self.columns)]
        return pa.StructArray.from_arrays(arrays, names, mask=mask)

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" where {self.condition}"
        panes = "" if self.panes is None else f" by {self.panes}"
        return f"({', '.join(self.columns)}){condition}{panes}"


@dataclass(frozen=True, eq=False)
class WindowResult(ColumnExpression):
    """The results of an aggregate function over windows, from lists of its arguments. Picklable.

    Attributes
    ----------
    calls : CalledAggregate
    column : str
        Column of the lists.
    """

    calls: CalledAggregate
    column: str

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.column])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        lists = batch.column(self.column)
        offsets = lists.offsets.to_pylist()
        values = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = [offset - offsets[0] for offset in offsets]
        taken = values.is_valid().to_pylist()
        pane, *fields = values.flatten()
        panes = pane.to_pylist()
        arguments = self.calls.arguments(fields) if fields else [()] * len(panes)
        found = []
        for begin, end in pairwise(offsets):
            rows = [(panes[row], arguments[row]) for row in range(begin, end) if taken[row]]
            found.append(self._of_window(rows))
        return self.calls.column(found)

    def _of_window(self, rows: list[tuple[int | None, tuple[Any, ...]]]) -> Any:
        """Return the result of a window: its panes have accumulators of their own, which are merged."""
        calls = self.calls
        if not rows or rows[0][0] is None:
            return calls.value(self._accumulated([arguments for _, arguments in rows]))
        rows.sort(key=itemgetter(0))
        merged = calls.create()
        for _, of_pane in groupby(rows, itemgetter(0)):
            calls.merge(merged, [self._accumulated([arguments for _, arguments in of_pane])])
        return calls.value(merged)

    def _accumulated(self, rows: Sequence[tuple[Any, ...]]) -> Any:
        accumulator = self.calls.create()
        for arguments in rows:
            self.calls.accumulate(accumulator, arguments)
        return accumulator

    def __str__(self) -> str:
        return f"{self.calls.name} of {self.column}"


def called(
    function: UserFunction, argument_types: Sequence[LogicalType], result_type: LogicalType
) -> CalledAggregate:
    """Return an aggregate function over arguments of these types."""
    kind = CalledOverSeries if function.columns else CalledAggregate
    return kind(function, tuple(argument_types), result_type)
