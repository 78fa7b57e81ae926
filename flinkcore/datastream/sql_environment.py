"""The methods of an environment that run Flink SQL: compiled plans, and scripts that Flink plans."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from flinkcore.datastream.graph.pipeline_executor import PLAN_SINKS, SCRIPT_SINKS, load_sql
from flinkcore.datastream.log_environment import LogEnvironment
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore import JobResult
    from flinkcore.datastream.graph.pipeline_executor import RestoreFrom, SavepointStop
    from flinkcore.datastream.logs.log_stream import LogStream


class SqlEnvironment(LogEnvironment):
    """Environment that makes streams of Flink SQL."""

    def from_plan(
        self,
        plan: str | PathLike[str] | Mapping[str, Any],
        tables: Mapping[str, Any],
        *,
        sink: str | None = None,
        settings: Mapping[str, str] | None = None,
        emitted_at: str | None = None,
        functions: Mapping[str, Any] | None = None,
        final: bool = False,
    ) -> LogStream:
        """Return the rows that a compiled plan of Flink SQL inserts into a sink, with event logs for its tables.

        Flink writes plans by ``COMPILE PLAN 'file:///plan.json' FOR INSERT INTO ...`` (FLIP-190). They are read without
        Java. Nothing runs yet, and what is not supported is refused here.

        Parameters
        ----------
        plan : str, os.PathLike or mapping
            Path of the plan, its JSON, or what that holds.
        tables : mapping of str to log
            For each table that the plan reads, by its name or its full name: a stream of :meth:`from_event_log`, which
            says what arrivals and splits are; or a path, or Arrow data, as that method takes. The columns of a log have
            the names of the table's columns, or of their metadata keys. Each split has a watermark assigner of its own;
            ``split=None`` makes the log one split.
        sink : str, optional
            Name of the sink; only for plans of several.
        settings : mapping of str to str, optional
            Settings of the job that are not in a plan, such as ``table.local-time-zone``. Without it, watermarks come
            at the auto-watermark interval of this environment, as Flink's do.
        emitted_at : str, optional
            Name of a last column with the time at which each row was emitted; see :meth:`LogStream.with_emitted_at`.
        functions : mapping of str to function, optional
            Functions in Python for those of the plan that are not built in, by their names or full names: callables,
            objects and classes of ``ScalarFunction``, ``TableFunction`` and ``AggregateFunction`` of
            ``flinkcore.table``, and what ``udf``, ``udaf`` and ``udtf`` make of them. A callable gets the values of
            each row, nulls as None; if its type hints say that it returns a ``pyarrow.Array`` or a ``pandas.Series``,
            columns. It has to return the same for the same values. A table function returns rows: tuples, or values if
            it has one column.
        final : bool
            Whether, in place of changes with their kind in a column ``row_kind``, only the rows are wanted that are
            left when the log ends: the last one of each key of the sink.

        Raises
        ------
        ConfigurationError
            If the plan cannot be read, or a table or the sink is missing.
        UnsupportedOperationError
            If the plan has a node, a function or a type that is not supported: the message names the node with its
            description, and says what to write instead.

        Notes
        -----
        Flink's ``TableEnvironment.loadPlan``.
        """
        return _rows_of(
            load_sql(PLAN_SINKS)(self, plan, tables, settings, emitted_at, functions), sink, "plan", final
        )

    def execute_plan(
        self,
        plan: str | PathLike[str] | Mapping[str, Any],
        tables: Mapping[str, Any],
        sinks: Mapping[str, str | PathLike[str]] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        emitted_at: str | None = None,
        functions: Mapping[str, Any] | None = None,
        final: bool = False,
        mode: str = "error",
        restore_from: RestoreFrom | None = None,
        stop_with_savepoint: str | PathLike[str] | SavepointStop | None = None,
    ) -> dict[str, JobResult]:
        """Run a compiled plan of Flink SQL; a job for each of its sinks.

        Parameters
        ----------
        plan, tables, settings, emitted_at, functions, final
            As of :meth:`from_plan`.
        sinks : mapping of str to path, optional
            Directories into which the rows of sinks are written as Parquet, by the names of the sinks. Rows of other
            sinks are computed when they are asked for.
        mode : {"error", "overwrite", "append"}
            As of :meth:`LogStream.write_parquet`.
        restore_from : path or flinkcore.savepoints.SavepointSource, optional
            Checkpoint of an earlier run, or savepoint of Flink's job of this plan; only for a plan with one sink.
        stop_with_savepoint : path or flinkcore.savepoints.SavepointTarget, optional
            Savepoint with which the job stops, and from which Flink's job of this plan continues; only for a plan with
            one sink.

        Returns
        -------
        dict of str to JobResult
            The result of each sink.

        Raises
        ------
        ConfigurationError, UnsupportedOperationError
            As of :meth:`from_plan`; also if a sink is unknown.
        SchemaError, DataError, SourceError
            As of :meth:`LogStream.execute`.
        """
        found = load_sql(PLAN_SINKS)(self, plan, tables, settings, emitted_at, functions)
        _check_named(found, sinks, "plan")
        if final:
            found = {name: rows.final() for name, rows in found.items()}
        results = _executed(found, "plan", final, restore_from, stop_with_savepoint)
        for name, path in (sinks or {}).items():
            results[name].write_parquet(path, mode=mode, partition_by=found[name].partition_by)
        return results

    def from_sql(
        self,
        script: str,
        tables: Mapping[str, Any] | None = None,
        *,
        sink: str | None = None,
        settings: Mapping[str, str] | None = None,
        emitted_at: str | None = None,
        functions: Mapping[str, Any] | None = None,
        final: bool = False,
    ) -> LogStream:
        """Return the rows of a query or of an insertion of a script of Flink SQL, with event logs for its tables.

        Flink's own planner plans the script, in a process of its own, which needs the package `apache-flink-libraries`
        and Java (``flinkcore[sql]``). Plans are cached on disk: a script that has been planned needs neither. Nothing
        runs yet, and what is not supported is refused here.

        Parameters
        ----------
        script : str
            Statements: ``CREATE TABLE``, ``CREATE VIEW``, ``SET``, ``INSERT INTO``, ``EXECUTE STATEMENT SET``,
            ``SELECT`` and the like.
        tables : mapping of str to log, optional
            As of :meth:`from_plan`. Connectors are replaced, so that none has to be installed. A table of the connector
            ``filesystem`` may be left out: its path is the log.
        sink : str, optional
            Name of the table whose rows are wanted, or ``select`` for those of the first query, ``select_2`` for those
            of the second one; only for scripts of several.
        settings : mapping of str to str, optional
            Settings of the session at the start of the script.
        emitted_at, final
            As of :meth:`from_plan`.
        functions : mapping of str to function, optional
            As of :meth:`from_plan`, by the names under which the script calls them, with their types: made by ``udf``,
            ``udaf`` or ``udtf`` of ``flinkcore.table.udf``. Statements that create one of them are left out.

        Raises
        ------
        SqlError
            If Flink refuses a statement: with its line and column, without a trace of Java.
        ConfigurationError
            If Flink or Java is missing, or a table or the sink, or a log is given that the script does not read.
        UnsupportedOperationError
            If a statement or a plan is not supported.
        """
        return _rows_of(
            load_sql(SCRIPT_SINKS)(self, script, tables or {}, settings, emitted_at, functions),
            sink,
            "script",
            final,
        )

    def execute_sql(
        self,
        script: str,
        tables: Mapping[str, Any] | None = None,
        sinks: Mapping[str, str | PathLike[str]] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        emitted_at: str | None = None,
        functions: Mapping[str, Any] | None = None,
        final: bool = False,
        mode: str = "error",
        restore_from: RestoreFrom | None = None,
        stop_with_savepoint: str | PathLike[str] | SavepointStop | None = None,
    ) -> dict[str, JobResult]:
        """Run a script of Flink SQL; a job for each of its queries and sinks.

        Rows of tables with the connector ``filesystem`` are written as Parquet into their path, those of ``print`` are
        printed, and those of ``blackhole`` are counted.

        Parameters
        ----------
        script, tables, settings, emitted_at, functions, final
            As of :meth:`from_sql`.
        sinks : mapping of str to path, optional
            Directories into which the rows of sinks are written as Parquet, by the names of the sinks, whatever
            connectors they have.
        mode : {"error", "overwrite", "append"}
            As of :meth:`LogStream.write_parquet`.
        restore_from, stop_with_savepoint
            As of :meth:`execute_plan`; only for a script with one query or sink.

        Returns
        -------
        dict of str to JobResult
            The result of each query and sink.

        Raises
        ------
        SqlError, ConfigurationError, UnsupportedOperationError
            As of :meth:`from_sql`; also if a sink is unknown, or has a path with another format than Parquet.
        SchemaError, DataError, SourceError
            As of :meth:`LogStream.execute`.

        Notes
        -----
        Flink's SQL client with ``-f script.sql``.
        """
        found = load_sql(SCRIPT_SINKS)(self, script, tables or {}, settings, emitted_at, functions)
        _check_named(found, sinks, "script")
        paths = {name: path for name, rows in found.items() if (path := rows.path) is not None}
        paths.update(sinks or {})
        if final:
            found = {name: rows.final() for name, rows in found.items()}
        results = _executed(found, "script", final, restore_from, stop_with_savepoint)
        for name, rows in found.items():
            rows.deliver(results[name], paths.get(name), mode)
        return results


def _rows_of(found: Mapping[str, Any], sink: str | None, kind: str, final: bool) -> LogStream:
    name = next(iter(found)) if sink is None and len(found) == 1 else sink
    if name is None or name not in found:
        raise ConfigurationError(
            f"the {kind} has the sinks {', '.join(found)}, and sink= is {sink!r}. Name one of them"
        )
    rows = found[name].final() if final else found[name]
    stream: LogStream = rows.stream
    return stream


def _executed(
    found: Mapping[str, Any],
    kind: str,
    final: bool,
    restore_from: RestoreFrom | None,
    stop_with_savepoint: str | PathLike[str] | SavepointStop | None,
) -> dict[str, JobResult]:
    """Return the results of a job for each sink, of which only one may have state before or after it."""
    has_state = restore_from is not None or stop_with_savepoint is not None
    if has_state and len(found) > 1:
        raise ConfigurationError(
            f"the {kind} has the sinks {', '.join(found)}, each of which is a job of its own with state of its own. "
            "Give a plan for each sink, or take from_plan(...) with sink="
        )
    if stop_with_savepoint is not None and final:
        raise ConfigurationError(
            "final=True keeps the last row of each key, which Flink's job does not. Leave it out with a savepoint"
        )
    return {
        name: rows.stream.execute(restore_from=restore_from, stop_with_savepoint=stop_with_savepoint)
        for name, rows in found.items()
    }


def _check_named(found: Mapping[str, Any], sinks: Mapping[str, Any] | None, kind: str) -> None:
    unknown = [name for name in sinks or () if name not in found]
    if unknown:
        raise ConfigurationError(
            f"sinks= names {unknown[0]}, and the {kind} has {', '.join(found)}. Name these"
        )
