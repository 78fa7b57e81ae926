"""Windows of a fixed length of time: tumbling, sliding and cumulative ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flinkcore.common.time import Interval, interval_ms
from flinkcore.datastream.window.local_time_windows import LocalEventTimeWindows
from flinkcore.datastream.window.window_assigner import (
    EventTimeWindowAssigner,
    ProcessingTimeWindowAssigner,
    TimeWindowAssigner,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.datastream.window.window_settings import (
    offset_or_zero,
    require_above_zero,
    require_offset_below,
    shift,
)
from flinkcore.datastream.window.windows import TimeWindow, require_timestamp, time_window
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MAX_WINDOWS: Final = 10_000_000
"""The most sliding windows that an element may be in, as in Flink."""

Tumbling = TypeVar("Tumbling", bound="_TumblingWindows")
Sliding = TypeVar("Sliding", bound="_SlidingWindows")


@dataclass(frozen=True, repr=False)
class _TumblingWindows(TimeWindowAssigner):
    size_ms: int
    offset_ms: int = 0
    window_stagger: WindowStagger = WindowStagger.ALIGNED

    def __post_init__(self) -> None:
        name = type(self).__name__
        require_above_zero(name, "size", self.size_ms)
        require_offset_below(name, "size", self.size_ms, self.offset_ms)
        if not isinstance(self.window_stagger, WindowStagger):
            raise ArgumentTypeError(f"{name}: the stagger is a WindowStagger, not {self.window_stagger!r}")

    @classmethod
    def of(
        cls: type[Tumbling],
        size: Interval,
        offset: Interval | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> Tumbling:
        """Return windows of a size, shifted by an offset, if any, and staggered."""
        return cls(interval_ms(size, "window size"), offset_or_zero(offset), window_stagger)

    def windows_at(
        self, time_ms: int, element: Any, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        require_timestamp(time_ms)
        size_ms, offset_ms = self.size_ms, self.offset_ms
        if self.window_stagger is not WindowStagger.ALIGNED:
            offset_ms += context.get_stagger_offset(self.window_stagger, size_ms)
        start = time_ms - (time_ms - offset_ms) % size_ms
        return [time_window(start, start + size_ms)]

    def __repr__(self) -> str:
        stagger = self.window_stagger
        staggered = "" if stagger is WindowStagger.ALIGNED else f", window_stagger={stagger}"
        return f"{type(self).__name__}(size_ms={self.size_ms}, offset_ms={self.offset_ms}{staggered})"

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.offset_ms})"

    @property
    def in_words(self) -> str:
        clock = "" if self.is_event_time() else " of processing time"
        stagger = self.window_stagger
        staggered = "" if stagger is WindowStagger.ALIGNED else f", stagger {stagger.value}"
        return f"tumbling windows of {self.size_ms} ms{clock}{shift(self.offset_ms)}{staggered}"


class TumblingEventTimeWindows(EventTimeWindowAssigner, _TumblingWindows):
    """Windows of a fixed size that follow each other without gap or overlap.

    An element without a timestamp, or whose window is beyond 64 bits, is a DataError.

    Parameters
    ----------
    size_ms : int
        Size in ms, above zero.
    offset_ms : int
        Windows start at multiples of the size plus this; ``abs(offset_ms) < size_ms``.
    window_stagger : WindowStagger
        By how much they are shifted beyond that.

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
    def of_local_days(zone: str | ZoneInfo, start: time = time()) -> LocalEventTimeWindows:
        """Return windows of the days of a time zone, of 23, 24 or 25 hours as its clock is changed.

        A day begins when the clock first shows its start or a later time of it. Where the clock skips the start, the
        day begins as the clock is set forward; where the clock shows it twice, the first time. A day that the zone
        skips, such as 30 December 2011 in Samoa, has no window. ``LocalDate.atStartOfDay`` of Java has the same rule.

        Parameters
        ----------
        zone : str or zoneinfo.ZoneInfo
            IANA name, such as ``"Europe/Berlin"``, or the zone itself.
        start : datetime.time, default 00:00
            Local time at which days begin.

        Returns
        -------
        LocalEventTimeWindows
            For timestamps of the years 2 to 9998.

        Raises
        ------
        ConfigurationError
            If there is no such zone, or Python finds no time zone data.

        Notes
        -----
        Flink has no such windows: its offset is fixed, so its days do not follow daylight saving. As for `of`,
        timestamps are instants; a column of timestamps without a zone is refused.

        Examples
        --------
        >>> TumblingEventTimeWindows.of_local_days("Europe/Berlin").in_words
        'tumbling windows of a local day of Europe/Berlin, from 00:00 (23 to 25 h)'
        """
        return LocalEventTimeWindows.of("day", zone, start)

    @staticmethod
    def of_local_weeks(
        zone: str | ZoneInfo, start: time = time(), first_weekday: int = 0
    ) -> LocalEventTimeWindows:
        """Return windows of the weeks of a time zone, which begin on a day from 0 (Monday) to 6 (Sunday).

        Zone, start and errors are those of `of_local_days`.
        """
        return LocalEventTimeWindows.of("week", zone, start, first_weekday)

    @staticmethod
    def of_local_months(zone: str | ZoneInfo, start: time = time()) -> LocalEventTimeWindows:
        """Return windows of the months of a time zone; zone, start and errors are those of `of_local_days`."""
        return LocalEventTimeWindows.of("month", zone, start)


class TumblingProcessingTimeWindows(ProcessingTimeWindowAssigner, _TumblingWindows):
    """Windows of a fixed size of processing time, without gap or overlap.

    Parameters and errors are those of :class:`TumblingEventTimeWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.TumblingProcessingTimeWindows``, with the stagger of Flink's.
    """


@dataclass(frozen=True)
class _SlidingWindows(TimeWindowAssigner):
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

    @classmethod
    def of(
        cls: type[Sliding],
        size: Interval,
        slide: Interval,
        offset: Interval | None = None,
    ) -> Sliding:
        """Return windows of a size that start at every slide, shifted by an offset, if any."""
        return cls(
            interval_ms(size, "window size"), interval_ms(slide, "window slide"), offset_or_zero(offset)
        )

    def windows_at(
        self, time_ms: int, element: Any, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        require_timestamp(time_ms)
        size_ms, slide_ms = self.size_ms, self.slide_ms
        last_start = TimeWindow.get_window_start_with_offset(time_ms, self.offset_ms, slide_ms)
        return [
            time_window(start, start + size_ms) for start in range(last_start, time_ms - size_ms, -slide_ms)
        ]

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.slide_ms}, {self.offset_ms})"

    @property
    def in_words(self) -> str:
        clock = "" if self.is_event_time() else " of processing time"
        return f"sliding windows of {self.size_ms} ms every {self.slide_ms} ms{clock}{shift(self.offset_ms)}"


class SlidingEventTimeWindows(EventTimeWindowAssigner, _SlidingWindows):
    """Windows of a fixed size that start at a fixed interval.

    An element without a timestamp, or with a window beyond 64 bits, is a DataError.

    Parameters
    ----------
    size_ms : int
        Size in ms, above zero.
    slide_ms : int
        Time between starts in ms, above zero; above the size, there are gaps that belong to no window.
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


class SlidingProcessingTimeWindows(ProcessingTimeWindowAssigner, _SlidingWindows):
    """Windows of a fixed size that start at a fixed interval of processing time.

    Parameters and errors are those of :class:`SlidingEventTimeWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.SlidingProcessingTimeWindows``.
    """


@dataclass(frozen=True)
class CumulativeEventTimeWindows(EventTimeWindowAssigner):
    """Windows that start together, each a step longer than the one before, up to a size; then the next ones start.

    Such as the sum since midnight, every hour: size one day, step one hour. An element without a timestamp, or with a
    window beyond 64 bits, is a DataError.

    Parameters
    ----------
    size_ms : int
        Size of the longest windows in ms, above zero; a multiple of the step.
    step_ms : int
        Size of the shortest ones, and by how much each is longer than the one before, in ms.
    offset_ms : int
        Windows start at multiples of the size plus this; ``abs(offset_ms) < size_ms``.

    Raises
    ------
    ConfigurationError
        If size or step are not above zero, the size is not a multiple of the step, or the offset not smaller than it.

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
    def of(size: Interval, step: Interval, offset: Interval | None = None) -> CumulativeEventTimeWindows:
        """Return windows that grow by a step up to a size, shifted by an offset, if any."""
        return CumulativeEventTimeWindows(
            interval_ms(size, "window size"), interval_ms(step, "window step"), offset_or_zero(offset)
        )

    def windows_at(
        self, time_ms: int, element: Any, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        require_timestamp(time_ms)
        start = TimeWindow.get_window_start_with_offset(time_ms, self.offset_ms, self.size_ms)
        return [time_window(start, end) for end in range(start + self.size_ms, time_ms, -self.step_ms)]

    @property
    def in_words(self) -> str:
        return f"windows that grow by {self.step_ms} ms up to {self.size_ms} ms{shift(self.offset_ms)}"
