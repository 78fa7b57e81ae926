"""Settings of a job that do not belong to one operator."""

from dataclasses import dataclass
from typing import ClassVar

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.errors import ConfigurationError


def _whole_number_within(value: int, setting: str, lowest: int, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ConfigurationError(f"{setting} must be an integer from {lowest} to {highest}, not {value!r}")
    return value


@dataclass
class ExecutionConfig:
    """Parallelism, maximum parallelism and auto-watermark interval of a job.

    Read and changed through :meth:`StreamExecutionEnvironment.get_config`. No setting but the auto-watermark
    interval can change a row of the result.

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

    def get_parallelism(self) -> int:
        """Return the number of parallel tasks; ``PARALLELISM_DEFAULT`` (-1) leaves it to the executor."""
        return self._parallelism

    def set_parallelism(self, parallelism: int) -> "ExecutionConfig":
        """Set the count of parallel tasks, from 1; -1 (``PARALLELISM_DEFAULT``) leaves it to the executor."""
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
        self._auto_watermark_interval_ms = _whole_number_within(
            interval, "auto-watermark interval in ms", 0, MAX_TIMESTAMP
        )
        return self
