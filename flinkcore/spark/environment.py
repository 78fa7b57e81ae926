"""The environment of jobs that run on Spark, and their executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

import pyarrow as pa

from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.joined_batches import empty_table
from flinkcore._internal.arrow.nested_fields import column_of, unknown_name
from flinkcore._internal.arrow.sort_keys import Position, SortKey, sort_keys
from flinkcore._internal.arrow.time_units import TimeUnit
from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints
from flinkcore.columnar.plans.job_plan import JobPlan, log_sources, make_plan
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.plans.tied_events import without_order_of_ties
from flinkcore.common import ExecutionConfig, OutputTag
from flinkcore.common.split_origin import PARTITION, SplitOrigin
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream.graph.pipeline_executor import (
    NO_CHECKPOINTS,
    CheckpointSettings,
    ElementJob,
    ProgressChoice,
)
from flinkcore.datastream.graph.python_dependencies import PythonArchive
from flinkcore.datastream.graph.transformations import EventLogSource, StreamGraph
from flinkcore.elements.tasks.execution_plan import execution_plan
from flinkcore.errors import ConfigurationError, FlinkcoreError
from flinkcore.log.decoding.known_shapes import known_shape
from flinkcore.log.sources.log_sources import TableSource
from flinkcore.log.tables.lake_files import shown_tables
from flinkcore.spark.columnar.replay import TASK_MODULES, SparkReplay
from flinkcore.spark.columnar.result import SparkResult
from flinkcore.spark.columns.job_columns import NotJustColumns, has_no_operator, job_columns
from flinkcore.spark.elements.element_run import SparkElementRun
from flinkcore.spark.elements.element_task import ElementTask
from flinkcore.spark.logs.dataframe_log import DataFrameLog, is_spark_column
from flinkcore.spark.logs.spark_log import (
    SparkLog,
    UnreadLog,
    columns_read,
    how_read,
    logs_of_dataframe,
    logs_of_files,
)
from flinkcore.spark.sessions.session import check_session, default_parallelism, workers_interpreter
from flinkcore.spark.sessions.session_stores import SessionStores
from flinkcore.spark.shipping.sent_files import SentFiles


class SparkExecutionEnvironment(StreamExecutionEnvironment):
    """A `StreamExecutionEnvironment` whose jobs run on Spark.

    In columnar jobs, parallelism is the number of reduce tasks, each with a range of key groups. The default is one per
    core of the cluster, and at most the maximum parallelism; results do not depend on it. In jobs of single elements it
    is the parallelism of operators, as in an embedded run, and 1 by default, since their results may depend on it.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Preferably from a builder that `configure_spark` has configured.

    Examples
    --------
    >>> env = SparkExecutionEnvironment(spark)  # doctest: +SKIP
    """

    def __init__(self, spark: Any) -> None:
        super().__init__(SparkExecutor(spark))

    def from_event_log(
        self,
        path_or_table: Any,
        *,
        timestamp: str | Expression | None = None,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | Expression | None = PARTITION,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        schema: Any = None,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        position: Position | Any | None = None,
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
        until: datetime | str | int | None = None,
        decode: Mapping[str, Any] | Literal["debezium"] | None = None,
    ) -> LogStream:
        """Return the stream of events of a log, which may be a Spark DataFrame.

        For a DataFrame, `timestamp`, `arrival` and `split` may be columns of Spark (``F.col("ts")``,
        ``F.to_timestamp("at", "dd.MM.yyyy")``); conditions and columns of Spark also go into :meth:`LogStream.filter`
        and :meth:`LogStream.with_columns`, as first steps. Spark evaluates them, and only the columns that the job
        needs.

        Without `split`, the split of a DataFrame is the column with the partition that the directories of its files
        name, such as ``partition=3``, as it is where the log is a path, or else topic and partition of Kafka's records.
        A DataFrame without such columns is one split.

        A DataFrame that selects, renames and filters columns of Parquet files is read as these files. Any other is
        evaluated once, and Spark keeps its rows (as :meth:`DataFrame.localCheckpoint` does) until the result is no
        longer used. :meth:`LogStream.explain` says which, and why. Either way its rows have no positions: those of a
        split are ordered by `arrival`, where that is the same ms by `position`, and then by their content, however they
        are partitioned. Without `arrival`, by `position` and content; with neither, as Spark gives them.

        Parameters
        ----------
        path_or_table, timestamp, arrival, split, rate, arrival_start_ms, format, format_options, schema, filesystem
            As of :meth:`StreamExecutionEnvironment.from_event_log`.
        on_bad_row, timestamp_unit, arrival_unit, integer_times, decode, until
            As of :meth:`StreamExecutionEnvironment.from_event_log`.
        position : str, (str, "descending"), pyspark.sql.Column or sequence of these, optional
            As of :meth:`StreamExecutionEnvironment.from_event_log`; of a DataFrame also columns of Spark, such as
            ``F.col("offset").desc()``. Spark sorts the rows of a DataFrame for that.

        Raises
        ------
        ConfigurationError
            If a setting is invalid, or the DataFrame is a streaming one.
        """
        data = path_or_table
        if hasattr(data, "mapInArrow"):
            if data.isStreaming:
                raise ConfigurationError(
                    "a log has an end, and this DataFrame is a streaming one (spark.readStream): read what has been "
                    "recorded with spark.read, or give the path of its files"
                )
            data = DataFrameLog(data)
            for setting, value in (
                ("format", format),
                ("format_options", format_options),
                ("schema", schema),
                ("filesystem", filesystem),
            ):
                if value is not None:
                    raise ConfigurationError(f"{setting}= is of files; this log is a Spark DataFrame")
            shape = known_shape(data.schema)
            if shape is not None:
                data, timestamp, split, position = data.with_places(shape, timestamp, split, position)
            if is_spark_column(timestamp):
                data, timestamp = data.with_column_of("timestamp", timestamp)
            if is_spark_column(arrival):
                data, arrival = data.with_column_of("arrival", arrival)
            if split is PARTITION:
                split = data.partition_column()
            if is_spark_column(split):
                data, split = data.with_column_of("split", split)
            if position is not None:
                data, position = data.with_order(_columns_of(position, data.schema)), None
        return super().from_event_log(
            data,
            timestamp=timestamp,
            arrival=arrival,
            split=split,
            rate=rate,
            arrival_start_ms=arrival_start_ms,
            format=format,
            format_options=format_options,
            schema=schema,
            filesystem=filesystem,
            on_bad_row=on_bad_row,
            position=position,
            timestamp_unit=timestamp_unit,
            arrival_unit=arrival_unit,
            integer_times=integer_times,
            until=until,
            decode=decode,
        )


def _columns_of(position: Any, schema: pa.Schema) -> list[Any]:
    """Columns of Spark as they are, and sort keys of those that are named."""
    given = position if isinstance(position, list | tuple) else [position]
    columns: list[Any] = []
    if any(map(is_spark_column, given)):
        columns += [each if is_spark_column(each) else sort_keys([each])[0] for each in given]
    else:
        columns += sort_keys(given)
    for column in columns:
        if isinstance(column, SortKey) and column_of(schema, column.column) not in schema.names:
            similar = unknown_name(schema, column.column)
            raise ConfigurationError(
                f"position= names {column.column!r}, which is not a column of the DataFrame: "
                f"{', '.join(schema.names)}{'.' if similar else ''}{similar}"
            )
    return columns


def replay(dataframe: Any, job: Callable[[LogStream], LogStream], **log: Any) -> Any:
    """Return the results of a job over a DataFrame as a DataFrame; a function for ``DataFrame.transform``.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
        The log.
    job : callable
        From the stream of events to that of the results.
    **log
        As of :meth:`SparkExecutionEnvironment.from_event_log`: `timestamp`, `arrival`, ...

    Raises
    ------
    ConfigurationError
        If it is not a DataFrame, the job returns no stream, or a setting is invalid.

    Examples
    --------
    >>> rides.transform(replay, trips_per_minute, timestamp="ended", arrival="received")  # doctest: +SKIP
    """
    if not hasattr(dataframe, "mapInArrow"):
        raise ConfigurationError(f"replay takes a Spark DataFrame, not {type(dataframe).__name__}")
    results = job(SparkExecutionEnvironment(dataframe.sparkSession).from_event_log(dataframe, **log))
    if not hasattr(results, "to_dataframe"):
        raise ConfigurationError(f"replay takes a job that gives the stream of its results, not {results!r}")
    return results.to_dataframe()


_NO_COMMON_CLOCK: Final = (
    "its tasks run one after the other, are run again after a failure, and have no clock in common"
)


class SparkExecutor:
    """Runs jobs on Spark.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    """

    name = "spark"
    makes_dataframes = True

    def __init__(self, spark: Any) -> None:
        check_session(spark)
        self._spark = spark
        self._cores: int | None = None
        self.stores = SessionStores(spark)

    def execute(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        progress: ProgressChoice = "off",
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> SparkResult:
        """Plan a columnar job; it runs when its result is asked for.

        Parameters
        ----------
        graph : StreamGraph
        configuration : ExecutionConfig
            Parallelism, number of key groups, auto-watermark interval.
        progress : callable or str
            Receiver of the progress of the replay.
        checkpoints : CheckpointSettings
            The checkpoint that the job is restored from, and the one that it stops with: paths that driver and
            executors share.
        """
        plan = without_order_of_ties(make_plan(graph, configuration, checkpoints))
        columns = partial(job_columns, self._spark, plan, log_sources(graph), checkpoints)
        return SparkResult(self._replay(graph, plan, configuration, checkpoints, progress), columns)

    def planned(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
        progress: ProgressChoice = "off",
    ) -> SparkReplay:
        """Plan a columnar job for an analysis, which reports ties, too; parameters as of `execute`."""
        plan = make_plan(graph, configuration, checkpoints)
        return self._replay(graph, plan, configuration, checkpoints, progress)

    def _replay(
        self,
        graph: StreamGraph,
        plan: JobPlan,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings,
        progress: ProgressChoice,
    ) -> SparkReplay:
        check_session(self._spark)
        SentFiles.of(self._spark).task_modules |= TASK_MODULES
        configuration.require_arrival_clock("a job on Spark", _NO_COMMON_CLOCK)
        job = JobCheckpoints.of(plan, checkpoints)
        plan = job.plan
        parallelism = configuration.get_parallelism()
        if parallelism == ExecutionConfig.PARALLELISM_DEFAULT:
            parallelism = self._default_parallelism()
        sources = log_sources(graph)
        found: dict[int, SparkLog | UnreadLog] = {}
        for together in plan.ways:
            of_ways = self._spark_logs([plan.logs[number] for number in together], sources[together[0]])
            found |= zip(together, of_ways, strict=True)
        logs = [found[number] for number in range(len(plan.logs))]
        plan = replace(plan, logs=tuple(log.plan for log in logs))
        return SparkReplay(self._spark, plan, logs, parallelism, progress, checkpoints=job)

    def _spark_logs(self, plans: Sequence[LogPlan], source: EventLogSource) -> Sequence[SparkLog | UnreadLog]:
        """The log of a source, for each way that it is used on."""
        cores = self._default_parallelism()
        if isinstance(source.data, DataFrameLog):
            return logs_of_dataframe(self._spark, plans, source.data, cores)
        logs = logs_of_files(self._spark, plans, cores)
        of_table = plans[0].log.source
        if not isinstance(of_table, TableSource):
            return logs
        # Tasks get the rows of their chunks, and not the whole table with the plan.
        columns = TableSource(empty_table(of_table.table.schema))
        return [
            replace(log, plan=replace(log.plan, log=replace(log.plan.log, source=columns))) for log in logs
        ]

    def explain_execution(self, graph: StreamGraph, configuration: ExecutionConfig) -> list[str]:
        """Return what Spark computes alone, whether tasks merge events, and how they read each DataFrame and table."""
        plan = None
        if not graph.needs_rows:
            with suppress(FlinkcoreError):  # of a refused job nobody knows how it would run
                plan = make_plan(graph, configuration)
        of_plan = [] if plan is None else [*self._explained_work(graph, plan), *plan.log_facts]
        return [*of_plan, *_explained_logs(graph, plan), *shown_tables(graph)]

    def _explained_work(self, graph: StreamGraph, plan: JobPlan) -> Iterator[str]:
        """Yield whether Spark alone computes the DataFrame of the results, or tasks merge events before the shuffle."""
        if not has_no_operator(plan):
            yield _explained_merging(plan)
            return
        try:
            job_columns(self._spark, plan, log_sources(graph))
        except NotJustColumns as reason:
            yield f"to_dataframe() replays the log, for {reason}"
        else:
            yield "to_dataframe() gives columns that Spark computes, without a replay"

    def execution_plan(self, job: ElementJob, configuration: ExecutionConfig) -> str:
        """Return the operators of a job that runs element by element as JSON."""
        return execution_plan(job, configuration)

    def start(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> SparkElementRun:
        """Plan a job of single elements; it runs when its first element is asked for.

        Parameters
        ----------
        job : ElementJob
            Its sinks, and what the program collects.
        configuration : ExecutionConfig
            Parallelism, number of key groups, auto-watermark interval, arrival rate.
        checkpoints : CheckpointSettings
            Checkpoint from which the job resumes, and the one with which it stops: paths that driver and executors
            share.
        """
        check_session(self._spark)
        SentFiles.of(self._spark).task_modules.add(ElementTask.__module__)
        configuration.require_arrival_clock("a job on Spark", _NO_COMMON_CLOCK)
        return SparkElementRun(self._spark, job, configuration, self.execute, checkpoints)

    def start_in_background(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> NoReturn:
        """Raise a ConfigurationError: a job on Spark runs while the program waits for it."""
        raise ConfigurationError(
            "execute_async() runs a job in this process; a job on Spark runs within execute(): call that in a thread "
            "of your own"
        )

    def add_python_file(self, path: Path) -> None:
        """Send a module, folder or archive of modules to the executors, for the later jobs of the session."""
        SentFiles.of(self._spark).add_python_file(self._spark, path)

    def add_python_archive(self, archive: PythonArchive) -> None:
        """Send an archive of files to the executors, for the later jobs of the session."""
        SentFiles.of(self._spark).add_python_archive(self._spark, archive)

    def check_python_executable(self, python_exec: str) -> None:
        """Raise ConfigurationError unless the session's workers run the interpreter."""
        found = workers_interpreter(self._spark)
        if found != python_exec:
            raise ConfigurationError(
                f"functions are run by {found or 'the interpreter of the server'}, which is chosen before a session "
                f'starts: configure_spark(builder.config("spark.pyspark.python", {python_exec!r})) instead of '
                "set_python_executable; one within an archive also by spark.archives=ARCHIVE#FOLDER"
            )

    def _default_parallelism(self) -> int:
        """Found once, so that all jobs of the environment divide their logs alike."""
        if self._cores is None:
            self._cores = default_parallelism(self._spark)
        return self._cores


def _explained_logs(graph: StreamGraph, plan: JobPlan | None) -> list[str]:
    logs = [step for step in graph.transformations() if isinstance(step, EventLogSource)]
    read = {id(log): log.data.schema.names for log in logs if isinstance(log.data, DataFrameLog)}
    if plan is not None:
        sources = log_sources(graph)
        for together in plan.ways:
            source = sources[together[0]]
            if id(source) in read:
                read[id(source)] = list(columns_read(*(plan.logs[number] for number in together)))
    otherwise = "collected by the driver" if graph.needs_rows else "evaluated once, and their rows kept"
    return [
        f"{log.data}: "
        + how_read(
            log.data,
            read[id(log)],
            log.log.arrival is not None,
            otherwise,
            needs_rows=graph.needs_rows,
        )
        for log in logs
        if id(log) in read
    ]


def _explained_merging(plan: JobPlan) -> str:
    windows = plan.partial_windows()
    if isinstance(windows, str):
        return f"events go through the shuffle one by one: {windows}"
    return f"events of a key and {windows.pane} are merged before the shuffle where that leaves far fewer"
