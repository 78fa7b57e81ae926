"""Sessions: windows that end when a key has been quiet for a while."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.datastream.window.lengths import require_above_zero
from flinkcore.datastream.window.session_gap import GapExtractor, gap_of, require_extractor
from flinkcore.datastream.window.time_window import TimeWindow, time_window
from flinkcore.datastream.window.time_window_assigners import (
    EventTimeWindowAssigner,
    ProcessingTimeWindowAssigner,
)
from flinkcore.datastream.window.window_assigner import MergingWindowAssigner, WindowAssigner


class _SessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    """Sessions that overlap or touch become one."""

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        """Merge windows that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)


@dataclass(frozen=True)
class EventTimeSessionWindows(EventTimeWindowAssigner, _SessionWindows):
    """Sessions: windows that grow as long as elements of a key follow each other within a gap.

    An element without a timestamp counts as one of the smallest timestamp, as in Flink.

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
        require_above_zero("EventTimeSessionWindows", "gap", self.gap_ms)

    @staticmethod
    def with_gap(size: Time | Duration) -> "EventTimeSessionWindows":
        """Return sessions that end when a key has been quiet for so long."""
        return EventTimeSessionWindows(interval_ms(size, "session gap"))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> "DynamicEventTimeSessionWindows":
        """Return sessions whose gap depends on the element."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the session of the element alone; DataError if it is beyond 64 bits."""
        return [time_window(timestamp, timestamp + self.gap_ms)]

    def __str__(self) -> str:
        return f"sessions with a gap of {self.gap_ms} ms"


@dataclass(frozen=True)
class ProcessingTimeSessionWindows(ProcessingTimeWindowAssigner, _SessionWindows):
    """Sessions of processing time: windows that grow as long as elements of a key come within a gap.

    Parameters and errors are those of :class:`EventTimeSessionWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.ProcessingTimeSessionWindows``.
    """

    gap_ms: int

    def __post_init__(self) -> None:
        require_above_zero("ProcessingTimeSessionWindows", "gap", self.gap_ms)

    @staticmethod
    def with_gap(size: Time | Duration) -> "ProcessingTimeSessionWindows":
        """Return sessions that end when a key has been quiet for so long."""
        return ProcessingTimeSessionWindows(interval_ms(size, "session gap"))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> "DynamicProcessingTimeSessionWindows":
        """Return sessions whose gap depends on the element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the session of the element alone."""
        now_ms = context.get_current_processing_time()
        return [time_window(now_ms, now_ms + self.gap_ms)]

    def __str__(self) -> str:
        return f"sessions with a gap of {self.gap_ms} ms of processing time"


@dataclass(frozen=True)
class DynamicEventTimeSessionWindows(EventTimeWindowAssigner, _SessionWindows):
    """Sessions whose gap depends on the element.

    Parameters
    ----------
    extractor : SessionWindowTimeGapExtractor or callable
        From an element to its gap in ms.

    Raises
    ------
    ConfigurationError
        If the extractor is none.

    Notes
    -----
    Follows ``pyflink.datastream.window.DynamicEventTimeSessionWindows``. A gap of zero or less is a UserCodeError.
    """

    extractor: GapExtractor

    def __post_init__(self) -> None:
        require_extractor("DynamicEventTimeSessionWindows", self.extractor)

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> "DynamicEventTimeSessionWindows":
        """Return sessions whose gap depends on the element."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the session of the element alone; errors as of `gap_of`, and DataError beyond 64 bits."""
        return [time_window(timestamp, timestamp + gap_of(self.extractor, element))]

    def __str__(self) -> str:
        return "sessions with a gap that depends on the element"


@dataclass(frozen=True)
class DynamicProcessingTimeSessionWindows(ProcessingTimeWindowAssigner, _SessionWindows):
    """Sessions of processing time whose gap depends on the element.

    Parameters and errors are those of :class:`DynamicEventTimeSessionWindows`.

    Notes
    -----
    Follows ``pyflink.datastream.window.DynamicProcessingTimeSessionWindows``.
    """

    extractor: GapExtractor

    def __post_init__(self) -> None:
        require_extractor("DynamicProcessingTimeSessionWindows", self.extractor)

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> "DynamicProcessingTimeSessionWindows":
        """Return sessions whose gap depends on the element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the session of the element alone; errors as of `gap_of`."""
        now_ms = context.get_current_processing_time()
        return [time_window(now_ms, now_ms + gap_of(self.extractor, element))]

    def __str__(self) -> str:
        return "sessions with a gap of processing time that depends on the element"
