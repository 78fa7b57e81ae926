"""Sessions: windows that end when a key has been quiet for a gap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from flinkcore.common.time import Interval, interval_ms
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.datastream.window.window_assigner import (
    EventTimeWindowAssigner,
    MergingWindowAssigner,
    ProcessingTimeWindowAssigner,
    TimeWindowAssigner,
    WindowAssigner,
)
from flinkcore.datastream.window.window_settings import require_above_zero
from flinkcore.datastream.window.windows import TimeWindow, time_window
from flinkcore.errors import ArgumentTypeError, UserCodeError, in_words


class SessionWindowTimeGapExtractor(ABC):
    """Extractor of the session gap of an element.

    Notes
    -----
    Follows ``pyflink.datastream.window.SessionWindowTimeGapExtractor``.
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return how long after the element its session ends, in ms, at least 1."""


GapExtractor = SessionWindowTimeGapExtractor | Callable[[Any], int]
"""An extractor, or a plain function of the element."""

FixedGap = TypeVar("FixedGap", bound="_FixedGapSessions")
DynamicGap = TypeVar("DynamicGap", bound="_DynamicGapSessions")


class _SessionWindows(TimeWindowAssigner, MergingWindowAssigner[Any, TimeWindow]):
    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)


@dataclass(frozen=True)
class _FixedGapSessions(_SessionWindows):
    gap_ms: int

    def __post_init__(self) -> None:
        require_above_zero(type(self).__name__, "gap", self.gap_ms)

    @classmethod
    def with_gap(cls: type[FixedGap], size: Interval) -> FixedGap:
        """Return sessions that end when a key has been quiet for a gap."""
        return cls(interval_ms(size, "session gap"))

    def windows_at(
        self, time_ms: int, element: Any, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return [time_window(time_ms, time_ms + self.gap_ms)]

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.gap_ms})"

    @property
    def in_words(self) -> str:
        clock = "" if self.is_event_time() else " of processing time"
        return f"sessions with a gap of {self.gap_ms} ms{clock}"


@dataclass(frozen=True)
class _DynamicGapSessions(_SessionWindows):
    extractor: GapExtractor

    def __post_init__(self) -> None:
        if not isinstance(self.extractor, SessionWindowTimeGapExtractor) and not callable(self.extractor):
            raise ArgumentTypeError(
                f"{type(self).__name__} takes a SessionWindowTimeGapExtractor or a function of an element, "
                f"not {self.extractor!r}"
            )

    @classmethod
    def with_dynamic_gap(cls: type[DynamicGap], extractor: GapExtractor) -> DynamicGap:
        """Return sessions whose gap depends on the element."""
        return cls(extractor)

    def windows_at(
        self, time_ms: int, element: Any, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        extractor = self.extractor
        call = extractor.extract if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor
        try:
            gap = call(element)
        except Exception as failure:
            raise UserCodeError(
                f"{self._called()} failed to give the gap of a session: {in_words(failure)}"
            ) from failure
        gap_ms = as_timestamp(gap)
        if gap_ms is None or gap_ms <= 0:
            raise UserCodeError(
                f"{self._called()} gave {gap!r} as the gap of a session: it is to return an int of ms above zero"
            )
        return [time_window(time_ms, time_ms + gap_ms)]

    def _called(self) -> str:
        kind = type(self.extractor).__qualname__
        if isinstance(self.extractor, SessionWindowTimeGapExtractor):
            return f"{kind}.extract"
        return str(getattr(self.extractor, "__qualname__", kind))

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.extractor})"

    @property
    def in_words(self) -> str:
        clock = "" if self.is_event_time() else " of processing time"
        return f"sessions with a gap{clock} that depends on the element"


class EventTimeSessionWindows(EventTimeWindowAssigner, _FixedGapSessions):
    """Sessions: windows that grow as long as elements of a key follow each other within a gap.

    An element without a timestamp counts as one of the smallest timestamp, as in Flink; a window beyond 64 bits is a
    DataError.

    Parameters
    ----------
    gap_ms : int
        Gap in ms, above zero; sessions that touch are merged.

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

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        """Return sessions whose gap depends on the element."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(ProcessingTimeWindowAssigner, _FixedGapSessions):
    """Sessions of processing time: windows that grow as long as elements of a key arrive within a gap.

    Parameters and errors are those of :class:`EventTimeSessionWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.ProcessingTimeSessionWindows``.
    """

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Return sessions whose gap depends on the element."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(EventTimeWindowAssigner, _DynamicGapSessions):
    """Sessions whose gap depends on the element.

    Parameters
    ----------
    extractor : SessionWindowTimeGapExtractor or callable
        From an element to its gap in ms, an int above zero; anything else is a UserCodeError.

    Raises
    ------
    ConfigurationError
        If the extractor cannot be called.

    Notes
    -----
    Follows ``pyflink.datastream.window.DynamicEventTimeSessionWindows``.
    """


class DynamicProcessingTimeSessionWindows(ProcessingTimeWindowAssigner, _DynamicGapSessions):
    """Sessions of processing time whose gap depends on the element.

    Parameters and errors are those of :class:`DynamicEventTimeSessionWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.DynamicProcessingTimeSessionWindows``.
    """
