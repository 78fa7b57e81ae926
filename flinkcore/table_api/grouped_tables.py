"""Tables with groups or windows, of which a selection makes a table again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkcore.errors import ArgumentTypeError
from flinkcore.table.calls import Call, Recorded, called
from flinkcore.table.expression import Expression
from flinkcore.table.expressions import col, with_columns, without_columns
from flinkcore.table.udf import DeclaredFunction
from flinkcore.table.window import GroupWindow
from flinkcore.table_api.functions_of_rows import of_row
from flinkcore.table_api.session_catalog import refuse_method

if TYPE_CHECKING:
    from flinkcore.table_api.table import Table


def expressions(method: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments of a method that takes expressions; raise ArgumentTypeError for others."""
    for each in given:
        if not isinstance(each, Expression):
            raise ArgumentTypeError(f"{method}() takes expressions such as col('name'), not {each!r:.80}")
    return tuple(given)


def call_of_row(function: Any, names: Sequence[str], columns: Expression[Any]) -> Expression[Any]:
    """Return the call of a function that takes a row of these columns; or the expression that is given instead."""
    if not isinstance(function, DeclaredFunction):
        expressions("a method that calls a function", (function,))
        found: Expression[Any] = function
        return found
    made: Expression[Any] = of_row(function, names)(columns)
    return made.alias(*function.names) if function.names else made


class _Selected(Recorded):
    """Something that `select` makes a table of."""

    def __init__(self, table: Table, call: Call) -> None:
        super().__init__(call)
        self._table = table

    def select(self, *fields: Expression[Any]) -> Table:
        """Return a table of expressions."""
        return self._table._made(called(self, "select", "select", expressions("select", fields)))

    def __getattr__(self, name: str) -> Any:
        refuse_method(self, name)


class AggregatedTable(_Selected):
    """The results of an aggregate function; follows ``pyflink.table.AggregatedTable``."""


class OverWindowedTable(_Selected):
    """A table with windows of OVER; follows ``pyflink.table.OverWindowedTable``."""


class GroupedTable(_Selected):
    """Groups of rows; follows ``pyflink.table.GroupedTable``."""

    def aggregate(self, func: Any) -> AggregatedTable:
        """Return the columns that an aggregate function makes of each group.

        Parameters
        ----------
        func : Expression or DeclaredFunction
            The call of a function; or a function that takes rows of all columns.
        """
        found = call_of_row(func, self._table._columns(), with_columns(col("*")))
        return AggregatedTable(self._table, called(self, "aggregate", "aggregate", (found,)))


class WindowGroupedTable(_Selected):
    """Groups of rows of windows; follows ``pyflink.table.WindowGroupedTable``."""

    def __init__(self, table: Table, call: Call, window: GroupWindow) -> None:
        super().__init__(table, call)
        self._window = window

    def aggregate(self, func: Any) -> AggregatedTable:
        """Return the columns that an aggregate function makes of each group of a window.

        Parameters
        ----------
        func : Expression or DeclaredFunction
            The call of a function; or a function that takes rows of all columns but the one that places them.
        """
        placed = self._window._call.target
        assert isinstance(placed, Recorded)
        (time_field,) = placed._call.arguments
        names = [name for name in self._table._columns() if [name] != list(time_field._call.arguments)]
        found = call_of_row(func, names, without_columns(time_field))
        return AggregatedTable(self._table, called(self, "aggregate", "aggregate", (found,)))


class GroupWindowedTable(Recorded):
    """A table with windows; follows ``pyflink.table.GroupWindowedTable``."""

    def __init__(self, table: Table, call: Call, window: GroupWindow) -> None:
        super().__init__(call)
        self._table, self._window = table, window

    def group_by(self, *fields: Expression[Any]) -> WindowGroupedTable:
        """Group rows by the window, by its name, and by other expressions."""
        call = called(self, "group_by", "groupBy", expressions("group_by", fields))
        return WindowGroupedTable(self._table, call, self._window)

    def __getattr__(self, name: str) -> Any:
        refuse_method(self, name)
