"""The methods of an environment that run compiled plans of Flink SQL."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from flinkcore.datastream.graph.pipeline_executor import load_plan_streams
from flinkcore.datastream.log_environment import LogEnvironment
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore import JobResult
    from flinkcore.datastream.logs.log_stream import LogStream


class PlanEnvironment(LogEnvironment):
    """Environment that makes streams of compiled plans."""

    def from_plan(
        self,
        plan: str | PathLike[str] | Mapping[str, Any],
        tables: Mapping[str, Any],
        *,
        sink: str | None = None,
        settings: Mapping[str, str] | None = None,
        emitted_at: str | None = None,
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
        streams: dict[str, LogStream] = load_plan_streams()(self, plan, tables, settings, emitted_at)
        if sink is None and len(streams) == 1:
            return next(iter(streams.values()))
        if sink not in streams:
            raise ConfigurationError(
                f"the plan has the sinks {', '.join(streams)}, and sink= is {sink!r}. Name one of them"
            )
        return streams[sink]

    def execute_plan(
        self,
        plan: str | PathLike[str] | Mapping[str, Any],
        tables: Mapping[str, Any],
        sinks: Mapping[str, str | PathLike[str]] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        emitted_at: str | None = None,
        mode: str = "error",
    ) -> dict[str, JobResult]:
        """Run a compiled plan of Flink SQL; a job for each of its sinks.

        Parameters
        ----------
        plan, tables, settings, emitted_at
            As of :meth:`from_plan`.
        sinks : mapping of str to path, optional
            Directories into which the rows of sinks are written as Parquet, by the names of the sinks. Rows of other
            sinks are computed when they are asked for.
        mode : {"error", "overwrite", "append"}
            As of :meth:`LogStream.write_parquet`.

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
        streams: dict[str, LogStream] = load_plan_streams()(self, plan, tables, settings, emitted_at)
        unknown = [name for name in sinks or () if name not in streams]
        if unknown:
            raise ConfigurationError(
                f"sinks= names {unknown[0]}, and the plan has {', '.join(streams)}. Name these"
            )
        results = {name: stream.execute() for name, stream in streams.items()}
        for name, path in (sinks or {}).items():
            results[name].write_parquet(path, mode=mode)
        return results
