"""The execution environment, where programs start: settings, sources, and the executor of jobs."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.sort_keys import Position, sort_keys
from flinkcore._internal.arrow.time_units import TimeUnit
from flinkcore._internal.io.locations import absolute_location, path_text
from flinkcore._internal.python.extras import library
from flinkcore._internal.python.missing_features import WithFormerMethods
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.common.configuration import Configuration
from flinkcore.common.execution_config import ExecutionConfig, JobClockName
from flinkcore.common.io import InputFormat
from flinkcore.common.job_client import JobClient
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.settings import flink_settings as settings
from flinkcore.common.settings.flink_settings import (
    Setting,
    check_cached_files,
    settings_of,
    unknown_settings,
)
from flinkcore.common.settings.setting_types import as_text
from flinkcore.common.split_origin import PARTITION, SplitOrigin
from flinkcore.common.time import Interval, timeout_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.checkpoint_config import CheckpointConfig
from flinkcore.datastream.checkpointing_mode import CheckpointingMode
from flinkcore.datastream.connectors.base import Source
from flinkcore.datastream.connectors.collection import CollectionSource
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.execution_mode import RuntimeExecutionMode
from flinkcore.datastream.functions import ParallelSourceFunction, SourceFunction
from flinkcore.datastream.graph.arrow_data import ArrowData
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.element_transformations import (
    ConnectedTransformation,
    ElementTransformation,
    ElementWindowTransformation,
    LegacySourceTransformation,
    SinkTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.pipeline_executor import (
    NO_CHECKPOINTS,
    CheckpointSettings,
    ElementJob,
    ElementJobRun,
    PipelineExecutor,
    load_executor,
)
from flinkcore.datastream.graph.transformations import EventLogSource, LogData, Transformation
from flinkcore.datastream.state_backend import StateBackend
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.timestamps import as_watermark_strategy
from flinkcore.datastream.waiting_sinks import WaitingSinks
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore._internal.io.stores import Stores
    from flinkcore.common.restart_strategy import RestartStrategyConfiguration
    from flinkcore.datastream.graph.lake_tables import LakeTable
    from flinkcore.datastream.logs.log_stream import LogStream
    from flinkcore.datastream.slot_sharing_group import SlotSharingGroup

S = TypeVar("S", bound="StreamExecutionEnvironment")


class StreamExecutionEnvironment(WithFormerMethods):
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

    _new_context_environment: ClassVar[Callable[[], StreamExecutionEnvironment] | None] = None
    _default_local_parallelism: ClassVar[int | None] = None

    def __init__(self, executor: PipelineExecutor | None = None) -> None:
        self._executor = executor
        self._configuration = Configuration()
        self._config = ExecutionConfig(self._configuration)
        self._checkpoint_config = CheckpointConfig(self._configuration)
        if executor is None and self._default_local_parallelism is not None:
            self._config.set_parallelism(self._default_local_parallelism)
        self._state_backend: StateBackend | None = None
        self._restart_strategy: RestartStrategyConfiguration | None = None
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

    def configure(self, configuration: Configuration | Mapping[str, str]) -> None:
        """Apply settings.

        Parameters
        ----------
        configuration : Configuration or mapping of str to str
            Flink's settings by their keys, in Flink's spellings: docs/settings.md says which have an effect, which have
            no meaning here, and which are refused; with a warning, others are ignored.

        Raises
        ------
        ConfigurationError
            If a value is invalid, or is refused.
        SourceError
            If there is no such file of Python.
        """
        self._configure(configuration)

    def _configure(self, configuration: Configuration | Mapping[str, str]) -> None:
        """Apply settings, and warn of unknown ones."""
        if isinstance(configuration, Mapping):
            configuration = Configuration.from_dict(configuration)
        elif not isinstance(configuration, Configuration):
            raise ArgumentTypeError(
                f"settings are a Configuration or a dictionary of texts, not {configuration!r}"
            )
        changed = list(settings_of(configuration))
        for warning in unknown_settings(configuration).values():
            warn_user(warning)
        for setting, value in changed:
            if setting is settings.CACHED_FILES:
                self._add_cached_files(value)
                continue
            if setting is settings.RESTART_STRATEGY:
                self._restart_strategy = None
            self._configuration.set(setting, value)
            self._add_python_dependencies(setting, value)

    def _add_python_dependencies(self, setting: Setting[Any], value: Any) -> None:
        if setting is settings.PYTHON_FILES:
            for path in _listed(value):
                self.add_python_file(path)
        elif setting is settings.PYTHON_ARCHIVES:
            for path, _, folder in (archive.partition("#") for archive in _listed(value)):
                self.add_python_archive(path, folder or None)
        elif setting is settings.PYTHON_REQUIREMENTS:
            path, _, cache = value.partition("#")
            self.set_python_requirements(path, cache or None)
        elif setting is settings.PYTHON_EXECUTABLE:
            self.set_python_executable(value)

    def get_config(self) -> ExecutionConfig:
        """Return the settings, to be read and changed."""
        return self._config

    def get_parallelism(self) -> int:
        """Return the number of parallel tasks; -1 leaves it to the executor (embedded: one per processor)."""
        return self._config.get_parallelism()

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of parallel tasks (embedded: threads), and return this environment.

        Results do not depend on it.
        """
        self._config.set_parallelism(parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups."""
        return self._config.get_max_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of key groups, from 1 to 32,768 (default 128), and return this environment."""
        self._config.set_max_parallelism(max_parallelism)
        return self

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

    def set_clock(self: S, clock: JobClockName) -> S:
        """Set which clock shows the processing time of jobs of Python functions.

        Parameters
        ----------
        clock : {"arrival", "system"}
            ``arrival``, the default: when elements arrive, which does not depend on how fast the job runs. ``system``:
            the time of this machine, as in PyFlink. Processing-time timers and windows, periodic watermarks, idleness
            and times to live follow it, and sources may go on without end. Such a job runs by itself in one thread,
            which calls functions and, between elements, timers. It ends with its sources, by Ctrl-C, by the end of
            ``with stream.execute_and_collect() as results``, or by ``execute_async().cancel()``.

        Raises
        ------
        ConfigurationError
            If it is neither of these. Jobs on Spark, columnar jobs and event logs refuse the system clock when they are
            executed.
        """
        self._config.set_clock(clock)
        return self

    def get_clock(self) -> JobClockName:
        """Return which clock shows the processing time of jobs of Python functions."""
        return self._config.get_clock()

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
        if self._stores is not None:
            source = source.in_stores(self._stores)
        strategy = as_watermark_strategy(watermark_strategy)
        stream = DataStream(self, SourceTransformation(source, strategy, declared)).name(source_name)
        return stream if source.is_parallel() else stream.force_non_parallel()

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
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> JobExecutionResult:
        """Run the sinks of this environment, and all steps with functions of single elements, and forget them.

        Parameters
        ----------
        job_name : str, optional
        restore_from : path, optional
            Checkpoint of an earlier run of this job, from which it resumes with the present elements of its sources; on
            the system clock after the elements that they had emitted.
        stop_with_checkpoint : path, optional
            Directory for a checkpoint with which the job stops: the end of its sources then fires nothing. On the
            system clock also Ctrl-C and `cancel` stop it so.

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
        checkpoints = self._checkpoint_settings(restore_from, stop_with_checkpoint)
        return self._start_job(job_name, None, checkpoints).run_to_end()

    def execute_async(
        self,
        job_name: str | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> JobClient:
        """Let what :meth:`execute` runs run in the background.

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
        restore_from: str | PathLike[str] | None,
        stop_with_checkpoint: str | PathLike[str] | None,
    ) -> CheckpointSettings:
        """Return the checkpoints of a job, which may be restored from where ``execution.state-recovery.path`` says."""
        restored = self._configuration.get(settings.RESTORE_PATH) if restore_from is None else restore_from
        return CheckpointSettings(restored, stop_with_checkpoint, self._stores)

    @property
    def _stores(self) -> Stores | None:
        """File systems of locations with the settings of the executor; None: those of the environment."""
        return None if self._executor is None else self._executor.stores

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

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Disable operator chaining; results stay the same."""
        self._config.set_chaining_enabled(False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Return whether operators are chained: call the next one directly where they can."""
        return self._config.is_chaining_enabled()

    def close(self) -> None:
        """Forget the sinks and steps that were not executed."""
        self._sinks.clear()
        self._steps.clear()
        self._settle_sinks()

    def _settle_sinks(self) -> None:
        """Say nothing of the current sinks when the script ends."""
        if self._waiting_sinks is not None:
            self._waiting_sinks.clear()

    @property
    def executor(self) -> PipelineExecutor:
        """The executor of this environment's jobs."""
        if self._executor is None:
            self._executor = load_executor("embedded")
        return self._executor

    def add_python_file(self, file_path: str | PathLike[str]) -> None:
        """Make a module importable for the functions of jobs: here, or on the executors of the Spark session.

        Parameters
        ----------
        file_path : path
            A module (``.py``), a folder with modules and packages, or an archive of them (``.zip``, ``.egg``,
            ``.whl``); relative to the working directory. Its modules take precedence over others of the same name.

        Raises
        ------
        SourceError
            If there is no such file or folder, or it is none of these.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.add_python_file``. Deliberate difference: for a single
        module, jobs that run in this process can import everything in its folder.
        """
        from flinkcore.datastream.graph.python_dependencies import python_file

        self.executor.add_python_file(python_file(file_path))

    def add_python_archive(self, archive_path: str | PathLike[str], target_dir: str | None = None) -> None:
        """Provide the functions of jobs with the files of an archive, in a folder of their working directory.

        Parameters
        ----------
        archive_path : path
            A zip file (``.zip``, ``.jar``, ``.egg``, ``.whl``) or a tar file (``.tar.gz``, ``.tgz``, ``.tar``),
            relative to the working directory of the program.
        target_dir : str, optional
            The folder, relative to the working directory of functions: ``open("target_dir/data.txt")``. By default the
            name of the archive's file. It takes the place of an archive that had this folder before.

        Raises
        ------
        ConfigurationError
            If the folder is not below the working directory, or within that of another archive.
        SourceError
            If there is no such archive, or it is damaged.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.add_python_archive``. As there, functions of jobs with
        archives have a working directory of their own, which has nothing but these folders. A job in this process
        enters it whenever it runs, and so runs in one thread. Deliberate difference: archives with one folder
        are not mixed.
        """
        from flinkcore.datastream.graph.python_dependencies import python_archive

        self.executor.add_python_archive(python_archive(archive_path, target_dir))

    def set_python_requirements(
        self,
        requirements_file_path: str | PathLike[str],
        requirements_cache_dir: str | PathLike[str] | None = None,
    ) -> None:
        """Install packages for the functions of jobs, apart from those of this interpreter.

        Parameters
        ----------
        requirements_file_path : path
            A requirements file of pip.
        requirements_cache_dir : path, optional
            A folder with all packages, as ``pip download`` makes it; by default they come from pip's index.

        Raises
        ------
        ConfigurationError
            If pip cannot install them.
        SourceError
            If there is no such file or folder.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.set_python_requirements``. Deliberate difference: they
        are installed at once, by pip of this interpreter and for its platform, and executors of Spark are sent them.
        """
        from flinkcore.datastream.graph.python_dependencies import installed_requirements

        self.executor.add_python_file(installed_requirements(requirements_file_path, requirements_cache_dir))

    def set_python_executable(self, python_exec: str) -> None:
        """Check that an interpreter is the one that runs the functions of jobs.

        Parameters
        ----------
        python_exec : str
            A path, or the name of a program on the ``PATH``.

        Raises
        ------
        ConfigurationError
            If functions are run by another one, which is chosen where the program or the Spark session is started.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.set_python_executable``, which chooses it.
        """
        self.executor.check_python_executable(python_exec)

    def from_event_log(
        self,
        path_or_table: Any,
        *,
        timestamp: str | Expression,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = PARTITION,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        schema: Any = None,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        position: Position | None = None,
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
    ) -> LogStream:
        """Return the stream of events of a log.

        Nothing is read before the job runs. In its results, ``window_start`` and ``window_end`` are timestamps in ms.
        They are instants, in UTC, if the source's timestamp is a number or text (also in CSV and JSON, whatever its
        form). They have its time zone if it is an Arrow timestamp, and no zone if it has none or is a date.
        ``watermark`` is an integer in ms, and 2**63 - 1 for what fires at the end of the log. Columns of an extension
        type have the values of its storage: a uuid is 16 bytes.

        Parameters
        ----------
        path_or_table : str, os.PathLike, sequence of these, or Arrow data
            A file, directory, glob or URI of a store, or several, of which a file that is named twice is read once
            (the files of a directory or glob by path, ``2.json`` before ``10.json``). The directory of a Delta table,
            or a local one of an Iceberg table, is read as that table at its current version, as by :meth:`from_delta`
            and :meth:`from_iceberg`. Other paths to files of a table are refused, because these still hold rows that
            were removed; a list of single files with a `format` reads them as they are.
            Or anything with ``__arrow_c_stream__``
            or ``__arrow_c_array__`` (a table of pyarrow, Polars, DuckDB, ...), which the first job reads for all jobs
            over the stream. On Spark also a DataFrame.
        timestamp : str or pyarrow.compute.Expression
            Column with the source's timestamp, without nulls: integer milliseconds since the epoch, or numbers in
            `timestamp_unit`; an Arrow timestamp of any unit (UTC if it has no zone) or date; or ISO 8601 text such as
            ``2001-01-31T12:00:00.250Z`` (UTC if it has no offset). Fractions of a millisecond are floored. Or an
            expression over the log's columns with one of these types. If :meth:`LogStream.with_columns` replaces the
            column before timestamps are assigned, the new values are used.
        arrival : str or pyarrow.compute.Expression, optional
            The processing time at which the event reached the system, of the same types; always of the log as it was
            recorded. By default it is derived from the position in the split, `rate` and `arrival_start_ms`.
        split : str, PARTITION, FILE or None
            Column with the split (Kafka partition, device, ...) of each event. ``PARTITION``: each partition that the
            paths of all files name is a split, such as directories ``partition=3`` or files of Kafka Connect
            (``clicks+3+0000000042.avro``); a log whose paths name none is one split. ``FILE``: each file is a split.
            With None the whole log is one split, with several files in the order given. Within a split, events are in
            order of arrival.
        rate : float
            Records per second of each split without an arrival column: by default, 1,000, so that with watermarks every
            200 ms the watermark advances every 200 rows.
        arrival_start_ms : int
            Arrival of the first record of each split without an arrival column, in ms since the epoch.
        format : str, optional
            ``parquet``, ``arrow``, ``avro``, ``csv`` or ``json`` (lines); by default according to the file name.
        format_options : mapping, optional
            Options of the format's reader.
        schema : pyarrow.Schema, pyspark.sql.types.StructType, str or mapping, optional
            Types of columns of files. A schema, also as a DDL string such as ``"user STRING, price DECIMAL(10, 2)"``,
            has all columns that are read. A mapping such as ``{"zip": "string"}`` has the types of some columns alone.
            None: the columns of all files, by name, with types that hold the values of all of them. A column that a
            file lacks is null there. What differs is in the report.
        filesystem : pyarrow.fs.FileSystem, optional
            File system of the paths; by default that of the URI, or the local one.
        on_bad_row : {"fail", "drop"} or OutputTag
            What happens to rows that cannot be processed, such as those with a null or invalid timestamp, and to lines
            of CSV and JSON that cannot be read: an error; dropped and counted; or sent to a side output. A log that
            several branches of a job use is read for each of them, with its bad rows: use a log and a tag of its own
            for each branch.
        position : str or sequence of str and (str, "descending"), optional
            Column, or several, that order the rows of each split, such as the offset in a Kafka partition, where they
            lie in no order. Events of a split are then ordered by `arrival`, if it is given; where that is the same ms,
            by these columns, the first of which counts most, with nulls first (descending: last); and then by the
            content of their rows, arbitrarily and always alike. Without `arrival`, it follows from the position in this
            order. The columns are read once more for that, before all else; embedded, this takes some 60 bytes of
            memory for each row of the log while they are sorted, 4 from then on, and rows are held until all that come
            before them have been read. On Spark, a task sorts the columns of a split, as far as need be on disk.
        timestamp_unit : {"s", "ms", "us", "ns"}, optional
            Unit of the numbers in `timestamp` since the epoch: integers, decimals, floats (rounded to microseconds
            first) or these as text. By default integers are milliseconds, and the job fails if all of them lie where no
            log has times in milliseconds, but in another unit; ``"ms"`` also says that they are milliseconds in any
            case.
        arrival_unit : {"s", "ms", "us", "ns"}, optional
            The same for `arrival`.
        integer_times : bool
            Whether ``window_start``, ``window_end`` and other event times of results are integers in milliseconds since
            the epoch, and not timestamps.

        Raises
        ------
        ConfigurationError
            If a setting is invalid.

        Notes
        -----
        A job reports the version or snapshot of a table that it has read: ``result.report.tables``.
        """
        from flinkcore.datastream.logs.log_stream import LogStream

        is_table = isinstance(path_or_table, LogData)
        settings = LogSettings(
            timestamp=timestamp,
            arrival=arrival,
            split=split,
            rate=rate,
            arrival_start_ms=arrival_start_ms,
            on_bad_row=on_bad_row,
            has_positions=not is_table,
            position=path_or_table.position if is_table else None,
            ordered_by=() if position is None else sort_keys(position),
            timestamp_unit=timestamp_unit,
            arrival_unit=arrival_unit,
            integer_times=integer_times,
        )
        data = path_or_table if is_table else _data(path_or_table)
        if filesystem is None and isinstance(data, str | list):
            filesystem = self._stores
        return LogStream(self, EventLogSource(data, settings, format, format_options, filesystem, schema))

    def from_delta(
        self,
        path_or_table: Any,
        *,
        timestamp: str | Expression,
        version: int | str | datetime | None = None,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = PARTITION,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        storage_options: Mapping[str, str] | None = None,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        position: Position | None = None,
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
    ) -> LogStream:
        """Return the stream of events of a Delta table, through the library `deltalake` (``flinkcore[delta]``).

        The log has the rows that the table has at one version; the data files are read by the workers themselves.
        Files are found when the job is planned: without a version, those that the table has then. Rows of a table have
        no positions: those of a split are ordered by `arrival`, where that is the same by `position`, and then by their
        content, so that compacting the table changes no result. A :meth:`LogStream.filter` with a pyarrow expression,
        as a first step, belongs to the log: files and row groups that cannot meet it are not read, and rows that do not
        are not counted.

        Parameters
        ----------
        path_or_table : str, os.PathLike or deltalake.DeltaTable
            Path or URI; or a table, at the version that it has loaded.
        timestamp, arrival, split, rate, arrival_start_ms, on_bad_row, position
            As of :meth:`from_event_log`. With neither `arrival` nor `position`, the order is that of the table's files.
        timestamp_unit, arrival_unit, integer_times
            As of :meth:`from_event_log`.
        version : int, str or datetime, optional
            Number of the version, or the time as of which the table is read (ISO 8601, UTC without an offset); with a
            path only.
        storage_options : mapping of str to str, optional
            Options of deltalake, for the table's log.
        filesystem : pyarrow.fs.FileSystem, optional
            File system of the data files; by default that of the table's URI.

        Raises
        ------
        ConfigurationError
            If a setting is invalid, or deltalake is not installed.
        """
        from flinkcore.datastream.graph.lake_tables import DeltaTable

        library("deltalake", "delta", "from_delta")
        table: Any = path_or_table
        if isinstance(table, str | PathLike) and os.fspath(table):
            table = absolute_location(table)
        elif not hasattr(table, "get_add_actions"):
            raise ArgumentTypeError(
                f"from_delta takes the path of a table, or a deltalake.DeltaTable, not {reprlib.repr(table)}"
            )
        elif version is not None or storage_options is not None:
            raise ConfigurationError(
                "version= and storage_options= are for a path: give deltalake.DeltaTable(path, version=...) with them"
            )
        if isinstance(version, bool) or not isinstance(version, int | str | datetime | None):
            raise ArgumentTypeError(f"version= is a number, or a time as text or datetime, not {version!r}")
        return self._from_lake_table(
            DeltaTable(
                table, self._stores if filesystem is None else filesystem, (), version, storage_options
            ),
            timestamp=timestamp,
            arrival=arrival,
            split=split,
            rate=rate,
            arrival_start_ms=arrival_start_ms,
            on_bad_row=on_bad_row,
            position=position,
            timestamp_unit=timestamp_unit,
            arrival_unit=arrival_unit,
            integer_times=integer_times,
        )

    def from_iceberg(
        self,
        table: Any,
        *,
        timestamp: str | Expression,
        snapshot: int | str | datetime | None = None,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = PARTITION,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        position: Position | None = None,
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
    ) -> LogStream:
        """Return the stream of events of an Iceberg table, through the library `pyiceberg` (``flinkcore[iceberg]``).

        The log has the rows, and the columns, that the table has in one snapshot. Otherwise as :meth:`from_delta`.

        Parameters
        ----------
        table : pyiceberg.table.Table, str or os.PathLike
            ``catalog.load_table("logs.clicks")``; or the name of a table in the default catalog; or path or URI of a
            metadata file; or path of the local directory of a table, whose newest metadata file is read if their names
            or ``version-hint.text`` determine it.
        timestamp, arrival, split, rate, arrival_start_ms, filesystem, on_bad_row, position
            As of :meth:`from_delta`.
        timestamp_unit, arrival_unit, integer_times
            As of :meth:`from_event_log`.
        snapshot : int, str or datetime, optional
            Id of a snapshot, name of a branch or tag, or the time (UTC without a zone) as of which the table is read;
            by default the current one.

        Raises
        ------
        ConfigurationError
            If a setting is invalid, or pyiceberg is not installed.
        """
        from flinkcore.datastream.graph.lake_tables import IcebergTable

        library("pyiceberg", "iceberg", "from_iceberg")
        if isinstance(table, PathLike):
            table = absolute_location(table)
        if not (isinstance(table, str) and table) and not hasattr(table, "snapshot_by_id"):
            raise ConfigurationError(
                "from_iceberg takes a pyiceberg.table.Table, the name of a table, or the path of its directory or of a "
                "metadata file, not "
                f"{reprlib.repr(table)}"
            )
        if isinstance(snapshot, bool) or not isinstance(snapshot, int | str | datetime | None):
            raise ArgumentTypeError(
                f"snapshot= is the id of a snapshot, the name of a branch or tag, or a datetime, not {snapshot!r}"
            )
        return self._from_lake_table(
            IcebergTable(table, self._stores if filesystem is None else filesystem, (), snapshot),
            timestamp=timestamp,
            arrival=arrival,
            split=split,
            rate=rate,
            arrival_start_ms=arrival_start_ms,
            on_bad_row=on_bad_row,
            position=position,
            timestamp_unit=timestamp_unit,
            arrival_unit=arrival_unit,
            integer_times=integer_times,
        )

    def _from_lake_table(
        self, table: LakeTable, *, split: str | SplitOrigin | None, **settings: Any
    ) -> LogStream:
        from flinkcore.datastream.graph.lake_tables import refuse_files_as_splits

        refuse_files_as_splits(split)
        return self.from_event_log(table, split=split, **settings)

    def set_runtime_mode(self: S, execution_mode: RuntimeExecutionMode) -> S:
        """Set whether a job emits results for each element, or final ones only.

        Parameters
        ----------
        execution_mode : RuntimeExecutionMode
            STREAMING: for each element. BATCH: no watermark before the end of the input; a keyed step gets its elements
            key by key, those of a key in the order of their timestamps, and after them the timers of the key fire, also
            those of processing time; a reduce emits one result per key; elements wait for what is broadcast. They are
            sorted in memory. Columnar jobs take windows whose aggregates do not depend on the order of rows. AUTOMATIC:
            as BATCH if all sources are bounded, otherwise as STREAMING, and so if one of them is an event log, which is
            the record of a stream.

        Raises
        ------
        ConfigurationError
            If it is not a RuntimeExecutionMode.
        """
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise ArgumentTypeError(f"a mode is one of RuntimeExecutionMode, not {execution_mode!r}")
        self._configuration.set(settings.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Set after how long buffers are sent, in ms; -1: when they are full. Elements are never buffered here."""
        has_timeout = not isinstance(timeout_millis, Integral) or timeout_millis != -1
        if has_timeout:
            timeout = settings.BUFFER_TIMEOUT
            self._configuration.set(timeout, timeout.type.argument(timeout.name, timeout_millis))
        self._configuration.set(settings.BUFFER_TIMEOUT_ENABLED, has_timeout)
        return self

    def get_buffer_timeout(self) -> int:
        """Return the timeout in ms, 100 by default, or -1 without one."""
        if not self._configuration.get(settings.BUFFER_TIMEOUT_ENABLED):
            return -1
        return self._configuration.get(settings.BUFFER_TIMEOUT).to_millis()

    def set_state_backend(self: S, state_backend: StateBackend) -> S:
        """Set where state is to be held, which has no meaning here: it is held in memory.

        Raises
        ------
        ConfigurationError
            If it is not a StateBackend.

        Notes
        -----
        Follows Flink 1.20.
        """
        if not isinstance(state_backend, StateBackend):
            raise ArgumentTypeError(
                f"a state backend is one such as HashMapStateBackend(), not {state_backend!r}"
            )
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend | None:
        """Return what `set_state_backend` has set, or None; as in Flink, whatever ``state.backend.type`` is."""
        return self._state_backend

    def enable_changelog_state_backend(self: S, enabled: bool) -> S:
        """Set whether changes of state are logged for checkpoints, which has no meaning here."""
        self._configuration.set(settings.STATE_CHANGELOG, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return whether changes of state are to be logged; None if that was not set."""
        return self._configuration.get(settings.STATE_CHANGELOG)

    def set_default_savepoint_directory(self: S, directory: str) -> S:
        """Set where a `JobClient` writes savepoints if it is given no directory."""
        self._configuration.set(settings.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the directory of savepoints, or None."""
        directory = self._configuration.get(settings.SAVEPOINT_DIRECTORY)
        return None if directory is None else path_text(directory)

    def set_restart_strategy(self: S, restart_strategy_configuration: RestartStrategyConfiguration) -> S:
        """Set how a job is run again after a failure, which has no meaning here.

        Raises
        ------
        ConfigurationError
            If it is none of :class:`RestartStrategies`.

        Notes
        -----
        Follows Flink 1.20.
        """
        from flinkcore.common.restart_strategy import RestartStrategyConfiguration

        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise ArgumentTypeError(
                f"a restart strategy is one of RestartStrategies, not {restart_strategy_configuration!r}"
            )
        self._restart_strategy = restart_strategy_configuration
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """Return what `set_restart_strategy` has set since ``restart-strategy.type`` was; else that of the cluster."""
        from flinkcore.common.restart_strategy import RestartStrategies

        return self._restart_strategy or RestartStrategies.fall_back_restart()

    def add_jars(self, *jars_path: str) -> None:
        """Accept archives of Java, which have no meaning here: there is no JVM.

        A connector or format that flinkcore lacks is refused where the program imports it.
        """
        self._append(settings.JARS, jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Accept places of Java's classes, as :meth:`add_jars` does."""
        self._append(settings.CLASSPATHS, classpaths)

    def _append(self, setting: Setting[list[str]], values: Sequence[str]) -> None:
        self._configuration.set(setting, [*(self._configuration.get(setting) or []), *values])

    def register_cached_file(
        self, file_path: str | PathLike[str], name: str, executable: bool = False
    ) -> None:
        """Register a file under a name, which functions of Python cannot ask for, in PyFlink neither.

        Functions open files by their paths, and on Spark those of :meth:`add_python_archive`.

        Parameters
        ----------
        file_path : path
            Or a URI.
        name : str
        executable : bool

        Raises
        ------
        ConfigurationError
            If the name is taken, or is not a text.
        SourceError
            If it is a local path, and there is no such file.
        """
        entry = {"name": name, "path": os.fspath(file_path), "executable": executable}
        self._add_cached_files([as_text(entry)])

    def _add_cached_files(self, entries: Sequence[str]) -> None:
        cached = [*self._configuration.get(settings.CACHED_FILES), *entries]
        check_cached_files(cached)
        self._configuration.set(settings.CACHED_FILES, cached)

    def get_default_local_parallelism(self) -> int:
        """Return the parallelism of new environments of this process; -1 leaves it to the executor.

        Notes
        -----
        Flink's default is the number of processors.
        """
        return self._default_local_parallelism or ExecutionConfig.PARALLELISM_DEFAULT

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism that new environments of this process begin with."""
        ExecutionConfig().set_parallelism(parallelism)
        StreamExecutionEnvironment._default_local_parallelism = parallelism

    def enable_checkpointing(self: S, interval: int, mode: CheckpointingMode | None = None) -> S:
        """Accept checkpoint settings, which have no effect: jobs do not write periodic checkpoints.

        Parameters
        ----------
        interval : int
            Milliseconds, at least 10.
        mode : CheckpointingMode, optional

        Raises
        ------
        ConfigurationError
            If the interval is less, or the mode is none.
        """
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the settings of checkpoints."""
        return self._checkpoint_config

    def get_checkpoint_interval(self) -> int:
        """Return the interval of checkpoints in ms, -1 by default."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode of checkpoints."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the same as `get_checkpointing_mode`, of which it is the newer name."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints are unaligned."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether checkpoints are unaligned also where custom partitioners forbid it."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def register_slot_sharing_group(self: S, slot_sharing_group: SlotSharingGroup) -> S:
        """Accept a group without an effect, as there are no slots; ConfigurationError if it is none."""
        from flinkcore.datastream.slot_sharing_group import SlotSharingGroup

        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise ArgumentTypeError(
                f"a slot sharing group is made by SlotSharingGroup.builder(name), not {slot_sharing_group!r}"
            )
        return self

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return whether operators with different maximum parallelisms are chained."""
        return self._config.is_chaining_of_operators_with_different_max_parallelism_enabled()


def _listed(paths: str) -> list[str]:
    return [path.strip() for path in paths.split(",") if path.strip()]


def _data(path_or_table: Any) -> Any:
    if hasattr(path_or_table, "mapInArrow"):
        raise ConfigurationError(
            "this environment runs in one process, and reads files and Arrow data; a Spark DataFrame is read by "
            "SparkExecutionEnvironment(spark).from_event_log(dataframe, ...)"
        )
    if hasattr(path_or_table, "__arrow_c_stream__") or hasattr(path_or_table, "__arrow_c_array__"):
        return ArrowData(path_or_table)
    if isinstance(path_or_table, str | PathLike) and os.fspath(path_or_table):
        return os.fspath(path_or_table)
    if isinstance(path_or_table, Sequence) and not isinstance(path_or_table, bytes):
        paths = [os.fspath(path) for path in path_or_table if isinstance(path, str | PathLike)]
        if paths and all(paths) and len(paths) == len(path_or_table):
            return paths
    records = isinstance(path_or_table, Mapping) or (
        isinstance(path_or_table, Sequence) and any(isinstance(each, Mapping) for each in path_or_table[:1])
    )
    hint = ""
    for method, call in (("get_add_actions", "from_delta"), ("snapshot_by_id", "from_iceberg")):
        if hasattr(path_or_table, method):
            hint = f": give it to {call}"
    if records:
        table = (
            "pyarrow.table(data)" if isinstance(path_or_table, Mapping) else "pyarrow.Table.from_pylist(data)"
        )
        hint = f": give {table}"
    raise ArgumentTypeError(
        "an event log is a path, a list of paths, or Arrow data (anything with __arrow_c_stream__ or "
        f"__arrow_c_array__), not {reprlib.repr(path_or_table)}{hint}"
    )
