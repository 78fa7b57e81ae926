"""Functions of the user that plans name, in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, get_type_hints

import pyarrow as pa

from flinkcore.errors import ConfigurationError
from flinkcore.sql.expressions.evaluation import Evaluation, column_of
from flinkcore.sql.plan.rex import Rex, RexCall, UserCall
from flinkcore.sql.types.logical_types import LogicalType, Root

_ARRAYS: Final = (pa.Array, pa.ChunkedArray)


@dataclass(frozen=True)
class UserFunction:
    """A function of the user.

    Attributes
    ----------
    name : str
        Name in messages.
    function : callable
        Takes the values of a row; or columns, if its type hints say that it returns a column.
    columns : str
        "arrow" or "pandas" if it takes and returns columns, otherwise "".
    """

    name: str
    function: Callable[..., Any]
    columns: str = ""

    @classmethod
    def of(cls, name: str, function: Any) -> UserFunction:
        """Return a function by its type hints; raise ConfigurationError if it cannot be called."""
        if not callable(function):
            raise ConfigurationError(f"functions= has {function!r} for {name}, which cannot be called")
        return cls(name, function, _columns_of(function))

    def evaluate(self, rows: Evaluation, call: UserCall) -> pa.Array:
        """Return the values of a call."""
        arrays = [rows(operand) for operand in call.operands]
        kind = call.type.arrow
        if not self.columns:
            return self._by_row(rows, arrays, kind)
        given = arrays if self.columns == "arrow" else [array.to_pandas() for array in arrays]
        if not rows.num_rows:
            return pa.nulls(0, kind)
        try:
            found = self.function(*given)
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            if self.columns == "pandas":
                found = pa.Array.from_pandas(found)
            found = found.cast(kind)
        except Exception as error:  # whatever the user's function raises
            rows.fail(0, f"the function {self.name}, called for {rows.num_rows} rows: {error!r}")
        if len(found) != rows.num_rows:
            rows.fail(0, f"the function {self.name} returned {len(found)} values for {rows.num_rows} rows")
        return found

    def _by_row(self, rows: Evaluation, arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
        function = self.function
        columns = [array.to_pylist() for array in arrays]
        found: list[Any] = []
        for values in zip(*columns, strict=True) if columns else ((),) * rows.num_rows:
            try:
                found.append(function(*values))
            except Exception as error:  # whatever the user's function raises
                rows.fail(len(found), f"the function {self.name}: {error!r}")
        return column_of(rows, found, kind, f"the function {self.name}")


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
    """The functions that a program gives for those of a plan, by their names."""

    def __init__(self, functions: Mapping[str, Any] | None) -> None:
        self._functions = {
            name.replace("`", "").lower(): UserFunction.of(name, function)
            for name, function in (functions or {}).items()
        }

    def bind(self, rex: Rex) -> Rex:
        """Return an expression whose calls of functions of the user have them."""
        if not isinstance(rex, RexCall):
            return rex
        operands = tuple(map(self.bind, rex.operands))
        found = self.find(rex.name)
        if found is None:
            return rex if operands == rex.operands else replace(rex, operands=operands)
        return UserCall(rex.name, operands, rex.type, found)

    def find(self, name: str) -> UserFunction | None:
        """Return the function for a name of a plan, which may have its catalog and database before it."""
        plain = name.replace("`", "").lower()
        for candidate in (plain, plain.rpartition(".")[2]):
            if candidate in self._functions:
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
    """A table function whose rows are dicts; picklable."""

    function: Callable[..., Any]
    names: tuple[str, ...]

    def __call__(self, *values: Any) -> list[dict[str, Any]]:
        found = []
        for row in self.function(*values) or ():
            fields = row if isinstance(row, tuple | list) else (row,)
            if len(fields) != len(self.names):
                raise ValueError(f"a row of {len(fields)} values, and the plan has {len(self.names)}")
            found.append(dict(zip(self.names, fields, strict=True)))
        return found
