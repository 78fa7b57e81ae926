"""Queries of a table environment, and sets of insertions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.planner.planned_script import QUERY_SINK
from flinkcore.sql.planner.statements import Statement, statements_of
from flinkcore.table.calls import Call, Recorded, called
from flinkcore.table.expression import Expression
from flinkcore.table.expressions import col, with_columns
from flinkcore.table.udf import DeclaredFunction
from flinkcore.table.window import GroupWindow, OverWindow
from flinkcore.table_api.explain_detail import ExplainDetail
from flinkcore.table_api.grouped_tables import (
    AggregatedTable,
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    call_of_row,
    expressions,
)
from flinkcore.table_api.session_catalog import is_refused, refuse_method
from flinkcore.table_api.stream_tables import path_text, quoted
from flinkcore.table_api.table_descriptor import TableDescriptor
from flinkcore.table_api.table_result import TableResult

if TYPE_CHECKING:
    from flinkcore.table_api.table_environment import StreamTableEnvironment


class Table(Recorded):
    """A query of a table environment; made by `sql_query`, `from_path`, `from_data_stream` and methods of tables.

    An attribute with the name of a column is the expression ``col`` of it.

    Notes
    -----
    Follows ``pyflink.table.Table``. Flink makes the calls when the query is planned, and refuses them then.
    """

    def __init__(self, environment: StreamTableEnvironment, query: str | Call) -> None:
        self._environment = environment
        self._text = None if isinstance(query, Call) else query
        super().__init__(
            query
            if isinstance(query, Call)
            else called("TableEnvironment", "sql_query", "sqlQuery", (query,))
        )
        self._view: Statement | None = None
        self._name: str | None = None
        self._names: list[str] | None = None

    @property
    def _query(self) -> str:
        """The query as text: if calls make it, that of a view that the session has for them."""
        if self._text is not None:
            return self._text
        if self._view is None or not self._environment._has(self._view):
            self._view = self._environment._view_of(self._call)
        assert self._view.view is not None
        return f"SELECT * FROM {self._view.view[0]}"

    def _made(self, call: Call) -> Table:
        return Table(self._environment, call)

    def _columns(self) -> list[str]:
        if self._names is None:
            self._names = self._environment._column_names(self._query)
        return self._names

    def _with(self, name: str, method: str, *arguments: Any) -> Table:
        return self._made(called(self, name, method, arguments))

    def _of(self, name: str, method: str, fields: Sequence[Any]) -> Table:
        return self._with(name, method, *expressions(name, fields))

    # ---- rows and columns

    def select(self, *fields: Expression[Any]) -> Table:
        """Return a table of expressions."""
        return self._of("select", "select", fields)

    def alias(self, field: str, *fields: str) -> Table:
        """Return the table with other names for its columns."""
        return self._with("alias", "as", field, *fields)

    def filter(self, predicate: Expression[bool]) -> Table:
        """Return the rows that meet a condition."""
        return self._of("filter", "filter", (predicate,))

    def where(self, predicate: Expression[bool]) -> Table:
        """Return the rows that meet a condition."""
        return self._of("where", "where", (predicate,))

    def distinct(self) -> Table:
        """Return different rows."""
        return self._with("distinct", "distinct")

    def order_by(self, *fields: Expression[Any]) -> Table:
        """Return the rows in an order; Flink orders streams by rowtime first."""
        return self._of("order_by", "orderBy", fields)

    def offset(self, offset: int) -> Table:
        """Return the rows without the first ones."""
        return self._with("offset", "offset", offset)

    def fetch(self, fetch: int) -> Table:
        """Return the first rows."""
        return self._with("fetch", "fetch", fetch)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Return so many rows after others."""
        return self.offset(offset).fetch(fetch)

    def add_columns(self, *fields: Expression[Any]) -> Table:
        """Return the table with further columns."""
        return self._of("add_columns", "addColumns", fields)

    def add_or_replace_columns(self, *fields: Expression[Any]) -> Table:
        """Return the table with further columns, which replace those of the same name."""
        return self._of("add_or_replace_columns", "addOrReplaceColumns", fields)

    def rename_columns(self, *fields: Expression[Any]) -> Table:
        """Return the table with other names for some columns, as ``col('before').alias('after')``."""
        return self._of("rename_columns", "renameColumns", fields)

    def drop_columns(self, *fields: Expression[Any]) -> Table:
        """Return the table without some columns."""
        return self._of("drop_columns", "dropColumns", fields)

    def map(self, func: Any) -> Table:
        """Return the rows that a scalar function makes: its call, or a function that takes rows of all columns."""
        return self._with("map", "map", self._called_with_rows(func))

    def flat_map(self, func: Any) -> Table:
        """Return the rows that a table function makes, as `map`."""
        return self._with("flat_map", "flatMap", self._called_with_rows(func))

    def _called_with_rows(self, function: Any) -> Expression[Any]:
        names = self._columns() if isinstance(function, DeclaredFunction) else ()
        return call_of_row(function, names, with_columns(col("*")))

    # ---- groups and windows

    def group_by(self, *fields: Expression[Any]) -> GroupedTable:
        """Group rows by expressions."""
        return GroupedTable(self, called(self, "group_by", "groupBy", expressions("group_by", fields)))

    def aggregate(self, func: Any) -> AggregatedTable:
        """Return the columns that an aggregate function makes of all rows, as of `GroupedTable.aggregate`."""
        return AggregatedTable(self, called(self, "aggregate", "aggregate", (self._called_with_rows(func),)))

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Let rows be grouped by a window, such as ``Tumble.over(lit(1).minutes).on(col('ts')).alias('w')``."""
        return GroupWindowedTable(self, called(self, "window", "window", (window,)), window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Let expressions be aggregates ``over(col('w'))`` of the rows before each row."""
        return OverWindowedTable(self, called(self, "over_window", "window", over_windows))

    # ---- two tables

    def _joined(self, name: str, method: str, right: Any, predicate: Expression[bool] | None) -> Table:
        return self._with(name, method, right, *(() if predicate is None else (predicate,)))

    def join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Return the pairs of rows that meet a condition, in which columns have different names."""
        return self._joined("join", "join", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Return the pairs, and left rows without one."""
        return self._joined("left_outer_join", "leftOuterJoin", right, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Return the pairs, and right rows without one."""
        return self._joined("right_outer_join", "rightOuterJoin", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Return the pairs, and rows of both tables without one."""
        return self._joined("full_outer_join", "fullOuterJoin", right, join_predicate)

    def join_lateral(self, table_function_call: Any, join_predicate: Expression[bool] | None = None) -> Table:
        """Return each row with the rows that a table function makes of it, as `flat_map`."""
        call = self._called_with_rows(table_function_call)
        return self._joined("join_lateral", "joinLateral", call, join_predicate)

    def left_outer_join_lateral(
        self, table_function_call: Any, join_predicate: Expression[bool] | None = None
    ) -> Table:
        """Return what `join_lateral` returns, and rows of which the function makes none."""
        call = self._called_with_rows(table_function_call)
        return self._joined("left_outer_join_lateral", "leftOuterJoinLateral", call, join_predicate)

    def union(self, right: Table) -> Table:
        """Return the different rows of both tables."""
        return self._with("union", "union", right)

    def union_all(self, right: Table) -> Table:
        """Return the rows of both tables."""
        return self._with("union_all", "unionAll", right)

    def intersect(self, right: Table) -> Table:
        """Return the different rows that both tables have."""
        return self._with("intersect", "intersect", right)

    def intersect_all(self, right: Table) -> Table:
        """Return the rows that both tables have, as often as both have them."""
        return self._with("intersect_all", "intersectAll", right)

    def minus(self, right: Table) -> Table:
        """Return the different rows that the other table does not have."""
        return self._with("minus", "minus", right)

    def minus_all(self, right: Table) -> Table:
        """Return the rows without those of the other table, each as often as it is there."""
        return self._with("minus_all", "minusAll", right)

    # ---- results

    def execute(self) -> TableResult:
        """Run the query, and return its result."""
        return self._environment.execute_sql(self._query)

    def execute_insert(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TableResult:
        """Append the rows to a table; raise UnsupportedOperationError for ``overwrite``."""
        return self._environment.execute_sql(self._insertion(table_path_or_descriptor, overwrite))

    def _insertion(self, target: str | TableDescriptor, overwrite: bool) -> str:
        if overwrite:
            raise UnsupportedOperationError(
                f"overwrite=True is not supported: rows are appended to {target}. Delete its files before, or call "
                "StreamExecutionEnvironment.execute_sql(script, mode='overwrite')"
            )
        if isinstance(target, TableDescriptor):
            return f"INSERT INTO {quoted(self._environment._unnamed_table(target))} {self._query}"
        return f"INSERT INTO {path_text(target)} {self._query}"

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return Flink's plan of the query, as text."""
        return self._environment.explain_sql(self._query, *extra_details)

    def print_schema(self) -> None:
        """Print the columns with their types, as Flink does."""
        print(self._environment._schema_text(self._query))

    def to_pandas(self) -> Any:
        """Return the rows as a DataFrame of pandas."""
        return self.execute().results[QUERY_SINK].to_arrow().to_pandas()

    def __str__(self) -> str:
        """Return a name of the table for the text of another query."""
        if self._name is None:
            self._name = self._environment._new_name()
            self._environment.create_temporary_view(self._name, self)
        return quoted(self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or is_refused(name):
            refuse_method(self, name)
        if name in (columns := self._columns()):
            return col(name)
        raise AttributeError(
            f"the table has no method and no column {name!r}; its columns are {', '.join(columns)}"
        )


class StatementSet:
    """Insertions that are run together.

    Notes
    -----
    Follows ``pyflink.table.StatementSet``.
    """

    def __init__(self, environment: StreamTableEnvironment) -> None:
        self._environment = environment
        self._inserts: list[str] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an insertion."""
        self._inserts += [each.text for each in statements_of(stmt)]
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        """Add the insertion of the rows of a query; raise UnsupportedOperationError for ``overwrite``."""
        return self.add_insert_sql(table._insertion(target_path_or_descriptor, overwrite))

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return Flink's plan of the insertions, as text."""
        return self._environment.explain_sql(
            f"STATEMENT SET BEGIN {_joined(self._inserts)} END", *extra_details
        )

    def execute(self) -> TableResult:
        """Run the insertions."""
        inserts, self._inserts = self._inserts, []
        return self._environment.execute_sql(f"EXECUTE STATEMENT SET BEGIN {_joined(inserts)} END")

    def __getattr__(self, name: str) -> NoReturn:
        refuse_method(self, name)


def _joined(inserts: Iterable[str]) -> str:
    return " ".join(f"{each};" for each in inserts)
