"""Windows of a fixed size that overlap."""

from dataclasses import dataclass
from typing import Any, Final

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.datastream.window.lengths import (
    offset_or_zero,
    require_above_zero,
    require_offset_below,
    shift,
)
from flinkcore.datastream.window.time_window import TimeWindow, require_timestamp, time_window
from flinkcore.datastream.window.time_window_assigners import (
    EventTimeWindowAssigner,
    ProcessingTimeWindowAssigner,
)
from flinkcore.datastream.window.window_assigner import WindowAssigner
from flinkcore.errors import ConfigurationError

MAX_WINDOWS: Final = 10_000_000
"""So many windows may an element be in, as in Flink."""


@dataclass(frozen=True)
class _SlidingWindows(WindowAssigner[Any, TimeWindow]):
    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        name = type(self).__name__
        require_above_zero(name, "size", self.size_ms)
        require_above_zero(name, "slide", self.slide_ms)
        require_offset_below(name, "slide", self.slide_ms, self.offset_ms)
        if self.size_ms // self.slide_ms > MAX_WINDOWS:
            raise ConfigurationError(
                f"{name} must satisfy size / slide <= {MAX_WINDOWS}, but the size is {self.size_ms} ms and the slide "
                f"{self.slide_ms} ms"
            )

    def _windows(self, time_ms: int) -> list[TimeWindow]:
        size_ms, slide_ms = self.size_ms, self.slide_ms
        last_start = TimeWindow.get_window_start_with_offset(time_ms, self.offset_ms, slide_ms)
        return [
            time_window(start, start + size_ms) for start in range(last_start, time_ms - size_ms, -slide_ms)
        ]

    def __str__(self) -> str:
        clock = "" if self.is_event_time() else " of processing time"
        return f"sliding windows of {self.size_ms} ms every {self.slide_ms} ms{clock}{shift(self.offset_ms)}"


@dataclass(frozen=True)
class SlidingEventTimeWindows(EventTimeWindowAssigner, _SlidingWindows):
    """Windows of a fixed size that start at a fixed interval.

    Parameters
    ----------
    size_ms : int
        Size in milliseconds, above zero.
    slide_ms : int
        Distance between starts in milliseconds, above zero; above the size there are gaps that belong to no
        window.
    offset_ms : int
        Windows start at multiples of the slide plus this; ``abs(offset_ms) < slide_ms``.

    Raises
    ------
    ConfigurationError
        If the offset is not smaller than the slide, the size or the slide not above zero, or the size more than ten
        million slides.

    Notes
    -----
    Follows ``pyflink.datastream.window.SlidingEventTimeWindows``.

    Examples
    --------
    >>> SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(10))
    SlidingEventTimeWindows(size_ms=60000, slide_ms=10000, offset_ms=0)
    """

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> "SlidingEventTimeWindows":
        """Return windows of a size that start at every slide, shifted by an offset (None: no shift)."""
        return SlidingEventTimeWindows(
            interval_ms(size, "window size"), interval_ms(slide, "window slide"), offset_or_zero(offset)
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows of a timestamp, the latest one first.

        Raises
        ------
        DataError
            If there is no timestamp, or a window is beyond 64 bits.
        """
        require_timestamp(timestamp)
        return self._windows(timestamp)


@dataclass(frozen=True)
class SlidingProcessingTimeWindows(ProcessingTimeWindowAssigner, _SlidingWindows):
    """Windows of a fixed size that start at a fixed interval of processing time.

    Parameters and errors are those of :class:`SlidingEventTimeWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.SlidingProcessingTimeWindows``.
    """

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> "SlidingProcessingTimeWindows":
        """Return windows of a size that start at every slide, shifted by an offset (None: no shift)."""
        return SlidingProcessingTimeWindows(
            interval_ms(size, "window size"), interval_ms(slide, "window slide"), offset_or_zero(offset)
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows of the processing time, the latest one first."""
        return self._windows(context.get_current_processing_time())
