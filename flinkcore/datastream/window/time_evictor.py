"""Keeping the latest elements."""

from dataclasses import dataclass

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.datastream.window.built_in_evictor import BuiltInEvictor
from flinkcore.datastream.window.evictor import TimestampedValue


@dataclass(frozen=True)
class TimeEvictor(BuiltInEvictor):
    """Keeps the elements whose timestamps are less than a time behind the latest one.

    Where the first element has no timestamp, all are kept; another one without is an error.

    Parameters
    ----------
    window_size_ms : int
    do_evict_after : bool
        Whether elements are removed after the window function, and not before.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.TimeEvictor``.
    """

    window_size_ms: int
    do_evict_after: bool = False

    @staticmethod
    def of(window_size: Time | Duration, do_evict_after: bool = False) -> "TimeEvictor":
        """Return an evictor that keeps what is not older."""
        return TimeEvictor(interval_ms(window_size, "the size of TimeEvictor"), do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if not elements[0].has_timestamp():
            return
        cutoff = max(element.get_timestamp() for element in elements) - self.window_size_ms
        elements[:] = [element for element in elements if element.get_timestamp() > cutoff]
