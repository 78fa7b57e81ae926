"""Functions of the user that plans name, in Python."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, get_type_hints

import pyarrow as pa

from flinkcore._internal.values.row import Row
from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.sql.expressions.evaluation import Evaluation, column_of
from flinkcore.sql.expressions.python_values import arrow_values, python_values
from flinkcore.sql.plan.rex import Rex, RexCall, UserCall
from flinkcore.sql.types.logical_types import LogicalType, Root
from flinkcore.table.udf import AggregateFunction, DeclaredFunction, FunctionContext

_ARRAYS: Final = (pa.Array, pa.ChunkedArray)


class OpenedFunction:
    """A function whose `open` is called in each process before its first call; picklable.

    Parameters
    ----------
    function : object
        A callable, or an object with methods such as `eval`.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self._is_open = not hasattr(function, "open")
        self._lock = threading.Lock()

    def opened(self) -> Any:
        """Return the function, which is open."""
        if not self._is_open:
            with self._lock:
                if not self._is_open:
                    self.function.open(FunctionContext())
                    self._is_open = True
        return self.function

    def __call__(self, *values: Any) -> Any:
        return self.opened().eval(*values)

    def __reduce__(self) -> Any:
        return OpenedFunction, (self.function,)


@dataclass(frozen=True)
class UserFunction:
    """A function of the user.

    Attributes
    ----------
    name : str
        Name in messages.
    function : callable
        Takes the values of a row; or columns, if its type hints say that it returns a column. Of an aggregate function,
        `OpenedFunction` or, over columns, a callable.
    columns : str
        "arrow" or "pandas" if it takes and returns columns, otherwise "".
    is_aggregate : bool
    """

    name: str
    function: Callable[..., Any]
    columns: str = ""
    is_aggregate: bool = False

    @classmethod
    def of(cls, name: str, given: Any) -> UserFunction:
        """Return a function that is declared, or by its methods and type hints.

        Raises
        ------
        ConfigurationError
            If it cannot be called.
        UnsupportedOperationError
            If it is not deterministic.
        """
        function = given.function if isinstance(given, DeclaredFunction) else given
        if isinstance(function, type) and (hasattr(function, "eval") or hasattr(function, "accumulate")):
            function = _made(name, function)
        declared = given if isinstance(given, DeclaredFunction) else None
        is_deterministic = getattr(function, "is_deterministic", lambda: True)()
        if not is_deterministic or (declared is not None and not declared.is_deterministic):
            raise UnsupportedOperationError(
                f"the function {name} is not deterministic, and a replay may call it twice for a row. Compute its "
                "values before, as a column of the log"
            )
        columns = "pandas" if declared is not None and declared.func_type == "pandas" else ""
        if hasattr(function, "accumulate"):
            missing = [each for each in ("create_accumulator", "get_value") if not hasattr(function, each)]
            if missing:
                raise ConfigurationError(
                    f"functions= has an aggregate function for {name} without {missing[0]}(). Write that method"
                )
            return cls(name, OpenedFunction(function), columns, True)
        if hasattr(function, "eval"):
            return cls(name, OpenedFunction(function), columns)
        if not callable(function):
            raise ConfigurationError(f"functions= has {function!r} for {name}, which cannot be called")
        is_aggregate = declared is not None and declared.kind == "aggregate"
        return cls(name, function, columns or _columns_of(function), is_aggregate)

    def supports(self, method: str) -> bool:
        """Return whether an aggregate function has a method of its own, such as "retract"; over columns, all."""
        if not isinstance(self.function, OpenedFunction):
            return True
        found = getattr(type(self.function.function), method, None)
        return found is not None and found is not getattr(AggregateFunction, method)

    def evaluate(self, rows: Evaluation, call: UserCall) -> pa.Array:
        """Return the values of a call."""
        arrays = [rows(operand) for operand in call.operands]
        kind = call.type.arrow
        if not self.columns:
            return self._by_row(rows, arrays, call)
        given = arrays if self.columns == "arrow" else list(map(_of_pandas, arrays))
        if not rows.num_rows:
            return pa.nulls(0, kind)
        try:
            found = self.function(*given)
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            if self.columns == "pandas":
                found = _from_pandas(found, kind)
            found = found.cast(kind)
        except Exception as error:  # whatever the user's function raises
            rows.fail(0, f"the function {self.name}, called for {rows.num_rows} rows: {error!r}")
        if len(found) != rows.num_rows:
            rows.fail(0, f"the function {self.name} returned {len(found)} values for {rows.num_rows} rows")
        return found

    def _by_row(self, rows: Evaluation, arrays: list[pa.Array], call: UserCall) -> pa.Array:
        function = self.function
        columns = [
            python_values(array, operand.type) for array, operand in zip(arrays, call.operands, strict=True)
        ]
        found: list[Any] = []
        for values in zip(*columns, strict=True) if columns else ((),) * rows.num_rows:
            try:
                found.append(function(*values))
            except Exception as error:  # whatever the user's function raises
                rows.fail(len(found), f"the function {self.name}: {error!r}")
        return column_of(
            rows,
            found,
            call.type.arrow,
            f"the function {self.name}",
            lambda values: arrow_values(values, call.type),
        )


def _of_pandas(array: pa.Array) -> Any:
    """Return a column as PyFlink's vectorized functions take it: a Series, or a DataFrame of rows."""
    if not pa.types.is_struct(array.type):
        return array.to_pandas()
    return pa.RecordBatch.from_arrays(array.flatten(), array.type.names).to_pandas()


def _from_pandas(found: Any, kind: pa.DataType) -> pa.Array:
    """Return a Series, or a DataFrame whose columns are the fields of rows in their order, as a column."""
    if not pa.types.is_struct(kind) or not hasattr(found, "columns"):
        return pa.Array.from_pandas(found)
    if len(found.columns) != kind.num_fields:
        raise ValueError(
            f"a DataFrame of {len(found.columns)} columns, and rows have {kind.num_fields} fields"
        )
    fields = [
        pa.Array.from_pandas(found.iloc[:, number]).cast(kind[number].type)
        for number in range(len(kind.names))
    ]
    return pa.StructArray.from_arrays(fields, fields=list(kind))


def _made(name: str, function: type) -> Any:
    """Return an object of a class of functions."""
    if inspect.isabstract(function):
        missing = ", ".join(sorted(getattr(function, "__abstractmethods__", ())))
        raise ConfigurationError(f"functions= has {function!r} for {name}, which lacks {missing}. Write them")
    try:
        return function()
    except TypeError as error:
        raise ConfigurationError(
            f"functions= has {function!r} for {name}, which cannot be made ({error}). Give an object of it"
        ) from error


def _columns_of(function: Any) -> str:
    try:
        returned = get_type_hints(function).get("return")
    except Exception:  # a hint may name what is not imported
        returned = None
    if returned in _ARRAYS:
        return "arrow"
    module, name = getattr(returned, "__module__", ""), getattr(returned, "__name__", "")
    return "pandas" if module.partition(".")[0] == "pandas" and name == "Series" else ""


class UserFunctions:
    """The functions that a program gives for those of a plan, by their names.

    One that cannot be called is an error if the plan calls it.
    """

    def __init__(self, functions: Mapping[str, Any] | None) -> None:
        self._given = {
            name.replace("`", "").lower(): (name, function) for name, function in (functions or {}).items()
        }
        self._functions: dict[str, UserFunction] = {}

    def bind(self, rex: Rex) -> Rex:
        """Return an expression whose calls of functions of the user have them."""
        if not isinstance(rex, RexCall):
            return rex
        operands = tuple(map(self.bind, rex.operands))
        found = self.find(rex.name)
        if found is None or found.is_aggregate:
            return rex if operands == rex.operands else replace(rex, operands=operands)
        return UserCall(rex.name, operands, rex.type, found)

    def find(self, name: str) -> UserFunction | None:
        """Return the function for a name of a plan, which may have its catalog and database before it."""
        plain = name.replace("`", "").lower()
        for candidate in (plain, plain.rpartition(".")[2]):
            if candidate in self._given:
                if candidate not in self._functions:
                    self._functions[candidate] = UserFunction.of(*self._given[candidate])
                return self._functions[candidate]
        return None


def rows_of(function: UserFunction, call: RexCall, kinds: tuple[LogicalType, ...]) -> UserCall:
    """Return a call of a table function as an array of rows."""
    names = tuple(f"f{number}" for number in range(len(kinds)))
    row = LogicalType(Root.ROW, children=tuple(zip(names, kinds, strict=True)))
    of_rows = UserFunction(function.name, _RowsOf(function.function, names))
    return UserCall(call.name, call.operands, LogicalType(Root.ARRAY, children=(("", row),)), of_rows)


@dataclass(frozen=True)
class _RowsOf:
    """A table function whose rows are tuples; picklable."""

    function: Callable[..., Any]
    names: tuple[str, ...]

    def __call__(self, *values: Any) -> list[tuple[Any, ...]]:
        found = []
        for row in self.function(*values) or ():
            fields = tuple(row) if isinstance(row, tuple | list | Row) else (row,)
            if len(fields) != len(self.names):
                raise ValueError(f"a row of {len(fields)} values, and the plan has {len(self.names)}")
            found.append(fields)
        return found
