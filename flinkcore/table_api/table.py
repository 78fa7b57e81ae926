"""Queries and sets of insertions of a table environment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.planner.planned_script import QUERY_SINK
from flinkcore.sql.planner.statements import statements_of
from flinkcore.table_api.explain_detail import ExplainDetail
from flinkcore.table_api.session_catalog import refuse_method
from flinkcore.table_api.stream_tables import path_text, quoted
from flinkcore.table_api.table_descriptor import TableDescriptor
from flinkcore.table_api.table_result import TableResult

if TYPE_CHECKING:
    from flinkcore.table_api.table_environment import StreamTableEnvironment


class Table:
    """A query of a table environment; made by `sql_query`, `from_path` and `from_data_stream`.

    Notes
    -----
    Follows ``pyflink.table.Table``, as far as programs of SQL text go.
    """

    def __init__(self, environment: StreamTableEnvironment, query: str) -> None:
        self._environment = environment
        self._query = query
        self._name: str | None = None

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

    def __getattr__(self, name: str) -> NoReturn:
        refuse_method(self, name)


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
