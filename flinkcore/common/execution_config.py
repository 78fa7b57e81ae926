"""Settings of a job that do not belong to one operator."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from flinkcore.common.configuration import Configuration
from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.errors import ConfigurationError, UnsupportedOperationError

JobClockName: TypeAlias = Literal["arrival", "system"]
"""What processing time is: the arrivals of elements, or the time of the machine."""

LatencyGranularity: TypeAlias = Literal["single", "operator", "subtask"]
"""Which latency markers are measured together: all of an operator; those of a source; those of its subtask."""


def _whole_number_within(value: int, setting: str, lowest: int, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ConfigurationError(f"{setting} must be an integer from {lowest} to {highest}, not {value!r}")
    return value


def _interval_ms(configuration: Configuration, key: str) -> int:
    interval = configuration.get_string(key, "").strip()
    number = interval[:-2].strip() if interval.endswith("ms") else interval
    if not number.isdecimal():
        raise ConfigurationError(f"{key} is a number of milliseconds, not {interval!r}")
    return int(number)


def checked_auto_watermark_interval(interval_ms: int) -> int:
    """Return an auto-watermark interval in ms, 0 for none; ConfigurationError if it is negative or no integer."""
    return _whole_number_within(interval_ms, "the auto-watermark interval in ms", 0, MAX_TIMESTAMP)


@dataclass
class ExecutionConfig:
    """Parallelism, maximum parallelism, auto-watermark interval and other settings of a job.

    Read and changed through :meth:`StreamExecutionEnvironment.get_config`. On the arrival clock, no setting but the
    auto-watermark interval can change a row of the result.

    Notes
    -----
    Follows ``pyflink.common.ExecutionConfig``. Deliberate difference: the maximum parallelism is 128 unless
    set, where Flink derives it from the parallelism.
    """

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    UPPER_BOUND_MAX_PARALLELISM: ClassVar[int] = 1 << 15

    _parallelism: int = PARALLELISM_DEFAULT
    _max_parallelism: int = 128
    _auto_watermark_interval_ms: int = 200
    _arrival_rate: float = 1000.0
    _clock: JobClockName = "arrival"
    _chaining_enabled: bool = True
    _is_batch: bool = False
    _allow_unaligned_source_splits: bool = False
    _watermark_alignment_buffer_size: int = 3
    _latency_tracking_interval_ms: int = 0
    _latency_granularity: LatencyGranularity = "operator"
    _latency_history_size: int = 128
    _job_name: str = "Flink Streaming Job"
    _job_parameters: dict[str, str] = field(default_factory=dict)

    def get_parallelism(self) -> int:
        """Return the number of parallel tasks; -1 (``PARALLELISM_DEFAULT``) leaves it to the executor."""
        return self._parallelism

    def set_parallelism(self, parallelism: int) -> "ExecutionConfig":
        """Set the number of parallel tasks, from 1; -1 (``PARALLELISM_DEFAULT``) leaves it to the executor."""
        if parallelism != self.PARALLELISM_DEFAULT:
            _whole_number_within(parallelism, "parallelism", 1, self.UPPER_BOUND_MAX_PARALLELISM)
        self._parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups."""
        return self._max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> "ExecutionConfig":
        """Set the number of key groups, from 1 to 32,768: the most tasks that can share the keys."""
        self._max_parallelism = _whole_number_within(
            max_parallelism, "max_parallelism", 1, self.UPPER_BOUND_MAX_PARALLELISM
        )
        return self

    def get_auto_watermark_interval(self) -> int:
        """Return the interval of periodic watermarks in ms of the replay clock."""
        return self._auto_watermark_interval_ms

    def set_auto_watermark_interval(self, interval: int) -> "ExecutionConfig":
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
        self._auto_watermark_interval_ms = checked_auto_watermark_interval(interval)
        return self

    def get_arrival_rate(self) -> float:
        """Return the arrival rate of sources that are no event logs, in elements per second and split."""
        return self._arrival_rate

    def set_arrival_rate(self, rate: float) -> "ExecutionConfig":
        """Set the arrival rate of sources that are no event logs, on the job's clock.

        The clock decides between which elements periodic watermarks are emitted and processing-time timers fire; it
        does not depend on how fast the job runs.

        Parameters
        ----------
        rate : float
            Elements per second and split, above 0; 1,000 by default.

        Raises
        ------
        ConfigurationError
            If it is not a number above zero.
        """
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
            raise ConfigurationError(
                f"the arrival rate is a number of elements per second above zero, not {rate!r}"
            )
        self._arrival_rate = float(rate)
        return self

    def get_clock(self) -> JobClockName:
        """Return which clock shows the processing time of jobs: ``arrival``, the default, or ``system``."""
        return self._clock

    def set_clock(self, clock: JobClockName) -> "ExecutionConfig":
        """Set which clock shows the processing time of jobs; see :meth:`StreamExecutionEnvironment.set_clock`."""
        if clock not in get_args(JobClockName):
            raise ConfigurationError(f"flinkcore.clock is 'arrival' or 'system', not {clock!r}")
        self._clock = clock
        return self

    def require_arrival_clock(self, job: str, reason: str) -> None:
        """Raise a ConfigurationError if a job, such as "a job on Spark", is to run on the system clock."""
        if self._clock != "arrival":
            raise ConfigurationError(
                f"{job} cannot run on the system clock: {reason}. Leave flinkcore.clock at 'arrival'"
            )

    def is_chaining_enabled(self) -> bool:
        """Return whether operators call the next one directly where they can."""
        return self._chaining_enabled

    def set_chaining_enabled(self, enabled: bool) -> "ExecutionConfig":
        """Set whether operators call the next one directly where they can."""
        self._chaining_enabled = bool(enabled)
        return self

    def is_batch(self) -> bool:
        """Return whether jobs emit final results only: see ``StreamExecutionEnvironment.set_runtime_mode``."""
        return self._is_batch

    def set_batch(self, is_batch: bool) -> "ExecutionConfig":
        """Set whether jobs emit final results only."""
        self._is_batch = bool(is_batch)
        return self

    def allows_unaligned_source_splits(self) -> bool:
        """Return ``pipeline.watermark-alignment.allow-unaligned-source-splits``: whether unpausable splits read on."""
        return self._allow_unaligned_source_splits

    def get_watermark_alignment_buffer_size(self) -> int:
        """Return ``pipeline.watermark-alignment.buffer-size``: the age of compared watermarks in update intervals."""
        return self._watermark_alignment_buffer_size

    def get_latency_tracking_interval(self) -> int:
        """Return the interval at which sources emit latency markers, in ms; 0 or less: they emit none."""
        return self._latency_tracking_interval_ms

    def set_latency_tracking_interval(self, interval: int) -> "ExecutionConfig":
        """Set the interval at which sources of jobs of Python functions emit latency markers.

        Each operator measures how long markers took to it from their source, on the job's clock: the histograms
        ``latency...`` of ``JobExecutionResult.metrics``, for each source unless ``metrics.latency.granularity`` says
        otherwise. On the arrival clock an element takes no time on its way.

        Parameters
        ----------
        interval : int
            In ms; 0 or less: no markers, which is the default.

        Raises
        ------
        ConfigurationError
            If it is not a whole number.
        """
        lowest = -MAX_TIMESTAMP
        self._latency_tracking_interval_ms = _whole_number_within(
            interval, "the latency tracking interval in ms", lowest, MAX_TIMESTAMP
        )
        return self

    def get_latency_granularity(self) -> LatencyGranularity:
        """Return ``metrics.latency.granularity``: which latency markers are measured together."""
        return self._latency_granularity

    def get_latency_history_size(self) -> int:
        """Return ``metrics.latency.history-size``: how many latencies a histogram keeps."""
        return self._latency_history_size

    def get_job_name(self) -> str:
        """Return the default name of jobs."""
        return self._job_name

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the parameters that functions read with ``get_job_parameter``."""
        return dict(self._job_parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, Any]) -> "ExecutionConfig":
        """Set the parameters that functions read with ``get_job_parameter``; values are converted to text."""
        self._job_parameters = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        return self

    def configure(self, configuration: Configuration) -> None:
        """Apply settings; see ``StreamExecutionEnvironment.configure``."""
        if configuration.contains_key("parallelism.default"):
            self.set_parallelism(configuration.get_integer("parallelism.default", 1))
        if configuration.contains_key("pipeline.max-parallelism"):
            self.set_max_parallelism(configuration.get_integer("pipeline.max-parallelism", 128))
        if configuration.contains_key("pipeline.auto-watermark-interval"):
            self.set_auto_watermark_interval(_interval_ms(configuration, "pipeline.auto-watermark-interval"))
        if configuration.contains_key("metrics.latency.interval"):
            self.set_latency_tracking_interval(_interval_ms(configuration, "metrics.latency.interval"))
        granularity: Any = configuration.get_string("metrics.latency.granularity", self._latency_granularity)
        if granularity.lower() not in get_args(LatencyGranularity):
            raise ConfigurationError(
                f"metrics.latency.granularity is single, operator or subtask, not {granularity!r}"
            )
        self._latency_granularity = granularity.lower()
        history_size = "metrics.latency.history-size"
        self._latency_history_size = _whole_number_within(
            configuration.get_integer(history_size, self._latency_history_size), history_size, 1, 1 << 20
        )
        self._allow_unaligned_source_splits = configuration.get_boolean(
            "pipeline.watermark-alignment.allow-unaligned-source-splits", self._allow_unaligned_source_splits
        )
        buffer_size = "pipeline.watermark-alignment.buffer-size"
        self._watermark_alignment_buffer_size = _whole_number_within(
            configuration.get_integer(buffer_size, self._watermark_alignment_buffer_size),
            buffer_size,
            0,
            1 << 20,
        )
        self.set_chaining_enabled(
            configuration.get_boolean("pipeline.operator-chaining.enabled", self._chaining_enabled)
        )
        if configuration.contains_key("flinkcore.clock"):
            clock: Any = configuration.get_string("flinkcore.clock", self._clock)
            self.set_clock(clock)
        self._job_name = configuration.get_string("pipeline.name", self._job_name)
        parameters = configuration.get_string("pipeline.global-job-parameters", "")
        pairs = (pair.partition(":") for pair in parameters.split(",") if pair.strip())
        self._job_parameters |= {key.strip(): value.strip() for key, _, value in pairs}

    def __getattr__(self, name: str) -> "Callable[..., ExecutionConfig]":
        """Accept PyFlink's setters for Java objects and clusters, without an effect; their getters are refused."""
        if name in _OF_THE_JVM:
            if name.startswith(("enable_", "disable_", "set_")):
                return lambda *values: self
            raise SettingOfTheJvmError(
                f"ExecutionConfig.{name} is about Java objects and clusters, which there are none of here: leave it out"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class SettingOfTheJvmError(UnsupportedOperationError, AttributeError):
    """A setting of PyFlink's that has no meaning without a JVM."""


_OF_THE_JVM = frozenset(
    f"{verb}{what}"
    for what, verbs in {
        "closure_cleaner": ("enable_", "disable_"),
        "closure_cleaner_enabled": ("is_",),
        "task_cancellation_interval": ("set_", "get_"),
        "task_cancellation_timeout": ("set_", "get_"),
        "force_kryo": ("enable_", "disable_"),
        "force_kryo_enabled": ("is_",),
        "generic_types": ("enable_", "disable_"),
        "generic_types_disabled": ("has_",),
        "auto_generated_uids": ("enable_", "disable_"),
        "auto_generated_uids_enabled": ("has_",),
        "force_avro": ("enable_", "disable_"),
        "force_avro_enabled": ("is_",),
        "object_reuse": ("enable_", "disable_"),
        "object_reuse_enabled": ("is_",),
        "default_kryo_serializer_classes": ("get_",),
        "registered_kryo_types": ("get_",),
        "registered_pojo_types": ("get_",),
        "use_snapshot_compression": ("is_", "set_"),
    }.items()
    for verb in verbs
)
