"""Windows of a fixed size, one after the other."""

from dataclasses import dataclass
from typing import Any

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.datastream.window.event_time_trigger import EventTimeTrigger
from flinkcore.datastream.window.lengths import (
    offset_or_zero,
    require_above_zero,
    require_offset_below,
    shift,
)
from flinkcore.datastream.window.processing_time_trigger import ProcessingTimeTrigger
from flinkcore.datastream.window.time_window import TimeWindow, require_timestamp, time_window
from flinkcore.datastream.window.trigger import Trigger
from flinkcore.datastream.window.window_assigner import WindowAssigner
from flinkcore.datastream.window.window_stagger import WindowStagger
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class TumblingEventTimeWindows(WindowAssigner[Any, TimeWindow]):
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

    size_ms: int
    offset_ms: int = 0
    window_stagger: WindowStagger = WindowStagger.ALIGNED

    def __post_init__(self) -> None:
        _check(type(self).__name__, self.size_ms, self.offset_ms, self.window_stagger)

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

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return an EventTimeTrigger."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Return True."""
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}{_settings(self.size_ms, self.offset_ms, self.window_stagger)}"

    def __str__(self) -> str:
        return (
            f"tumbling windows of {self.size_ms} ms{shift(self.offset_ms)}{_staggered(self.window_stagger)}"
        )


@dataclass(frozen=True)
class TumblingProcessingTimeWindows(WindowAssigner[Any, TimeWindow]):
    """Windows of a fixed size of processing time, without gap or overlap.

    Parameters and errors are those of :class:`TumblingEventTimeWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.TumblingProcessingTimeWindows``, with the stagger of Flink's.
    """

    size_ms: int
    offset_ms: int = 0
    window_stagger: WindowStagger = WindowStagger.ALIGNED

    def __post_init__(self) -> None:
        _check(type(self).__name__, self.size_ms, self.offset_ms, self.window_stagger)

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

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return a ProcessingTimeTrigger."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """Return False."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}{_settings(self.size_ms, self.offset_ms, self.window_stagger)}"

    def __str__(self) -> str:
        return (
            f"tumbling windows of {self.size_ms} ms of processing time{shift(self.offset_ms)}"
            f"{_staggered(self.window_stagger)}"
        )


def _check(name: str, size_ms: int, offset_ms: int, stagger: WindowStagger) -> None:
    require_above_zero(name, "size", size_ms)
    require_offset_below(name, "size", size_ms, offset_ms)
    if not isinstance(stagger, WindowStagger):
        raise ConfigurationError(f"{name}: the stagger is a WindowStagger, not {stagger!r}")


def _settings(size_ms: int, offset_ms: int, stagger: WindowStagger) -> str:
    staggered = "" if stagger is WindowStagger.ALIGNED else f", window_stagger={stagger}"
    return f"(size_ms={size_ms}, offset_ms={offset_ms}{staggered})"


def _staggered(stagger: WindowStagger) -> str:
    return "" if stagger is WindowStagger.ALIGNED else f", stagger {stagger.value}"
