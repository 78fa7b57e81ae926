"""Watermarks as metrics: what a split, an input or a task has reached."""

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError


class WatermarkGauge:
    """The watermark that was set last.

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
        """The watermark in ms since the epoch; -2**63 if there was none."""
        return self._current_watermark


class MinWatermarkGauge:
    """The least of several watermarks: that of a task of those of its inputs.

    Parameters
    ----------
    *gauges : WatermarkGauge
        At least one.

    Raises
    ------
    ConfigurationError
        If there is none.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.metrics.MinWatermarkGauge``.
    """

    def __init__(self, *gauges: WatermarkGauge) -> None:
        if not gauges:
            raise ConfigurationError("the least watermark is that of at least one gauge")
        self._gauges = gauges

    @property
    def value(self) -> int:
        """The least watermark in ms since the epoch; -2**63 if a gauge had none."""
        return min(gauge.value for gauge in self._gauges)
