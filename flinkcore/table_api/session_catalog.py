"""Questions of a program about the catalog and the plans of its session, which Flink answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from flinkcore._internal.python.missing_features import MissingMethodError
from flinkcore.sql.planner.planned_script import SessionAnswer
from flinkcore.table_api.explain_detail import ExplainDetail
from flinkcore.table_api.stream_tables import quoted

_BY_STATEMENT: Final = "write it as a statement for execute_sql(...)"
_OF_PLAN: Final = "call from_plan(plan, {'table': log}) of the StreamExecutionEnvironment"
_OF_PATH: Final = "leave it out: functions and their modules are imported by this process"
_INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("create_catalog", "register_catalog", "get_catalog", "create_function", "drop_function"),
            *("create_model", "create_temporary_model", "drop_model", "drop_temporary_model"),
            *("load_module", "unload_module", "use_modules", "list_modules", "list_full_modules"),
            *("list_models", "list_temporary_models", "list_materialized_tables"),
        ),
        _BY_STATEMENT,
    ),
    **dict.fromkeys(("load_plan", "compile_plan_sql", "execute_plan"), _OF_PLAN),
    **dict.fromkeys(("add_python_file", "add_python_archive", "set_python_requirements"), _OF_PATH),
    **dict.fromkeys(
        (
            *("create_java_function", "create_java_temporary_function"),
            *("create_java_temporary_system_function", "register_java_function"),
        ),
        "there is no JVM: write the function in Python for create_temporary_function(...)",
    ),
    "flat_aggregate": "functions in Python make one row of a group. Write a query with ROW_NUMBER() for sql_query(...)",
    **dict.fromkeys(("to_changelog", "from_changelog"), "call to_changelog_stream of the table environment"),
    "from_changelog_stream": "dump the changes as messages of debezium-json, and name their log by replace_table",
    "to_append_stream": "call to_data_stream",
    "to_retract_stream": "call to_changelog_stream, whose rows have their kinds",
    "get_schema": "call print_schema(), or execute_sql('DESCRIBE ...')",
    "get_resolved_schema": "call print_schema(), or execute_sql('DESCRIBE ...')",
    **dict.fromkeys(("insert_into", "add"), "call execute_insert, or add_insert of a statement set"),
    "attach_as_datastream": "call execute(), and run the stream on its own",
    "from_resolved_schema": "call from_schema, or column for each column",
    "print_explain": "print(...) what explain() returns",
    "compile_plan": _OF_PLAN,
    "get_table_schema": "take the names of the columns of a row: row.get_field_names()",
}


def is_refused(name: str) -> bool:
    """Return whether a name is one of a method of PyFlink's that is refused."""
    return name in _INSTEAD


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
    def _asked(self, *questions: str) -> list[SessionAnswer]:
        """Return the planner's answers to questions, before which other statements may come."""

    def _names_of(self, question: str) -> list[str]:
        (answer,) = self._asked(question)
        return [str(name) for name, *_ in answer.rows]

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

    def list_temporary_tables(self) -> list[str]:
        """Return the names of the temporary tables and views of the current database."""
        views = self.list_views()
        return self._temporary([("VIEW" if name in views else "TABLE", name) for name in self.list_tables()])

    def list_temporary_views(self) -> list[str]:
        """Return the names of the temporary views of the current database."""
        return self._temporary([("VIEW", name) for name in self.list_views()])

    def _temporary(self, objects: Sequence[tuple[str, str]]) -> list[str]:
        """Return the names of those objects, each of a kind, that are temporary."""
        answers = self._asked(*(f"SHOW CREATE {kind} {quoted(name)}" for kind, name in objects))
        return [
            name
            for (_, name), answer in zip(objects, answers, strict=True)
            if str(answer.rows[0][0]).startswith("CREATE TEMPORARY ")
        ]

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
        (answer,) = self._asked(explained(stmt, extra_details))
        ((text, *_),) = answer.rows
        return str(text)

    def _schema_text(self, query: str) -> str:
        """Return the columns of a query as ``ResolvedSchema`` shows them."""
        columns = [
            f"  `{name}` {_kind_text(str(kind), is_nullable)}"
            for name, kind, is_nullable, *_ in self._described(query).rows
        ]
        return "(\n" + ",\n".join(columns) + "\n)"

    def _column_names(self, query: str) -> list[str]:
        return [str(name) for name, *_ in self._described(query).rows]

    def _described(self, query: str) -> SessionAnswer:
        view = quoted("described#")
        (answer,) = self._asked(f"CREATE TEMPORARY VIEW {view} AS {query}", f"DESCRIBE {view}")
        return answer


def _kind_text(kind: str, is_nullable: Any) -> str:
    """Return a type with its constraint, which comes before the mark of a time attribute."""
    plain, space, mark = kind.partition(" *")
    return plain + ("" if is_nullable else " NOT NULL") + space + mark
