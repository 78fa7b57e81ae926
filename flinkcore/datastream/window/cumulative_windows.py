"""Windows with one start that grow step by step."""

from dataclasses import dataclass
from typing import Any

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.datastream.window.lengths import (
    offset_or_zero,
    require_above_zero,
    require_offset_below,
    shift,
)
from flinkcore.datastream.window.time_window import TimeWindow, require_timestamp, time_window
from flinkcore.datastream.window.time_window_assigners import EventTimeWindowAssigner
from flinkcore.datastream.window.window_assigner import WindowAssigner
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class CumulativeEventTimeWindows(EventTimeWindowAssigner):
    """Windows that start together and end a step later each, up to a size; then the next ones start.

    Such as the sum since midnight, every hour: size one day, step one hour.

    Parameters
    ----------
    size_ms : int
        Size of the longest windows in milliseconds, above zero; a multiple of the step.
    step_ms : int
        Size of the shortest ones, and by how much each is longer than the one before, in milliseconds.
    offset_ms : int
        Windows start at multiples of the size plus this; ``abs(offset_ms) < size_ms``.

    Raises
    ------
    ConfigurationError
        If size or step are not above zero, the size is no multiple of the step, or the offset not smaller than it.

    Notes
    -----
    The windows of ``CUMULATE`` in Flink SQL (``CumulativeWindowAssigner``), which the DataStream API does not have.

    Examples
    --------
    >>> CumulativeEventTimeWindows.of(Time.days(1), Time.hours(1))
    CumulativeEventTimeWindows(size_ms=86400000, step_ms=3600000, offset_ms=0)
    """

    size_ms: int
    step_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        name = type(self).__name__
        require_above_zero(name, "size", self.size_ms)
        require_above_zero(name, "step", self.step_ms)
        require_offset_below(name, "size", self.size_ms, self.offset_ms)
        if self.size_ms % self.step_ms:
            raise ConfigurationError(
                f"{name}: the size must be a multiple of the step, but the size is {self.size_ms} ms and the step "
                f"{self.step_ms} ms"
            )

    @staticmethod
    def of(
        size: Time | Duration, step: Time | Duration, offset: Time | Duration | None = None
    ) -> "CumulativeEventTimeWindows":
        """Return windows that grow by a step up to a size, shifted by an offset (None: no shift)."""
        return CumulativeEventTimeWindows(
            interval_ms(size, "window size"), interval_ms(step, "window step"), offset_or_zero(offset)
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows of a timestamp, the longest one first.

        Raises
        ------
        DataError
            If there is no timestamp, or a window is beyond 64 bits.
        """
        require_timestamp(timestamp)
        start = TimeWindow.get_window_start_with_offset(timestamp, self.offset_ms, self.size_ms)
        return [time_window(start, end) for end in range(start + self.size_ms, timestamp, -self.step_ms)]

    def __str__(self) -> str:
        return f"windows that grow by {self.step_ms} ms up to {self.size_ms} ms{shift(self.offset_ms)}"
