"""Tables, views and functions that a program creates and drops in its session."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from flinkcore.errors import ConfigurationError
from flinkcore.sql.planner.declared_functions import creation, declared_function, has_object
from flinkcore.sql.planner.statements import Statement
from flinkcore.table.udf import AggregateFunction, DeclaredFunction
from flinkcore.table_api.session_catalog import SessionCatalog
from flinkcore.table_api.stream_tables import path_text, quoted
from flinkcore.table_api.table_descriptor import TableDescriptor

if TYPE_CHECKING:
    from flinkcore.table_api.table import Table


class SessionObjects(SessionCatalog):
    """Names that a program gives to tables, views and functions.

    The planner sees them when the next query or insertion runs, and refuses them then, as statements of text.
    """

    _statements: list[Statement]

    @abstractmethod
    def from_data_stream(self, data_stream: Any, *fields_or_schema: Any) -> Table:
        """Return a stream as a table."""

    def _keep(self, text: str) -> None:
        """Keep one statement: the planner refuses a semicolon in an expression or a type that a program gives."""
        self._statements.append(Statement(text))

    # ---- tables

    def create_table(self, path: str, descriptor: TableDescriptor, ignore_if_exists: bool = False) -> None:
        """Name a table that a descriptor describes.

        Parameters
        ----------
        path : str
            Its name, perhaps with catalog and database.
        descriptor : TableDescriptor
        ignore_if_exists : bool
            Whether a table of that name stays as it is.

        Raises
        ------
        ConfigurationError
            If the descriptor has no columns, or its primary key may be null.
        """
        self._keep(
            descriptor._created(f"CREATE TABLE {'IF NOT EXISTS ' * ignore_if_exists}{path_text(path)}")
        )

    def create_temporary_table(
        self, path: str, descriptor: TableDescriptor, ignore_if_exists: bool = False
    ) -> None:
        """Name a temporary table that a descriptor describes, as `create_table`.

        Raises
        ------
        ConfigurationError
            As of `create_table`; also if there is such a temporary table.
        """
        written = path_text(path)
        if has_object(self._statements, written, "TABLE"):
            if ignore_if_exists:
                return
            raise ConfigurationError(
                f"there is a temporary table {path} already. Call drop_temporary_table({path!r}) before"
            )
        self._keep(descriptor._created(f"CREATE TEMPORARY TABLE {written}"))

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forget a table; return whether there was one.

        Raises
        ------
        ConfigurationError
            If one is missing, and that is not to be ignored.
        """
        return self._drop_permanent("TABLE", table_path, ignore_if_not_exists)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forget a temporary table; return whether there was one."""
        return self._drop("TABLE", path_text(table_path))

    # ---- views

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> None:
        """Name a query."""
        self._keep(
            f"CREATE VIEW {'IF NOT EXISTS ' * ignore_if_exists}{path_text(view_path)} AS {table._query}"
        )

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any
    ) -> None:
        """Name a query; or a stream, as `from_data_stream` makes a table of it."""
        table = table_or_data_stream
        if not hasattr(table, "_query"):
            table = self.from_data_stream(table, *fields_or_schema)
        self._keep(f"CREATE TEMPORARY VIEW {path_text(view_path)} AS {table._query}")

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forget a view; return and errors as of `drop_table`."""
        return self._drop_permanent("VIEW", view_path, ignore_if_not_exists)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forget a temporary view; return whether there was one."""
        return self._drop("VIEW", path_text(view_path))

    # ---- functions

    def create_temporary_function(self, path: str, function: DeclaredFunction | AggregateFunction) -> None:
        """Name a function for the statements that follow.

        Parameters
        ----------
        path : str
            Its name, perhaps with catalog and database.
        function : DeclaredFunction or AggregateFunction
            The result of ``udf``, ``udaf`` or ``udtf``; or an object whose ``get_result_type`` has its type.

        Raises
        ------
        ConfigurationError
            If there is such a temporary function, or its type is not known.
        """
        self._create_function(path_text(path), path, False, function)

    def create_temporary_system_function(
        self, name: str, function: DeclaredFunction | AggregateFunction
    ) -> None:
        """Name a function for the statements that follow, as `create_temporary_function`."""
        self._create_function(quoted(name), name, True, function)

    def drop_temporary_function(self, path: str) -> bool:
        """Forget a function; return whether there was one."""
        return self._drop("FUNCTION", path_text(path))

    def drop_temporary_system_function(self, name: str) -> bool:
        """Forget a function; return whether there was one."""
        return self._drop("SYSTEM FUNCTION", quoted(name))

    def _create_function(self, written: str, name: str, is_system: bool, function: Any) -> None:
        if has_object(self._statements, written, f"{'SYSTEM ' if is_system else ''}FUNCTION"):
            raise ConfigurationError(
                f"there is a function {name} already. Call drop_temporary_{'system_' if is_system else ''}function"
                f"({name!r}) before"
            )
        self._statements.append(creation(written, is_system, declared_function(name, function)))

    # ---- what is dropped

    def _drop_permanent(self, kind: str, path: str, ignore_if_not_exists: bool) -> bool:
        is_there = has_object(self._statements, path_text(path), kind, is_temporary=False)
        if not (is_there or ignore_if_not_exists):
            raise ConfigurationError(f"there is no {kind.lower()} {path}. Leave the call out")
        return self._drop(kind, path_text(path), is_temporary=False)

    def _drop(self, kind: str, written: str, *, is_temporary: bool = True) -> bool:
        """Drop an object, also one that has another name in a statement; return whether there is one of this name."""
        is_there = has_object(self._statements, written, kind, is_temporary=is_temporary)
        self._keep(f"DROP {'TEMPORARY ' * is_temporary}{kind} IF EXISTS {written}")
        return is_there
