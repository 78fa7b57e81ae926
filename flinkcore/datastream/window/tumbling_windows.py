"""Windows of a fixed size, one after the other."""

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
from flinkcore.datastream.window.time_window_assigners import (
    EventTimeWindowAssigner,
    ProcessingTimeWindowAssigner,
)
from flinkcore.datastream.window.window_assigner import WindowAssigner
from flinkcore.datastream.window.window_stagger import WindowStagger
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True, repr=False)
class _TumblingWindows(WindowAssigner[Any, TimeWindow]):
    size_ms: int
    offset_ms: int = 0
    window_stagger: WindowStagger = WindowStagger.ALIGNED

    def __post_init__(self) -> None:
        name = type(self).__name__
        require_above_zero(name, "size", self.size_ms)
        require_offset_below(name, "size", self.size_ms, self.offset_ms)
        if not isinstance(self.window_stagger, WindowStagger):
            raise ConfigurationError(f"{name}: the stagger is a WindowStagger, not {self.window_stagger!r}")

    def __repr__(self) -> str:
        stagger = self.window_stagger
        staggered = "" if stagger is WindowStagger.ALIGNED else f", window_stagger={stagger}"
        return f"{type(self).__name__}(size_ms={self.size_ms}, offset_ms={self.offset_ms}{staggered})"

    def __str__(self) -> str:
        clock = "" if self.is_event_time() else " of processing time"
        stagger = self.window_stagger
        staggered = "" if stagger is WindowStagger.ALIGNED else f", stagger {stagger.value}"
        return f"tumbling windows of {self.size_ms} ms{clock}{shift(self.offset_ms)}{staggered}"


@dataclass(frozen=True, repr=False)
class TumblingEventTimeWindows(EventTimeWindowAssigner, _TumblingWindows):
    """Windows of a fixed size that follow each other without gap or overlap.

    Parameters
    ----------
    size_ms : int
        Size in milliseconds, above zero.
    offset_ms : int
        Windows start at multiples of the size plus this; ``abs(offset_ms) < size_ms``.
    window_stagger : WindowStagger
        By how much they are moved beyond that.

    Raises
    ------
    ConfigurationError
        If the offset is not smaller than the size, or the size not above zero.

    Notes
    -----
    Follows ``pyflink.datastream.window.TumblingEventTimeWindows``, with the stagger of Flink's.

    Examples
    --------
    >>> TumblingEventTimeWindows.of(Time.hours(1), offset=Time.minutes(15))
    TumblingEventTimeWindows(size_ms=3600000, offset_ms=900000)
    """

    @staticmethod
    def of(
        size: Time | Duration,
        offset: Time | Duration | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> "TumblingEventTimeWindows":
        """Return windows of a size, shifted by an offset (None: no shift), and staggered."""
        return TumblingEventTimeWindows(
            interval_ms(size, "window size"), offset_or_zero(offset), window_stagger
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the window of a timestamp.

        Raises
        ------
        DataError
            If there is no timestamp, or the window is beyond 64 bits.
        """
        require_timestamp(timestamp)
        offset_ms = self.offset_ms
        if self.window_stagger is not WindowStagger.ALIGNED:
            offset_ms += context.get_stagger_offset(self.window_stagger, self.size_ms)
        start = TimeWindow.get_window_start_with_offset(timestamp, offset_ms, self.size_ms)
        return [time_window(start, start + self.size_ms)]


@dataclass(frozen=True, repr=False)
class TumblingProcessingTimeWindows(ProcessingTimeWindowAssigner, _TumblingWindows):
    """Windows of a fixed size of processing time, without gap or overlap.

    Parameters and errors are those of :class:`TumblingEventTimeWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.TumblingProcessingTimeWindows``, with the stagger of Flink's.
    """

    @staticmethod
    def of(
        size: Time | Duration,
        offset: Time | Duration | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> "TumblingProcessingTimeWindows":
        """Return windows of a size, shifted by an offset (None: no shift), and staggered."""
        return TumblingProcessingTimeWindows(
            interval_ms(size, "window size"), offset_or_zero(offset), window_stagger
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the window of the processing time."""
        offset_ms = self.offset_ms
        if self.window_stagger is not WindowStagger.ALIGNED:
            offset_ms += context.get_stagger_offset(self.window_stagger, self.size_ms)
        now_ms = context.get_current_processing_time()
        start = TimeWindow.get_window_start_with_offset(now_ms, offset_ms, self.size_ms)
        return [time_window(start, start + self.size_ms)]
