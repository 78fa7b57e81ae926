"""Window assigners over event time."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.errors import ConfigurationError


class WindowAssigner(ABC):
    """States which windows an element belongs to.

    Notes
    -----
    Follows ``pyflink.datastream.window.WindowAssigner``. The native window operators read the fields of the
    built-in assigners; there is no ``assign_windows`` to call per element.
    """

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return True exactly if windows depend on event time, False if they depend on the replay clock."""


@dataclass(frozen=True)
class TumblingEventTimeWindows(WindowAssigner):
    """Windows of a fixed size that follow each other without gap or overlap.

    Parameters
    ----------
    size_ms : int
        Size in milliseconds, above zero.
    offset_ms : int
        Windows start at multiples of the size plus this; ``abs(offset_ms) < size_ms``.

    Raises
    ------
    ConfigurationError
        If the offset is not smaller than the size, or the size not above zero.

    Notes
    -----
    Follows ``pyflink.datastream.window.TumblingEventTimeWindows``.

    Examples
    --------
    >>> TumblingEventTimeWindows.of(Time.hours(1), offset=Time.minutes(15))
    TumblingEventTimeWindows(size_ms=3600000, offset_ms=900000)
    """

    size_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        _require_above_zero("TumblingEventTimeWindows", "size", self.size_ms)
        if abs(self.offset_ms) >= self.size_ms:
            raise ConfigurationError(
                "TumblingEventTimeWindows must satisfy abs(offset) < size, but the size is "
                f"{self.size_ms} ms and the offset {self.offset_ms} ms"
            )

    @staticmethod
    def of(size: Time | Duration, offset: Time | Duration | None = None) -> "TumblingEventTimeWindows":
        """Return windows of a size, shifted by an offset (None: no shift)."""
        return TumblingEventTimeWindows(interval_ms(size, "window size"), _offset_ms(offset))

    def is_event_time(self) -> bool:
        """Return True."""
        return True

    def __str__(self) -> str:
        return f"tumbling windows of {self.size_ms} ms{_shift(self.offset_ms)}"


@dataclass(frozen=True)
class SlidingEventTimeWindows(WindowAssigner):
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
        If the offset is not smaller than the slide, or the size or the slide not above zero.

    Notes
    -----
    Follows ``pyflink.datastream.window.SlidingEventTimeWindows``.

    Examples
    --------
    >>> SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(10))
    SlidingEventTimeWindows(size_ms=60000, slide_ms=10000, offset_ms=0)
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        _require_above_zero("SlidingEventTimeWindows", "size", self.size_ms)
        _require_above_zero("SlidingEventTimeWindows", "slide", self.slide_ms)
        if abs(self.offset_ms) >= self.slide_ms:
            raise ConfigurationError(
                "SlidingEventTimeWindows must satisfy abs(offset) < slide, but the slide is "
                f"{self.slide_ms} ms and the offset {self.offset_ms} ms"
            )

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> "SlidingEventTimeWindows":
        """Return windows of a size that start at every slide, shifted by an offset (None: no shift)."""
        return SlidingEventTimeWindows(
            interval_ms(size, "window size"), interval_ms(slide, "window slide"), _offset_ms(offset)
        )

    def is_event_time(self) -> bool:
        """Return True."""
        return True

    def __str__(self) -> str:
        return f"sliding windows of {self.size_ms} ms every {self.slide_ms} ms{_shift(self.offset_ms)}"


@dataclass(frozen=True)
class EventTimeSessionWindows(WindowAssigner):
    """Sessions: windows that grow as long as elements of a key follow each other within a gap.

    Parameters
    ----------
    gap_ms : int
        Gap in milliseconds, above zero; sessions that touch are merged.

    Raises
    ------
    ConfigurationError
        If the gap is not above zero.

    Notes
    -----
    Follows ``pyflink.datastream.window.EventTimeSessionWindows``.

    Examples
    --------
    >>> EventTimeSessionWindows.with_gap(Time.minutes(30))
    EventTimeSessionWindows(gap_ms=1800000)
    """

    gap_ms: int

    def __post_init__(self) -> None:
        _require_above_zero("EventTimeSessionWindows", "gap", self.gap_ms)

    @staticmethod
    def with_gap(size: Time | Duration) -> "EventTimeSessionWindows":
        """Return sessions that end when a key has been quiet for so long."""
        return EventTimeSessionWindows(interval_ms(size, "session gap"))

    def is_event_time(self) -> bool:
        """Return True."""
        return True

    def __str__(self) -> str:
        return f"sessions with a gap of {self.gap_ms} ms"


def _require_above_zero(windows: str, setting: str, milliseconds: int) -> None:
    if milliseconds <= 0:
        raise ConfigurationError(f"{windows}: the {setting} must be above zero, it is {milliseconds} ms")


def _offset_ms(offset: Time | Duration | None) -> int:
    return 0 if offset is None else interval_ms(offset, "window offset")


def _shift(offset_ms: int) -> str:
    return f" shifted by {offset_ms} ms" if offset_ms else ""


__all__ = [
    "EventTimeSessionWindows",
    "SlidingEventTimeWindows",
    "TumblingEventTimeWindows",
    "WindowAssigner",
]
