"""The time of arrival as event time."""

import time
from collections.abc import Callable
from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.timestamps.assigners import AssignerWithPeriodicWatermarks


def _system_time_ms() -> int:
    return time.time_ns() // 1_000_000


class IngestionTimeExtractor(AssignerWithPeriodicWatermarks):
    """Each element gets the time at which it arrives, which never goes back; the watermark is that of now, less 1 ms.

    The watermark moves while nothing arrives, too: there is no need for idleness.

    Parameters
    ----------
    clock : callable or None
        Gives the time in ms since the epoch, such as ``ProcessingTimeService.current_processing_time``. None:
        the system clock.

    Notes
    -----
    Flink 1.20's ``IngestionTimeExtractor``, which knows the system clock only. As there, the time starts at 0: a
    clock before the epoch counts as the epoch. A copy begins anew, on the same clock.
    """

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock or _system_time_ms
        self._max_timestamp = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "IngestionTimeExtractor":
        # The clock is shared: a copy of it would stand still.
        return IngestionTimeExtractor(self._clock)

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the time of now."""
        self._max_timestamp = max(self._clock(), self._max_timestamp)
        return self._max_timestamp

    def get_current_watermark(self) -> Watermark:
        """Return the watermark that holds now."""
        self._max_timestamp = max(self._clock(), self._max_timestamp)
        return Watermark(self._max_timestamp - 1)
