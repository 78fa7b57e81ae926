"""Functions that take a row of a table, as functions of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from flinkcore._internal.values.row import Row
from flinkcore.errors import UnsupportedOperationError
from flinkcore.table.udf import (
    AggregateFunction,
    DeclaredFunction,
    FunctionContext,
    ScalarFunction,
    TableFunction,
    UserDefinedFunction,
)


def of_row(function: DeclaredFunction, names: Sequence[str]) -> DeclaredFunction:
    """Return a function of columns that gives them to another one as a row with these names.

    Raises
    ------
    UnsupportedOperationError
        If the function takes columns of pandas.
    """
    if function.func_type == "pandas":
        raise UnsupportedOperationError(
            f"{function.name} takes columns of pandas, and is given to a table. Call it with columns: "
            f"{function.name}(col('{names[0]}'), ...)"
        )
    kinds = {"scalar": _ScalarOfRow, "table": _TableOfRow, "aggregate": _AggregateOfRow}
    return replace(function, function=kinds[function.kind](function.function, tuple(names)))


class _OfRow(UserDefinedFunction):
    def __init__(self, function: Any, names: tuple[str, ...]) -> None:
        self._function, self._names = function, names
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def open(self, function_context: FunctionContext) -> None:
        if isinstance(self._function, UserDefinedFunction):
            self._function.open(function_context)

    def _row(self, values: tuple[Any, ...]) -> Row:
        row = Row(*values)
        row.set_field_names(list(self._names))
        return row

    def _called(self, values: tuple[Any, ...]) -> Any:
        return getattr(self._function, "eval", self._function)(self._row(values))


class _ScalarOfRow(_OfRow, ScalarFunction):
    def eval(self, *args: Any) -> Any:
        return self._called(args)


class _TableOfRow(_OfRow, TableFunction):
    def eval(self, *args: Any) -> Iterable[Any]:
        found: Iterable[Any] = self._called(args)
        return found


class _AggregateOfRow(_OfRow, AggregateFunction):
    def create_accumulator(self) -> Any:
        return self._function.create_accumulator()

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        self._function.accumulate(accumulator, self._row(args))

    def get_value(self, accumulator: Any) -> Any:
        return self._function.get_value(accumulator)

    def retract(self, accumulator: Any, *args: Any) -> None:
        self._function.retract(accumulator, self._row(args))

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        self._function.merge(accumulator, accumulators)
