"""The execution environment, where programs start: settings, sources, and the executor of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from flinkcore.common.configuration import Configuration
from flinkcore.common.io import InputFormat
from flinkcore.common.job_client import JobClient
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.settings import flink_settings as settings
from flinkcore.common.time import Interval, timeout_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import Source
from flinkcore.datastream.connectors.collection import CollectionSource
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import ParallelSourceFunction, SourceFunction
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.element_transformations import (
    ConnectedTransformation,
    ElementTransformation,
    ElementWindowTransformation,
    LegacySourceTransformation,
    SinkTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.pipeline_executor import (
    NO_CHECKPOINTS,
    CheckpointSettings,
    ElementJob,
    ElementJobRun,
    PipelineExecutor,
    RestoreFrom,
    SavepointStop,
    savepoint_stop,
)
from flinkcore.datastream.graph.transformations import EventLogSource, Transformation
from flinkcore.datastream.sql_environment import SqlEnvironment
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.timestamps import as_watermark_strategy
from flinkcore.datastream.waiting_sinks import WaitingSinks
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.logs.log_stream import LogStream
    from flinkcore.datastream.replaced_topics import ReplacedTopics

S = TypeVar("S", bound="StreamExecutionEnvironment")


class StreamExecutionEnvironment(SqlEnvironment):
    """Holds the settings of jobs and creates their source streams.

    Settings of a cluster that have no meaning in one process are accepted, so that programs need not be changed;
    settings that a program would rely on are refused.

    Parameters
    ----------
    executor : PipelineExecutor, optional
        Runs the jobs; the embedded executor (one process, no JVM) by default.

    Notes
    -----
    Follows ``pyflink.datastream.StreamExecutionEnvironment``. Deliberate difference: the environment knows only the
    sinks of a graph. :meth:`execute` runs the steps that lead to them; so does :meth:`DataStream.execute_and_collect`,
    with the steps that lead to that stream. The sinks are then cleared, as in Flink. A step that leads to no sink is
    never run. A columnar job needs no sink: :meth:`LogStream.execute` of its result stream runs it.

    Examples
    --------
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    >>> env.get_parallelism()
    2
    """

    _savepoint_of_jobs: Callable[[Configuration], SavepointStop] | None = None
    """Makes the savepoint with which jobs stop whose program names neither a savepoint nor a checkpoint."""

    _new_context_environment: ClassVar[Callable[[], StreamExecutionEnvironment] | None] = None

    def __init__(self, executor: PipelineExecutor | None = None) -> None:
        super().__init__(executor)
        self._time_characteristic = TimeCharacteristic.EventTime
        self._sinks: list[SinkTransformation] = []
        self._steps: list[Transformation] = []
        # `flinkcore run` has a message of its own.
        self._waiting_sinks = (
            WaitingSinks() if StreamExecutionEnvironment._new_context_environment is None else None
        )

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """Return a new environment that runs jobs embedded, in this process, or as ``flinkcore run`` requires.

        Parameters
        ----------
        configuration : Configuration, optional
            As for :meth:`configure`.
        """
        new_environment = StreamExecutionEnvironment._new_context_environment
        environment = StreamExecutionEnvironment() if new_environment is None else new_environment()
        if configuration is not None:
            environment._configure(configuration)
        return environment

    @staticmethod
    def initialize_context_environment(
        new_environment: Callable[[], StreamExecutionEnvironment] | None,
    ) -> None:
        """Set which environments programs get, in all of this process.

        Parameters
        ----------
        new_environment : callable or None
            Makes the environments that :meth:`get_execution_environment` returns, or None for embedded ones.

        Notes
        -----
        Follows ``StreamExecutionEnvironment.initializeContextEnvironment`` and ``resetContextEnvironment``.
        """
        StreamExecutionEnvironment._new_context_environment = new_environment

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Return the time that source functions run on; event time by default."""
        return self._time_characteristic

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Set the time that source functions and collections run on, and with it the auto-watermark interval.

        Parameters
        ----------
        characteristic : TimeCharacteristic
            ProcessingTime sets the interval to 0 (no periodic watermark), the others to 200 ms. To change the interval,
            set it afterwards.

        Raises
        ------
        ConfigurationError
            If it is not a TimeCharacteristic.
        """
        if not isinstance(characteristic, TimeCharacteristic):
            raise ArgumentTypeError(
                f"a time characteristic is one of TimeCharacteristic, not {characteristic!r}"
            )
        self._time_characteristic = characteristic
        self._config.set_auto_watermark_interval(characteristic.auto_watermark_interval_ms)

    def from_collection(self, collection: Any, type_info: TypeInformation | None = None) -> DataStream:
        """Return the stream of the elements of a collection.

        Parameters
        ----------
        collection : iterable
            Its elements are copied now. On the job's clock they arrive at the rate of
            :meth:`ExecutionConfig.set_arrival_rate`.
        type_info : TypeInformation, optional
            Type of the elements; any Python object by default.

        Raises
        ------
        ConfigurationError
            If it is not a collection, or the type is invalid.
        DataError
            If an element is of another type.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.from_collection``.
        """
        declared = declared_type(type_info, "type_info")
        source = CollectionSource(collection, declared)
        stream = DataStream(self, SourceTransformation(source, None, declared))
        return stream.name("Collection Source").force_non_parallel()

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Return the stream of the elements of a source.

        Parameters
        ----------
        source : Source
            From :mod:`flinkcore.datastream.connectors`.
        watermark_strategy : WatermarkStrategy
            Applied to each split of the source.
        source_name : str
        type_info : TypeInformation, optional
            Type of the elements; that of the source by default.

        Raises
        ------
        ConfigurationError
            If it is not a source, or the type is invalid.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.from_source``.
        """
        if not isinstance(source, Source):
            raise ArgumentTypeError(
                f"from_source takes a source such as a FileSource or NumberSequenceSource, not {source!r}; an event "
                "log is read by from_event_log(...)"
            )
        declared = source.produced_type() if type_info is None else declared_type(type_info, "type_info")
        if isinstance(source, Source) and source.is_of_cluster:
            strategy = as_watermark_strategy(watermark_strategy)
            return self._of_topics(source, strategy, declared).name(source_name)
        if self._stores is not None:
            source = source.in_stores(self._stores)
        strategy = as_watermark_strategy(watermark_strategy)
        stream = DataStream(self, SourceTransformation(source, strategy, declared)).name(source_name)
        return stream if source.is_parallel() else stream.force_non_parallel()

    def replace_source(
        self: S, source: type, dumps: Mapping[str, str | PathLike[str] | Sequence[str | PathLike[str]]]
    ) -> S:
        """Read dumps of topics in place of sources of a cluster, so that their program need not be changed.

        Parameters
        ----------
        source : type
            ``KafkaSource`` or ``FlinkKafkaConsumer`` of :mod:`flinkcore.datastream.connectors.kafka`: all sources of
            this class that the environment gets later.
        dumps : mapping of str to path, or sequence of these
            For each topic files, directories, globs or URIs of stores, added to those of earlier calls. Their files are

            - lines of text or JSON, with a value each, also compressed. Names such as ``clicks+0+0000000042.json``, as
              Kafka Connect gives them, have the partition and the offset of the first line; directories such as
              ``partition=0`` have the partition, and offsets are counted from 0; otherwise each file is a partition.
              Records have no timestamps, so that a TimestampAssigner is needed for event time. They arrive at the rate
              of :meth:`ExecutionConfig.set_arrival_rate`, and partitions take turns.
            - Parquet, Avro or Arrow, or a Delta or Iceberg table, with a column ``value`` (binary or text) and any of
              ``topic``, ``partition``, ``offset`` and ``timestamp``, as Spark's Kafka source has them. Records arrive
              at their timestamps, or with a later one that lies before them in their partition.

        Returns
        -------
        StreamExecutionEnvironment
            This environment.

        Raises
        ------
        ConfigurationError
            If it is another class, or no mapping of topics to paths.

        Notes
        -----
        Each partition is a split with its own watermark, as in Flink, and the default timestamp of an element is that
        of its record. A record that is in the dump twice, by its partition and offset, is read once, with a warning.
        The places of records are read ahead of all else, and take some 50 bytes of memory each.
        """
        self._replaced_topics.add_dumps(source, dumps)
        return self

    def replace_sink(
        self: S, sink: type, directory: str | PathLike[str], format: Literal["lines", "parquet"] | None = None
    ) -> S:
        """Write files in place of sinks of a cluster.

        Parameters
        ----------
        sink : type
            ``KafkaSink`` or ``FlinkKafkaProducer`` of :mod:`flinkcore.datastream.connectors.kafka`: all sinks of this
            class that streams get later.
        directory : path
            A local directory. The records of each topic are written into a directory of its name within it, from where
            :meth:`replace_source` reads them. All files appear at the end of the job, or none.
        format : {"lines", "parquet"}, optional
            A value in each line, or Parquet with the columns ``key``, ``value`` and ``topic``. By default lines for
            texts and JSON without keys, else Parquet. A record with a key or a line break is an error in lines.

        Returns
        -------
        StreamExecutionEnvironment
            This environment.

        Raises
        ------
        ConfigurationError
            If it is another class, the directory is not local, or there is no such format.
        """
        self._replaced_topics.set_directory(sink, directory, format)
        return self

    @cached_property
    def _replaced_topics(self) -> ReplacedTopics:
        """The files in place of topics, whose classes few programs load."""
        from flinkcore.datastream.replaced_topics import ReplacedTopics

        return ReplacedTopics()

    def _of_topics(self, source: Any, strategy: WatermarkStrategy, declared: TypeInformation) -> DataStream:
        step = self._replaced_topics.source_step(source, strategy, declared, self._stores, self._until_ms())
        return DataStream(self, step)

    def create_input(self, input_format: InputFormat, type_info: TypeInformation | None = None) -> DataStream:
        """Return the stream of the elements that a format reads.

        Parameters
        ----------
        input_format : InputFormat
            Such as an ``AvroInputFormat``.
        type_info : TypeInformation, optional
            Type of the elements; by default that of the format.

        Raises
        ------
        ConfigurationError
            If it is none that reads files.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.create_input``.
        """
        from flinkcore.datastream.connectors.file_system.file_source import FileSource, StreamFormat

        if not isinstance(input_format, InputFormat) or not isinstance(input_format, StreamFormat):
            raise ArgumentTypeError(
                f"create_input takes a format such as AvroInputFormat(path, schema), not {input_format!r}; other files "
                "are read by from_source(FileSource...)"
            )
        source = FileSource.for_record_stream_format(input_format, input_format.path).build()
        return self.from_source(source, WatermarkStrategy.no_watermarks(), "Custom File source", type_info)

    def add_source(
        self,
        source_func: SourceFunction,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
        idle_timeout: Interval | None = None,
    ) -> DataStream:
        """Return the stream of the elements that a source function emits.

        The time characteristic of this environment determines its timestamps and watermarks: in event time
        they are those of the function; in ingestion time, those of the job's clock; in processing time it has neither.

        Parameters
        ----------
        source_func : SourceFunction
            Run by one subtask, or a ParallelSourceFunction by several. May emit without end: results come as it runs.
        source_name : str
        type_info : TypeInformation, optional
            Type of the elements; any Python object by default.
        idle_timeout : Time, Duration, datetime.timedelta or int (ms), optional
            A subtask that emits nothing for so long on the job's clock is idle, and holds no watermark back. By default
            it is idle only if it states so.

        Raises
        ------
        ConfigurationError
            If it is not a source function, the type is invalid, or the timeout is not above zero.

        Notes
        -----
        Follows ``addSource`` of Flink 1.20, which has no idle timeout. PyFlink's takes Java functions.
        """
        if getattr(source_func, "is_of_cluster", False) and not isinstance(source_func, Source):
            consumer: Any = source_func
            declared = (
                consumer.get_produced_type() if type_info is None else declared_type(type_info, "type_info")
            )
            return self._of_topics(consumer, consumer.strategy, declared).name(source_name)
        if not isinstance(source_func, SourceFunction):
            hint = (
                f"; take from_source for the source {source_func}" if isinstance(source_func, Source) else ""
            )
            raise ArgumentTypeError(f"add_source takes a SourceFunction, not {source_func!r}{hint}")
        declared = declared_type(type_info, "type_info")
        idle_timeout_ms = None if idle_timeout is None else timeout_ms(idle_timeout, "idle_timeout")
        source = LegacySourceTransformation(source_func, declared, idle_timeout_ms)
        stream = DataStream(self, source).name(source_name)
        return stream if isinstance(source_func, ParallelSourceFunction) else stream.force_non_parallel()

    def execute(
        self,
        job_name: str | None = None,
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
        stop_with_savepoint: str | PathLike[str] | SavepointStop | None = None,
    ) -> JobExecutionResult:
        """Run the sinks of this environment, and all steps with functions of single elements, and forget them.

        Parameters
        ----------
        job_name : str, optional
        restore_from : path or flinkcore.savepoints.SavepointSource, optional
            Checkpoint of an earlier run of this job, from which it resumes with the present elements of its sources; on
            the system clock after the elements that they had emitted.
        stop_with_checkpoint : path, optional
            Directory for a checkpoint with which the job stops: the end of its sources then fires nothing. On the
            system clock also Ctrl-C and `cancel` stop it so.
        stop_with_savepoint : path or flinkcore.savepoints.SavepointTarget, optional
            Savepoint of Flink that is made of this checkpoint, or of a temporary one in its directory.

        Returns
        -------
        JobExecutionResult

        Raises
        ------
        ConfigurationError
            If there is neither a sink nor such a step, or the job is invalid.
        UserCodeError
            If a function raises.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.execute``: steps need not lead to a sink. Steps over
        columns are run if they lead to one.
        """
        self._require_steps()
        checkpoints = self._checkpoint_settings(restore_from, stop_with_checkpoint, stop_with_savepoint)
        return self._start_job(job_name, None, checkpoints).run_to_end()

    def execute_async(
        self,
        job_name: str | None = None,
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> JobClient:
        """Start in the background what :meth:`execute` runs.

        Parameters
        ----------
        job_name : str, optional
        restore_from, stop_with_checkpoint : path, optional
            As of :meth:`execute`; `cancel` of the result, too, then stops the job with the checkpoint.

        Returns
        -------
        JobClient
            Cancels the job, or waits for its result. The job ends with the program at the latest.

        Raises
        ------
        ConfigurationError
            If there is nothing to run, or the job is invalid, or it is one on Spark.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.execute_async``.
        """
        self._require_steps()
        checkpoints = self._checkpoint_settings(restore_from, stop_with_checkpoint)
        job = self._job(job_name, None)
        running = self.executor.start_in_background(job, self._config.for_job(job.is_bounded), checkpoints)
        return JobClient(running, self.get_default_savepoint_directory())

    def _log_stream(self, source: EventLogSource) -> LogStream:
        from flinkcore.datastream.logs.log_stream import LogStream

        return LogStream(self, source)

    def _has_unexecuted(self) -> bool:
        """Return whether there are sinks or steps for :meth:`execute`."""
        return bool(self._sinks or self._steps)

    def _require_steps(self) -> None:
        if not self._has_unexecuted():
            raise ConfigurationError(
                "No operators defined in streaming topology. Cannot execute: give a stream to print(), sink_to(...) or "
                "add_sink(...), or take its elements by execute_and_collect(). What was run once is not run again"
            )

    def _checkpoint_settings(
        self,
        restore_from: RestoreFrom | None,
        stop_with_checkpoint: str | PathLike[str] | None,
        stop_with_savepoint: str | PathLike[str] | SavepointStop | None = None,
    ) -> CheckpointSettings:
        """Return the checkpoints of a job, which may be restored from where ``execution.state-recovery.path`` says."""
        restored = self._configuration.get(settings.RESTORE_PATH) if restore_from is None else restore_from
        savepoint = savepoint_stop(stop_with_savepoint)
        if savepoint is None and stop_with_checkpoint is None and self._savepoint_of_jobs is not None:
            savepoint = self._savepoint_of_jobs(self._configuration)
        if savepoint is not None and stop_with_checkpoint is None:
            stop_with_checkpoint = savepoint.checkpoint_path
        return CheckpointSettings(restored, stop_with_checkpoint, self._stores, savepoint)

    def _add_sink(self, sink: SinkTransformation) -> None:
        self._sinks.append(sink)
        if self._waiting_sinks is not None:
            self._waiting_sinks.add()

    def _add_step(self, step: Transformation) -> None:
        """Note a step, which `execute` runs even if no sink reads it."""
        if isinstance(step, ElementTransformation | ElementWindowTransformation | ConnectedTransformation):
            self._steps.append(step)

    def _start_job(
        self,
        job_name: str | None,
        collected: Transformation | None,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> ElementJobRun:
        job = self._job(job_name, collected)
        return self.executor.start(job, self._config.for_job(job.is_bounded), checkpoints)

    def _job(self, job_name: str | None, collected: Transformation | None) -> ElementJob:
        job = self._planned_job(job_name, collected)
        self.close()
        return job

    def _planned_job(self, job_name: str | None, collected: Transformation | None) -> ElementJob:
        if job_name is not None and not isinstance(job_name, str):
            raise ArgumentTypeError(f"the name of a job is a text, not {job_name!r}")
        self._require_cut()
        name = job_name or self._config.get_job_name()
        without_sinks = tuple(self._steps) if collected is None else ()
        return ElementJob(name, tuple(self._sinks), collected, self._time_characteristic, without_sinks)

    def get_execution_plan(self) -> str:
        """Return the operators that :meth:`execute` runs, and how they are connected, as JSON.

        Returns
        -------
        str
            ``{"nodes": [...]}``, as Flink's plan visualizer reads it: each node has ``id``, ``type`` (its name),
            ``pact`` (Data Source, Operator or Data Sink), ``contents`` (its description), ``parallelism`` and, unless
            it is a source, ``predecessors`` with ``id``, ``ship_strategy`` and ``side``.

        Raises
        ------
        ConfigurationError
            If there is nothing to run, or the job is invalid.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.get_execution_plan``. Deliberate differences: ids count
        the operators of the plan; those with which PyFlink makes texts of untyped elements, and reads side outputs, are
        not there; each function is an operator, as in PyFlink without ``python.operator-chaining.enabled``.
        """
        self._require_steps()
        self._settle_sinks()
        job = self._planned_job(None, None)
        return self.executor.execution_plan(job, self._config.for_job(job.is_bounded))

    def close(self) -> None:
        """Forget the sinks and steps that were not executed."""
        self._sinks.clear()
        self._steps.clear()
        self._settle_sinks()

    def _settle_sinks(self) -> None:
        """Say nothing of the current sinks when the script ends."""
        if self._waiting_sinks is not None:
            self._waiting_sinks.clear()
