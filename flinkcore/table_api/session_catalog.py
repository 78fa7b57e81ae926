"""Questions of a program about the catalog and the plans of its session, which Flink answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from flinkcore._internal.python.missing_features import MissingMethodError
from flinkcore.sql.planner.planned_script import SessionAnswer
from flinkcore.table_api.explain_detail import ExplainDetail

_BY_STATEMENT: Final = "write it as a statement for execute_sql(...)"
_OF_SESSION: Final = "call list_tables() or list_views(), which have those of the session, too"
_OF_PLAN: Final = "call from_plan(plan, {'table': log}) of the StreamExecutionEnvironment"
_OF_PATH: Final = "leave it out: functions and their modules are imported by this process"
_INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("create_table", "create_temporary_table", "create_catalog", "create_view", "create_function"),
            *("drop_table", "drop_view", "drop_function", "load_module", "unload_module"),
        ),
        _BY_STATEMENT,
    ),
    "from_descriptor": "write CREATE TABLE for execute_sql(...), and call from_path with its name",
    **dict.fromkeys(("list_temporary_tables", "list_temporary_views"), _OF_SESSION),
    **dict.fromkeys(("load_plan", "compile_plan_sql", "execute_plan"), _OF_PLAN),
    **dict.fromkeys(("add_python_file", "add_python_archive", "set_python_requirements"), _OF_PATH),
    **dict.fromkeys(
        (
            *("create_java_function", "create_java_temporary_function"),
            *("create_java_temporary_system_function", "register_java_function"),
        ),
        "there is no JVM: write the function in Python for create_temporary_function(...)",
    ),
    "from_changelog_stream": "dump the changes as messages of debezium-json, and name their log by replace_table",
    "to_append_stream": "call to_data_stream",
    "to_retract_stream": "call to_changelog_stream, whose rows have their kinds",
    "get_schema": "call print_schema(), or execute_sql('DESCRIBE ...')",
    "get_resolved_schema": "call print_schema(), or execute_sql('DESCRIBE ...')",
    "insert_into": "call execute_insert",
    "compile_plan": _OF_PLAN,
    "get_table_schema": "take the names of the columns of a row: row.get_field_names()",
}


def refuse_method(instance: object, name: str) -> NoReturn:
    """Raise MissingMethodError for a method of PyFlink's that programs of SQL text do not have; it says what to do."""
    kind = type(instance).__name__
    if name.startswith("_"):
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    instead = _INSTEAD.get(name, "tables are queried by SQL text. Write it as a query for sql_query(...)")
    raise MissingMethodError(f"flinkcore's {kind} has no {name}: {instead}")


def explained(statement: str, details: tuple[ExplainDetail, ...]) -> str:
    """Return the statement that explains another one."""
    shown = ", ".join(each.name for each in details)
    return f"EXPLAIN {shown} {statement}" if shown else f"EXPLAIN {statement}"


class SessionCatalog:
    """Names of a session: catalogs, databases, tables, views and functions; and plans of its statements.

    Errors are those of :meth:`StreamTableEnvironment.execute_sql`: the planner answers, so that Flink must be there.
    """

    @abstractmethod
    def _asked(self, question: str) -> SessionAnswer:
        """Return the planner's answer to a question."""

    def _names_of(self, question: str) -> list[str]:
        return [str(name) for name, *_ in self._asked(question).rows]

    def list_catalogs(self) -> list[str]:
        """Return the names of the catalogs."""
        return self._names_of("SHOW CATALOGS")

    def list_databases(self) -> list[str]:
        """Return the names of the databases of the current catalog."""
        return self._names_of("SHOW DATABASES")

    def list_tables(self) -> list[str]:
        """Return the names of the tables and views of the current database, temporary ones, too."""
        return self._names_of("SHOW TABLES")

    def list_views(self) -> list[str]:
        """Return the names of the views of the current database, temporary ones, too."""
        return self._names_of("SHOW VIEWS")

    def list_functions(self) -> list[str]:
        """Return the names of all functions."""
        return self._names_of("SHOW FUNCTIONS")

    def list_user_defined_functions(self) -> list[str]:
        """Return the names of the functions that are not built in."""
        return self._names_of("SHOW USER FUNCTIONS")

    def get_current_catalog(self) -> str:
        """Return the catalog of names without one."""
        return self._names_of("SHOW CURRENT CATALOG")[0]

    def get_current_database(self) -> str:
        """Return the database of names without one."""
        return self._names_of("SHOW CURRENT DATABASE")[0]

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """Return Flink's plan of a statement, as text.

        Parameters
        ----------
        stmt : str
            A query or an insertion.
        *extra_details : ExplainDetail
        """
        ((text, *_),) = self._asked(explained(stmt, extra_details)).rows
        return str(text)

    def _schema_text(self, view: str) -> str:
        """Return the columns of a view as ``ResolvedSchema`` shows them."""
        columns: list[str] = []
        for name, kind, is_nullable, *_ in self._asked(f"DESCRIBE {view}").rows:
            columns.append(f"  `{name}` {_kind_text(str(kind), is_nullable)}")
        return "(\n" + ",\n".join(columns) + "\n)"


def _kind_text(kind: str, is_nullable: Any) -> str:
    """Return a type with its constraint, which comes before the mark of a time attribute."""
    plain, space, mark = kind.partition(" *")
    return plain + ("" if is_nullable else " NOT NULL") + space + mark
