"""A watermark as it was some update intervals ago."""

from collections import deque

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError


class WatermarkSampler:
    """Remembers the watermark at the last samplings.

    Alignment compares the oldest of them with the watermark allowed, because what is allowed was computed from
    watermarks of about that age.

    Parameters
    ----------
    capacity : int
        How many samples are kept; 0: none, the latest watermark counts.

    Raises
    ------
    ConfigurationError
        If the capacity is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.WatermarkSampler``.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ConfigurationError(
                "pipeline.watermark-alignment.buffer-size must be 0 or more samples, it is "
                f"{capacity}; 3 is Flink's default"
            )
        self._samples = deque([MIN_TIMESTAMP] * capacity, maxlen=capacity)
        self._latest = MIN_TIMESTAMP

    def add_latest(self, watermark: int) -> None:
        """Set the watermark, in ms since the epoch."""
        self._latest = watermark

    def sample(self) -> None:
        """Keep the watermark as it is now, and forget the oldest that was kept."""
        self._samples.append(self._latest)

    @property
    def latest(self) -> int:
        """The watermark that was set last, in ms since the epoch; -2**63 if none."""
        return self._latest

    @property
    def oldest_sample(self) -> int:
        """The watermark as many samplings ago as there is capacity, in ms since the epoch; -2**63 if none."""
        return self._samples[0] if self._samples else self._latest
