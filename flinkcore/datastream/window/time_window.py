"""Windows from a start to an end."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.window.window import Window
from flinkcore.errors import DataError

if TYPE_CHECKING:
    from flinkcore.datastream.window.window_assigner import MergingWindowAssigner


class _Bounds(NamedTuple):
    start: int
    end: int


class TimeWindow(_Bounds, Window):
    """The time from a start, inclusive, to an end, exclusive; windows are ordered by start, then end.

    Parameters
    ----------
    start, end : int
        In ms since the epoch.

    Notes
    -----
    Follows ``pyflink.datastream.window.TimeWindow``. It is a tuple, so that finding state by window is fast.
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        """Return the end less 1."""
        return self.end - 1

    def intersects(self, other: "TimeWindow") -> bool:
        """Return whether the windows overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: "TimeWindow") -> "TimeWindow":
        """Return the smallest window that has both in it."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window of a size that a timestamp is in; all in ms, any of them negative."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(
        windows: Iterable["TimeWindow"], callback: "MergingWindowAssigner.MergeCallback[TimeWindow]"
    ) -> None:
        """Tell which windows overlap or touch.

        Parameters
        ----------
        windows : iterable of TimeWindow
        callback : MergingWindowAssigner.MergeCallback
            Called for every group of at least two different windows, with the group and what covers it.
        """
        covering: TimeWindow | None = None
        group: set[TimeWindow] = set()
        for window in sorted(windows):
            if covering is not None and covering.intersects(window):
                covering = covering.cover(window)
                group.add(window)
                continue
            if covering is not None and len(group) > 1:
                callback.merge(group, covering)
            covering, group = window, {window}
        if covering is not None and len(group) > 1:
            callback.merge(group, covering)


def time_window(start: int, end: int) -> TimeWindow:
    """Return a window whose bounds fit in 64 bits.

    Raises
    ------
    DataError
        If they do not; Flink wraps around.
    """
    if start < MIN_TIMESTAMP or end > MAX_TIMESTAMP:
        raise DataError(
            f"the window from {start} to {end} ms is beyond 64 bits: the timestamp of the element, or the size of "
            "its window, is too large"
        )
    return TimeWindow(start, end)


def require_timestamp(timestamp: int) -> None:
    """Raise DataError if a timestamp is the minimum, which is what an element without a timestamp has."""
    if timestamp == MIN_TIMESTAMP:
        raise DataError(
            "an element has no timestamp (its timestamp is -2**63), but windows of event time need one: call "
            "assign_timestamps_and_watermarks before, or take windows of processing time"
        )
