"""Aggregate calls of a plan, and the values that they take of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.sql.expressions.evaluation import column, numbers, valid
from flinkcore.sql.expressions.numeric_casts import cast_number
from flinkcore.sql.expressions.user_functions import UserFunction, UserFunctions
from flinkcore.sql.nodes.panes import Panes
from flinkcore.sql.plan.rex import function_name
from flinkcore.sql.types.logical_types import LogicalType, Root, type_of

_DOUBLE: Final = LogicalType(Root.DOUBLE)


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate call of a plan.

    Attributes
    ----------
    name : str
        Name of the function, such as ``SUM``.
    arguments : tuple of int
        Numbers of its columns.
    filter : int
        Number of the boolean column of its FILTER, or -1.
    is_distinct : bool
    type : LogicalType
        Type of its result.
    ignores_nulls : bool
        Whether ARRAY_AGG leaves out nulls; other functions always do.
    function : UserFunction or None
        The function of the user that it calls, or None of a built-in one.
    """

    name: str
    arguments: tuple[int, ...]
    filter: int
    is_distinct: bool
    type: LogicalType
    ignores_nulls: bool = True
    function: UserFunction | None = None

    @classmethod
    def of(cls, written: Mapping[str, Any], functions: UserFunctions) -> AggregateCall:
        """Return a call as a plan writes it."""
        name = function_name(written)
        return cls(
            name,
            tuple(written["argList"]),
            written["filterArg"],
            written["distinct"],
            type_of(written["type"]),
            bool(written.get("ignoreNulls")) or name != "ARRAY_AGG",
            functions.find(name),
        )


@dataclass(frozen=True, eq=False)
class Argument(ColumnExpression):
    """The values that an aggregate takes; null where it takes none. Picklable.

    Attributes
    ----------
    column : str or None
        Column of the values, or None for a count of rows.
    given : LogicalType
        Type of the column.
    condition : str or None
        Boolean column; values are null where it is not true.
    form : str
        "as it is", or the form of the values: see `_FORMS`.
    panes : Panes or None
        Panes by which the values are ordered, for values that are wrapped.
    separator : str or None
        Column with the separators of LISTAGG, or None for a comma.
    """

    column: str | None
    given: LogicalType
    condition: str | None = None
    form: str = "as it is"
    panes: Panes | None = None
    separator: str | None = None

    @property
    def required_columns(self) -> frozenset[str]:
        rowtime = None if self.panes is None else self.panes.column
        read = (self.column, self.condition, rowtime, self.separator)
        return frozenset(name for name in read if name is not None)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        if self.column is None:
            array = pa.repeat(pa.scalar(1, pa.int8()), batch.num_rows)
        else:
            array = _FORMS[self.form](batch.column(self.column), self.given)
        if self.form == "wrapped":
            pane = pa.nulls(batch.num_rows, pa.int64()) if self.panes is None else self.panes.numbers(batch)
            separators = pa.repeat(pa.scalar(","), batch.num_rows)
            if self.separator is not None:
                separators = batch.column(self.separator)
            array = pa.StructArray.from_arrays([array, pane, separators], ["value", "pane", "separator"])
        if self.condition is None:
            return array
        return _where(batch.column(self.condition), array)

    def __str__(self) -> str:
        condition = f" where {self.condition}" if self.condition is not None else ""
        form = "" if self.form == "as it is" else f", {self.form}"
        separator = f", separated by {self.separator}" if self.separator is not None else ""
        return f"{self.column or 'rows'}{condition}{form}{separator}"


def _where(condition: pa.Array, array: pa.Array) -> pa.Array:
    """Return values where a condition is true, and null elsewhere."""
    is_number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if not is_number or array.null_count or condition.null_count or array.offset != condition.offset:
        return pc.if_else(condition, array, pa.scalar(None, array.type))
    # The bits of the condition are those of validity.
    buffers = [condition.buffers()[1], array.buffers()[1]]
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)


def _comparable(array: pa.Array, given: LogicalType) -> pa.Array:
    """Return floats without NaN, which no other value replaces, and with -0.0 as 0.0."""
    values = numbers(array)
    return column(values + 0.0, valid(array) & ~np.isnan(values), array.type)


_FORMS: Final[dict[str, Callable[[pa.Array, LogicalType], pa.Array]]] = {
    "as it is": lambda array, given: array,
    "present": lambda array, given: pc.if_else(
        pc.is_valid(array), pa.scalar(1, pa.int8()), pa.scalar(None, pa.int8())
    ),
    "comparable": _comparable,
    "double": lambda array, given: cast_number(array, given, _DOUBLE),
    "wrapped": lambda array, given: array,
    "wide decimal": lambda array, given: array.cast(pa.decimal128(38, given.scale)),
}
