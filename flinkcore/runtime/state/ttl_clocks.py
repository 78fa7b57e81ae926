"""The times that the lives of values are counted in."""

from collections.abc import Callable

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.state import StateTtlConfig
from flinkcore.runtime.processing_time import ProcessingTimeService


class TtlClocks:
    """Processing time from a clock, event time from the watermarks.

    Parameters
    ----------
    processing_time_service : ProcessingTimeService

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlTimeProvider``, which knows processing time only.
    """

    def __init__(self, processing_time_service: ProcessingTimeService) -> None:
        self._processing_time_service = processing_time_service
        self.watermark_ms = MIN_TIMESTAMP

    def advance_watermark(self, watermark_ms: int) -> bool:
        """Take a watermark; return whether it is the first one.

        One that goes back is no news, and the maximum is no time: it says that the input has ended.
        """
        if watermark_ms <= self.watermark_ms or watermark_ms == MAX_TIMESTAMP:
            return False
        is_first = self.watermark_ms == MIN_TIMESTAMP
        self.watermark_ms = watermark_ms
        return is_first

    def clock_of(self, ttl_time: StateTtlConfig.TtlTimeCharacteristic) -> Callable[[], int]:
        """Return a function that returns the current time in ms."""
        if ttl_time is StateTtlConfig.TtlTimeCharacteristic.EventTime:
            return lambda: self.watermark_ms
        return self._processing_time_service.current_processing_time
