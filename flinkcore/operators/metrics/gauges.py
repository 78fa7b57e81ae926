"""Gauges: of watermarks of splits, inputs and tasks, and of the time that something lasted."""

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.common.watermark_generators import RelativeClock


class WatermarkGauge:
    """The last watermark.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.metrics.WatermarkGauge``.
    """

    def __init__(self) -> None:
        self._current_watermark = MIN_TIMESTAMP

    def set_current_watermark(self, timestamp_ms: int) -> None:
        """Set the watermark, in ms since the epoch."""
        self._current_watermark = timestamp_ms

    @property
    def value(self) -> int:
        """The watermark in ms since the epoch; -2**63 before the first."""
        return self._current_watermark


class TimerGauge:
    """The total time that something lasted.

    Parameters
    ----------
    clock : callable
        Returns the time in ms since the epoch.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.metrics.TimerGauge``, without the time per second.
    """

    def __init__(self, clock: RelativeClock) -> None:
        self._clock = clock
        self._accumulated_ms = 0
        self._started_ms: int | None = None

    def mark_start(self) -> None:
        """Start measuring; no effect if it was started."""
        if self._started_ms is None:
            self._started_ms = self._clock()

    def mark_end(self) -> None:
        """Stop measuring; no effect if it was not started."""
        self._accumulated_ms = self.accumulated_time_ms
        self._started_ms = None

    @property
    def is_measuring(self) -> bool:
        """Return whether it is measuring."""
        return self._started_ms is not None

    @property
    def accumulated_time_ms(self) -> int:
        """The total time until now."""
        if self._started_ms is None:
            return self._accumulated_ms
        return self._accumulated_ms + self._clock() - self._started_ms
