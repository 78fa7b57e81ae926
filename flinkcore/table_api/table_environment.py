"""Table environments: PyFlink's programs of SQL text over logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, SqlError, UnsupportedOperationError
from flinkcore.sql.nodes.rows import Tables, zone_named
from flinkcore.sql.planner.declared_functions import creation
from flinkcore.sql.planner.planned_script import QUERY_SINK, SessionAnswer, session_answers
from flinkcore.sql.planner.statements import Statement, statements_of
from flinkcore.sql.program import statement_sinks
from flinkcore.sql.sink_rows import SinkRows
from flinkcore.table.calls import Call, Recorded, node_of
from flinkcore.table.types import DataType
from flinkcore.table.udf import DeclaredFunction
from flinkcore.table_api.elements import table_of_elements
from flinkcore.table_api.environment_settings import EnvironmentSettings, TableConfig
from flinkcore.table_api.session_catalog import refuse_method
from flinkcore.table_api.session_objects import SessionObjects
from flinkcore.table_api.stream_tables import check_declared, columns_of, log_of_stream, path_text, quoted
from flinkcore.table_api.table import StatementSet, Table
from flinkcore.table_api.table_descriptor import Schema, TableDescriptor
from flinkcore.table_api.table_result import TableResult

if TYPE_CHECKING:
    from flinkcore import JobResult

_SHOWS: Final = re.compile(r"SHOW\s+(?:TABLES|VIEWS)\b", re.IGNORECASE)


class StreamTableEnvironment(SessionObjects):
    """Runs statements of Flink SQL, one after the other, over logs.

    Parameters
    ----------
    stream_execution_environment : StreamExecutionEnvironment
    settings : mapping of str to str
        Settings of the session.

    Notes
    -----
    Follows ``pyflink.table.StreamTableEnvironment``, as far as programs of SQL text go. Flink's planner sees the
    statements when a query or an insertion is run: it is then that it refuses a wrong ``CREATE``, which is forgotten.
    """

    def __init__(
        self, stream_execution_environment: StreamExecutionEnvironment, settings: Mapping[str, str]
    ) -> None:
        self._environment = stream_execution_environment
        self._config = TableConfig(dict(settings))
        self._statements: list[Statement] = []
        self._tables: dict[str, Any] = {}
        self._sinks: dict[str, str | os.PathLike[str]] = {}
        self._names = 0
        self._unnamed: list[tuple[str, str]] = []  # tables and views that Flink has for no name, by kind
        self._functions: dict[DeclaredFunction, str] = {}

    @staticmethod
    def create(
        stream_execution_environment: Any = None, environment_settings: EnvironmentSettings | None = None
    ) -> StreamTableEnvironment:
        """Return a table environment; by default of the environment of the process."""
        if isinstance(stream_execution_environment, EnvironmentSettings):
            environment_settings, stream_execution_environment = stream_execution_environment, None
        settings = {} if environment_settings is None else environment_settings.get_configuration().to_dict()
        if stream_execution_environment is None:
            stream_execution_environment = StreamExecutionEnvironment.get_execution_environment()
        return StreamTableEnvironment(stream_execution_environment, settings)

    def get_config(self) -> TableConfig:
        """Return the settings of the session."""
        return self._config

    def replace_table(self, name: str, log: Any) -> StreamTableEnvironment:
        """Let a log stand for a table, whatever connector it has; the log as of `from_plan`."""
        self._tables[name] = log
        return self

    def replace_sink(self, name: str, directory: str | os.PathLike[str]) -> StreamTableEnvironment:
        """Let the rows of a sink be written into a directory as Parquet, whatever connector it has."""
        self._sinks[name] = directory
        return self

    def execute_sql(self, stmt: str) -> TableResult:
        """Run a statement.

        Parameters
        ----------
        stmt : str
            A query or an insertion is run, or several, as a script; statements such as ``CREATE`` and ``SET`` are kept
            for those that follow. Flink answers one that begins with ``SHOW``, ``DESCRIBE`` or ``EXPLAIN``.

        Raises
        ------
        SqlError, ConfigurationError, UnsupportedOperationError
            As of :meth:`StreamExecutionEnvironment.execute_sql`; also if the rows of a sink are neither printed nor
            written, and for ``CREATE TABLE ... AS`` and ``SHOW MODULES``.
        """
        statements = statements_of(stmt)
        if len(statements) == 1 and statements[0].asks:
            (answer,) = self._asked(statements[0].text)
            return TableResult(answer=answer)
        for each in statements:
            _check_statement(each)
        found = self._sinks_of(statements)
        for each in statements:
            if each.is_kept and not self._config.takes(each):
                self._statements.append(each)
        if not found:
            return TableResult()
        paths = {name: self._path_of(name, rows) for name, rows in found.items()}
        results: dict[str, JobResult] = {name: rows.stream.execute() for name, rows in found.items()}
        for name, rows in found.items():
            rows.deliver(results[name], paths[name], "append")
        query = next((rows for rows in found.values() if not rows.connector), None)
        return TableResult(results, query, zone_named(self._config.get_local_timezone()))

    def sql_query(self, query: str) -> Table:
        """Return a query as a table."""
        (statement,) = statements_of(query)
        return Table(self, statement.text)

    def from_path(self, path: str) -> Table:
        """Return a table by its name."""
        return Table(self, f"SELECT * FROM {path_text(path)}")

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """Return a table that a descriptor describes, without a name; its connector is one that is read, such as files.

        Raises
        ------
        ConfigurationError
            As of `create_table`.
        """
        return Table(self, f"SELECT * FROM {quoted(self._unnamed_table(descriptor))}")

    def from_data_stream(self, data_stream: Any, *fields_or_schema: Any) -> Table:
        """Return a stream as a table.

        Parameters
        ----------
        data_stream : DataStream or LogStream
        *fields_or_schema : Schema, optional
            Its columns are those of the stream by name, with their types, of any precision, and computed ones; without
            columns of the stream, all of them come first. Otherwise the table has the columns of the stream. A value
            that has more digits than its declared type fails the job.

        Raises
        ------
        UnsupportedOperationError
            If fields are given, or columns of metadata, which the stream does not have.
        SchemaError
            If a column is declared with a type that does not take its values, as BIGINT does not take those of INT.
        """
        if len(fields_or_schema) > 1 or not all(isinstance(each, Schema) for each in fields_or_schema):
            raise UnsupportedOperationError(
                "from_data_stream takes no expressions. Give Schema.new_builder()...build(), whose expressions are SQL "
                "text"
            )
        schema: Schema = fields_or_schema[0] if fields_or_schema else Schema()
        if schema._has_metadata:
            raise UnsupportedOperationError(
                "from_data_stream takes no column of metadata, for the timestamps of elements are not columns. Map "
                "the stream to rows with a field for the timestamp, and declare that one with watermark(...)"
            )
        columns, log = log_of_stream(data_stream)
        check_declared(columns, schema._physical)
        return self._declared(schema._ddl(columns_of(columns)), log, schema._chosen)

    def from_elements(
        self,
        elements: Iterable[Any],
        schema: DataType | Sequence[str] | None = None,
        verify_schema: bool = True,
    ) -> Table:
        """Return rows of the program as a table.

        Parameters
        ----------
        elements : iterable
            Tuples, lists, dictionaries and `Row`; or values of one column.
        schema : DataType or sequence of str, optional
            Type of the rows, or names of the columns; types are else inferred as PyFlink does, such as ``BIGINT``.
        verify_schema : bool
            Whether values must be of their types, which they must be here in any case.

        Raises
        ------
        ArgumentTypeError
            If a type cannot be inferred, or a value is not of its type.
        """
        columns, rows = table_of_elements(elements, schema)
        log = self._environment.from_event_log(rows, timestamp=pc.scalar(0), timestamp_unit="ms")
        return self._declared(Schema()._ddl(columns), log)

    def from_pandas(
        self, pdf: Any, schema: DataType | Sequence[str] | None = None, splits_num: int = 1
    ) -> Table:
        """Return the rows of a DataFrame of pandas as a table; the index is left out.

        Parameters
        ----------
        pdf : pandas.DataFrame
        schema : DataType or sequence of str, optional
            Type of the rows, or names of the columns; types are else those of the columns.
        splits_num : int
            Taken for PyFlink's sake: a DataFrame is one split.
        """
        rows = pa.Table.from_pandas(pdf, preserve_index=False).replace_schema_metadata()
        if isinstance(schema, DataType):
            return self.from_elements(
                list(zip(*(each.to_pylist() for each in rows.columns), strict=True)), schema
            )
        if schema is not None:
            rows = rows.rename_columns(list(schema))
        log = self._environment.from_event_log(rows, timestamp=pc.scalar(0), timestamp_unit="ms")
        return self._declared(Schema()._ddl(columns_of(rows.schema)), log)

    def _declared(self, columns: str, log: Any, chosen: Sequence[str] = ()) -> Table:
        """Return the table of a log, with its columns as ``CREATE TABLE`` has them, or some of them."""
        name = self._new_name()
        self._unnamed.append(("TABLE", name))
        self._keep(f"CREATE TABLE {quoted(name)} {columns} WITH ('connector' = 'stream')")
        self._tables[name] = log
        return Table(self, f"SELECT {', '.join(map(quoted, chosen)) or '*'} FROM {quoted(name)}")

    def _unnamed_table(self, descriptor: TableDescriptor) -> str:
        """Return a name for the table of a descriptor."""
        name = self._new_name()
        self._unnamed.append(("TABLE", name))
        self._keep(descriptor._created(f"CREATE TABLE {quoted(name)}"))
        return name

    def _has(self, statement: Statement) -> bool:
        return statement in self._statements

    def _view_of(self, call: Call) -> Statement:
        """Keep the view that calls of the Table API make, and return its statement."""
        node = node_of(call_result := Recorded(call), self._function_name)
        name = self._new_name()
        self._unnamed.append(("TEMPORARY VIEW", name))
        statement = Statement(str(call_result), view=(quoted(name), node))
        self._statements.append(statement)
        return statement

    def _function_name(self, function: DeclaredFunction) -> str:
        """Return the name of a function that expressions call, and create it if none has called it before."""
        if function not in self._functions:
            self._functions[function] = name = quoted(f"{function.name}#{len(self._functions) + 1}")
            self._statements.append(creation(name, True, function))
        return self._functions[function]

    def use_catalog(self, catalog_name: str) -> None:
        """Let names without a catalog be of this one."""
        self._keep(f"USE CATALOG {quoted(catalog_name)}")

    def use_database(self, database_name: str) -> None:
        """Let names without a database be of this one."""
        self._keep(f"USE {quoted(database_name)}")

    def to_data_stream(self, table: Table) -> DataStream:
        """Return the rows of a query as single elements; the query is run now.

        Raises
        ------
        UnsupportedOperationError
            If rows of the query are changed or withdrawn.
        """
        rows = self._sinks_of(statements_of(table._query))[QUERY_SINK]
        if rows.has_changes:
            raise UnsupportedOperationError(
                "rows of the query are changed or withdrawn. Call to_changelog_stream"
            )
        return self._elements(rows)

    def to_changelog_stream(self, table: Table) -> DataStream:
        """Return the rows of a query as single elements with their kinds; the query is run now."""
        return self._elements(self._sinks_of(statements_of(table._query))[QUERY_SINK])

    def _elements(self, rows: SinkRows) -> DataStream:
        result = TableResult({rows.name: rows.stream.execute()}, rows)
        kind = declared_type(pa.schema([(name, pa.null()) for name in rows.columns]))
        return self._environment.from_collection(list(result.collect()), kind)

    def create_statement_set(self) -> StatementSet:
        """Return an empty set of insertions."""
        return StatementSet(self)

    def _sinks_of(self, statements: list[Statement]) -> dict[str, SinkRows]:
        if not any(each.is_planned for each in statements):
            return {}
        tables = Tables(self._tables, reads_paths=True)
        script = [*self._statements, *statements]
        with self._forgetting_refused():
            return statement_sinks(self._environment, script, tables, self._config.settings)

    def _asked(self, *questions: str) -> list[SessionAnswer]:
        if not questions:
            return []
        is_hidden = any(map(_SHOWS.match, questions))
        hidden = (
            [f"DROP {kind} IF EXISTS {quoted(name)}" for kind, name in self._unnamed] if is_hidden else []
        )
        statements = [
            *self._statements,
            *(each for text in (*hidden, *questions) for each in statements_of(text)),
        ]
        with self._forgetting_refused():
            return session_answers(statements, self._config.settings)

    @contextmanager
    def _forgetting_refused(self) -> Iterator[None]:
        """Forget a kept statement that Flink refuses: it would make each further query fail."""
        try:
            yield
        except SqlError as error:
            self._statements = [each for each in self._statements if each.text != error.statement]
            raise

    def _path_of(self, name: str, rows: SinkRows) -> str | os.PathLike[str] | None:
        """Return the directory that rows are written into, or None if they are printed, counted or a result."""
        if name in self._sinks:
            return self._sinks[name]
        if rows.connector not in ("", "print", "blackhole", "filesystem"):
            raise ConfigurationError(
                f"the table {name} has the connector {rows.connector}, into which rows are not written. Name a "
                f"directory by replace_sink({name!r}, ...)"
            )
        return rows.path

    def _new_name(self) -> str:
        self._names += 1
        # Flink's own names are UnnamedTable$1 and so on, of tables that an expression such as in_() takes.
        return f"UnnamedTable#{self._names}"

    def __getattr__(self, name: str) -> NoReturn:
        refuse_method(self, name)


def _check_statement(statement: Statement) -> None:
    """Raise UnsupportedOperationError for a statement that is neither run nor kept."""
    if statement.is_planned or statement.is_kept:
        return
    remedy = (
        "Declare the table by CREATE TABLE with its columns, and insert the rows by INSERT INTO"
        if statement.creates_from_query
        else "Statements create, drop and alter tables and views, set options, query and insert. Leave it out"
    )
    raise UnsupportedOperationError(f"the statement {statement.shown!r} is not supported. {remedy}")
