"""Settings of a job that do not belong to one operator."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from flinkcore._internal.python.missing_features import WithFormerMethods
from flinkcore._internal.values.memory_limits import MemoryLimits
from flinkcore.common.configuration import Configuration
from flinkcore.common.settings import flink_settings as settings
from flinkcore.errors import ConfigurationError

JobClockName: TypeAlias = Literal["arrival", "system"]
"""Clock of processing time: the arrivals of elements, or the time of the machine."""

ProgressMode: TypeAlias = Literal["auto", "on", "off"]
"""Display of progress: on, off, or only on terminals and in notebooks (auto)."""

LatencyGranularity: TypeAlias = Literal["single", "operator", "subtask"]
"""Latency markers that are measured together: all of an operator, of a source, or of a source's subtask."""


def checked_auto_watermark_interval(interval_ms: int) -> int:
    """Return an auto-watermark interval in ms, 0 for none; ConfigurationError if it is negative or no integer."""
    interval = settings.AUTO_WATERMARK_INTERVAL
    return interval.type.value("the auto-watermark interval in ms", interval_ms).to_millis()


class ExecutionConfig(WithFormerMethods):
    """Parallelism, maximum parallelism, auto-watermark interval and other settings of a job.

    Read and changed through :meth:`StreamExecutionEnvironment.get_config`. On the arrival clock, no setting but the
    auto-watermark interval and the execution mode can change a row of the result.

    Parameters
    ----------
    configuration : Configuration, optional
        Holds the settings by their keys, and may be shared with other objects; a new one by default.

    Notes
    -----
    Follows ``pyflink.common.ExecutionConfig``. Deliberate difference: the maximum parallelism is 128 unless
    set, where Flink derives it from the parallelism. docs/settings.md lists the settings without a meaning here, which
    are held and given back.
    """

    PARALLELISM_DEFAULT: ClassVar[int] = settings.PARALLELISM_DEFAULT
    PARALLELISM_UNKNOWN: ClassVar[int] = -2
    UPPER_BOUND_MAX_PARALLELISM: ClassVar[int] = settings.UPPER_BOUND_MAX_PARALLELISM

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration
        self._memory_limits = MemoryLimits()

    def get_parallelism(self) -> int:
        """Return the number of parallel tasks; -1 (``PARALLELISM_DEFAULT``) leaves it to the executor."""
        return self._configuration.get(settings.PARALLELISM)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the number of parallel tasks, from 1; -1 (``PARALLELISM_DEFAULT``) leaves it to the executor."""
        return self._set(settings.PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """Return the number of key groups."""
        number = self._configuration.get(settings.MAX_PARALLELISM)
        return settings.DEFAULT_MAX_PARALLELISM if number == settings.PARALLELISM_DEFAULT else number

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups, from 1 to 32,768: the most tasks that can share the keys."""
        number = settings.NUMBER_OF_KEY_GROUPS.argument("max_parallelism", max_parallelism)
        self._configuration.set(settings.MAX_PARALLELISM, number)
        return self

    def has_max_parallelism(self) -> bool:
        """Return whether the number of key groups was set."""
        key = settings.MAX_PARALLELISM
        return (
            self._configuration.contains_key(key.name)
            and self._configuration.get(key) != settings.PARALLELISM_DEFAULT
        )

    def require_max_parallelism(self) -> None:
        """Raise a ConfigurationError if the parallelism is higher than the maximum parallelism that was set."""
        parallelism, most = self.get_parallelism(), self.get_max_parallelism()
        if self.has_max_parallelism() and parallelism > most:
            raise ConfigurationError(
                f"the parallelism {parallelism} is higher than the maximum parallelism {most}. Lower the parallelism, "
                "or set_max_parallelism to more"
            )

    def get_auto_watermark_interval(self) -> int:
        """Return the interval of periodic watermarks in ms of the replay clock."""
        return self._configuration.get(settings.AUTO_WATERMARK_INTERVAL).to_millis()

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of periodic watermarks.

        Parameters
        ----------
        interval : int
            In ms of the replay clock. 0: no periodic watermark, everything fires at the end of the log.

        Raises
        ------
        ConfigurationError
            If it is negative or not a whole number.
        """
        return self._set(settings.AUTO_WATERMARK_INTERVAL, interval)

    def get_arrival_rate(self) -> float:
        """Return the arrival rate of sources that are not event logs, in elements per second and split."""
        return self._configuration.get(settings.ARRIVAL_RATE)

    def set_arrival_rate(self, rate: float) -> ExecutionConfig:
        """Set the arrival rate of sources that are not event logs, on the job's clock.

        The clock decides between which elements periodic watermarks are emitted and processing-time timers fire; it
        does not depend on how fast the job runs.

        Parameters
        ----------
        rate : float
            Elements per second and split, from 1e-6 to 1e12; 1,000 by default.

        Raises
        ------
        ConfigurationError
            If it is not such a number.
        """
        return self._set(settings.ARRIVAL_RATE, rate)

    def get_clock(self) -> JobClockName:
        """Return which clock shows the processing time of jobs: ``arrival``, the default, or ``system``."""
        clock: Any = self._configuration.get(settings.CLOCK)
        return clock  # type: ignore[no-any-return]

    def set_clock(self, clock: JobClockName) -> ExecutionConfig:
        """Set which clock shows the processing time of jobs; see :meth:`StreamExecutionEnvironment.set_clock`."""
        self._configuration.set(settings.CLOCK, clock)
        return self

    def get_progress(self) -> ProgressMode:
        """Return ``flinkcore.progress``: whether columnar jobs show their progress."""
        mode: Any = self._configuration.get(settings.PROGRESS)
        return mode  # type: ignore[no-any-return]

    def set_progress(self, mode: ProgressMode) -> ExecutionConfig:
        """Set whether columnar jobs show their progress on standard error.

        Parameters
        ----------
        mode : str
            "auto", the default: where somebody looks, in a terminal or a notebook, and not while rows are taken one
            batch at a time. "on": everywhere; where standard error is a file or a pipe, a line every ten seconds.
            "off".

        Raises
        ------
        ConfigurationError
            If it is none of these.
        """
        self._configuration.set(settings.PROGRESS, mode)
        return self

    def get_late_share_warning(self) -> float:
        """Return ``flinkcore.late-share-warning``: the share of late or rejected events above which a replay warns."""
        return self._configuration.get(settings.LATE_SHARE)

    def set_late_share_warning(self, share: float) -> ExecutionConfig:
        """Set above which share of late events, or of rejected ones, a replay warns, with the likely cause.

        Parameters
        ----------
        share : float
            Share of the events that reach an operator, from 0 to 1; 0.01 by default. With 1, a replay never warns.

        Raises
        ------
        ConfigurationError
            If it is not such a number.
        """
        return self._set(settings.LATE_SHARE, share)

    def get_managed_memory(self) -> tuple[int | None, float]:
        """Return the bytes for open state in each process, or None, and the share of the memory in place of them."""
        size = self._configuration.get(settings.MANAGED_MEMORY_SIZE)
        return (
            None if size is None else size.get_bytes(),
            self._configuration.get(settings.MANAGED_MEMORY_FRACTION),
        )

    def require_arrival_clock(self, job: str, reason: str) -> None:
        """Raise a ConfigurationError if a job, such as "a job on Spark", is to run on the system clock."""
        if self.get_clock() != "arrival":
            raise ConfigurationError(
                f"{job} cannot run on the system clock: {reason}. Leave flinkcore.clock at 'arrival'"
            )

    def is_chaining_enabled(self) -> bool:
        """Return whether operators call the next one directly where they can."""
        return self._configuration.get(settings.OPERATOR_CHAINING)

    def set_chaining_enabled(self, enabled: bool) -> ExecutionConfig:
        """Set whether operators call the next one directly where they can."""
        self._configuration.set(settings.OPERATOR_CHAINING, bool(enabled))
        return self

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return whether operators with different maximum parallelisms are chained."""
        return self._configuration.get(settings.CHAINING_WITH_DIFFERENT_MAX_PARALLELISM)

    def is_batch(self) -> bool:
        """Return whether jobs emit final results only: see ``StreamExecutionEnvironment.set_runtime_mode``."""
        return self._configuration.get(settings.RUNTIME_MODE) == "BATCH"

    def for_job(self, is_bounded: bool) -> ExecutionConfig:
        """Return the settings of a job: in the mode AUTOMATIC, one whose sources all end by themselves is a BATCH."""
        if self._configuration.get(settings.RUNTIME_MODE) != "AUTOMATIC":
            return self
        mode = "BATCH" if is_bounded else "STREAMING"
        config = ExecutionConfig(Configuration(self._configuration).set(settings.RUNTIME_MODE, mode))
        config._memory_limits = self._memory_limits
        return config

    def allows_unaligned_source_splits(self) -> bool:
        """Return ``pipeline.watermark-alignment.allow-unaligned-source-splits``: whether unpausable splits read on."""
        return self._configuration.get(settings.ALLOW_UNALIGNED_SOURCE_SPLITS)

    def get_watermark_alignment_buffer_size(self) -> int:
        """Return ``pipeline.watermark-alignment.buffer-size``: the age of compared watermarks in update intervals."""
        return self._configuration.get(settings.WATERMARK_ALIGNMENT_BUFFER_SIZE)

    def get_latency_tracking_interval(self) -> int:
        """Return the interval at which sources emit latency markers, in ms; 0 or less if they emit none."""
        return self._configuration.get(settings.LATENCY_INTERVAL).to_millis()

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval at which sources of jobs of Python functions emit latency markers.

        Each operator measures how long markers took to it from their source, on the job's clock: the histograms
        ``latency...`` of ``JobExecutionResult.metrics``, for each source unless ``metrics.latency.granularity`` says
        otherwise. On the arrival clock an element takes no time to travel.

        Parameters
        ----------
        interval : int
            In ms; 0 or less: no markers, which is the default.

        Raises
        ------
        ConfigurationError
            If it is not a whole number.
        """
        return self._set(settings.LATENCY_INTERVAL, interval)

    def get_latency_granularity(self) -> LatencyGranularity:
        """Return ``metrics.latency.granularity``: which latency markers are measured together."""
        granularity: Any = self._configuration.get(settings.LATENCY_GRANULARITY)
        return granularity  # type: ignore[no-any-return]

    def get_latency_history_size(self) -> int:
        """Return ``metrics.latency.history-size``: how many latencies a histogram keeps."""
        return self._configuration.get(settings.LATENCY_HISTORY_SIZE)

    def get_job_name(self) -> str:
        """Return the default name of jobs."""
        return self._configuration.get(settings.JOB_NAME)

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the parameters that functions read with ``get_job_parameter``."""
        parameters = self._configuration.get(settings.GLOBAL_JOB_PARAMETERS)
        return dict(parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, Any]) -> ExecutionConfig:
        """Set the parameters that functions read with ``get_job_parameter``; values are converted to text."""
        parameters = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        self._configuration.set(settings.GLOBAL_JOB_PARAMETERS, parameters)
        return self

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Set that unused references of functions are removed, which has no effect here."""
        self._configuration.set(settings.CLOSURE_CLEANER_LEVEL, "RECURSIVE")
        return self

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Set that unused references of functions are kept, as they always are here."""
        self._configuration.set(settings.CLOSURE_CLEANER_LEVEL, "NONE")
        return self

    def is_closure_cleaner_enabled(self) -> bool:
        """Return whether unused references of functions are to be removed."""
        return self._configuration.get(settings.CLOSURE_CLEANER_LEVEL) != "NONE"

    def get_task_cancellation_interval(self) -> int:
        """Return the interval between attempts to cancel a task, in ms."""
        return self._configuration.get(settings.TASK_CANCELLATION_INTERVAL).to_millis()

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval between attempts to cancel a task, in ms, which has no effect here."""
        return self._set(settings.TASK_CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_timeout(self) -> int:
        """Return the time after which a task that is not cancelled ends its process, in ms."""
        return self._configuration.get(settings.TASK_CANCELLATION_TIMEOUT).to_millis()

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Set the time after which a task that is not cancelled ends its process, in ms, which has no effect here."""
        return self._set(settings.TASK_CANCELLATION_TIMEOUT, timeout)

    def enable_force_kryo(self) -> ExecutionConfig:
        """Set that objects of Java are serialized by Kryo; without effect, as a job has no objects of Java."""
        return self._set(settings.FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Set that objects of Java are serialized by Kryo only where they must be; without effect."""
        return self._set(settings.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """Return whether objects of Java are serialized by Kryo."""
        return self._configuration.get(settings.FORCE_KRYO)

    def enable_force_avro(self) -> ExecutionConfig:
        """Set that objects of Java are serialized by Avro; without effect, as a job has no objects of Java."""
        return self._set(settings.FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Set that objects of Java are not serialized by Avro; without effect, as a job has no objects of Java."""
        return self._set(settings.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """Return whether objects of Java are serialized by Avro."""
        return self._configuration.get(settings.FORCE_AVRO)

    def enable_generic_types(self) -> ExecutionConfig:
        """Set that Java may have types that Kryo serializes; without effect, as a job has no types of Java."""
        return self._set(settings.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Set that Java must not have types that Kryo serializes; without effect, as a job has no types of Java."""
        return self._set(settings.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Return whether Java must not have types that Kryo serializes."""
        return not self._configuration.get(settings.GENERIC_TYPES)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return the classes of Java with a serializer of their own: none can be registered."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Return the classes of Java that Kryo knows: none can be registered."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Return the classes of Java with fields: none can be registered."""
        return []

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Let operators without a uid have one of their own, which is the default."""
        return self._set(settings.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse jobs with an operator that has no uid, so that each state keeps its name when a program changes."""
        return self._set(settings.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Return whether operators may have no uid of their own."""
        return self._configuration.get(settings.AUTO_GENERATE_UIDS)

    def require_uid(self, uid: str | None, operator: str) -> None:
        """Raise a ConfigurationError if an operator lacks the uid that the settings require."""
        if uid is None and not self.has_auto_generated_uids_enabled():
            raise ConfigurationError(
                f"{operator} has no uid, and {settings.AUTO_GENERATE_UIDS.name} is false. Call uid(...) of its stream"
            )

    def enable_object_reuse(self) -> ExecutionConfig:
        """Set that elements are passed on without a copy, as Python objects always are."""
        return self._set(settings.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Set that objects of Java are copied; without effect, as a job has no objects of Java."""
        return self._set(settings.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Return whether objects of Java are passed on without a copy."""
        return self._configuration.get(settings.OBJECT_REUSE)

    def is_use_snapshot_compression(self) -> bool:
        """Return whether state is to be compressed in checkpoints."""
        return self._configuration.get(settings.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether state is compressed in checkpoints, which it always is."""
        return self._set(settings.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def _set(self, setting: settings.Setting[Any], value: Any) -> ExecutionConfig:
        self._configuration.set(setting, setting.type.argument(setting.name, value))
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)
