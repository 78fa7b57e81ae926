"""The windows of rows, for operators that keep rows by window."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime, since_starts, slide_of
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError


class RowWindows(NamedTuple):
    """Windows of rows, of each row in the order of their ends.

    Attributes
    ----------
    rows : int64 array (n,) or None
        Index of the row of each window; None: each row has one.
    ends : int64 array (n,)
        In ms since the epoch.
    """

    rows: Int64s | None
    ends: Int64s

    @property
    def is_last(self) -> npt.NDArray[np.uint8] | None:
        """Whether it is the last window of its row; None: each is."""
        if self.rows is None:
            return None
        return np.diff(self.rows, append=-1).astype(np.bool_).view(np.uint8)


def require_row_windows(assigner: WindowAssigner[Any, Any], call: str) -> WindowsByTime:
    """Return windows whose bounds follow from the time of a row alone.

    Raises
    ------
    ConfigurationError
        If these are others.
    """
    staggered = (
        isinstance(assigner, TumblingEventTimeWindows)
        and assigner.window_stagger is not WindowStagger.ALIGNED
    )
    if not isinstance(assigner, WindowsByTime) or staggered:
        raise ConfigurationError(
            f"{call} takes windows whose bounds follow from the time of a row alone: tumbling, sliding and cumulative "
            f"ones of event time, and days, weeks and months. These are {assigner.in_words}: aggregate them first, and "
            "take their results by key with window_end='window_end'"
        )
    return assigner


def windows_of(assigner: WindowsByTime, timestamps_ms: Int64s) -> RowWindows:
    """Return the windows of rows by their timestamps, which are within `window_timestamps`."""
    if isinstance(assigner, LocalEventTimeWindows):
        return RowWindows(None, assigner.calendar.bounds(timestamps_ms)[1])
    size, offset, slide = assigner.size_ms, assigner.offset_ms, slide_of(assigner)
    if isinstance(assigner, SlidingEventTimeWindows):
        # Windows that begin at the last start before a row, and one slide earlier each.
        since = since_starts(timestamps_ms, offset, slide)
        counts = np.maximum(0, -((since - size) // slide))
        last_ends = timestamps_ms - since + size
    elif isinstance(assigner, CumulativeEventTimeWindows):
        since = since_starts(timestamps_ms, offset, size)
        counts = size // slide - since // slide
        last_ends = timestamps_ms - since + size
    else:
        return RowWindows(None, timestamps_ms - since_starts(timestamps_ms, offset, size) + size)
    rows = np.repeat(np.arange(len(timestamps_ms)), counts)
    firsts = np.cumsum(counts) - counts
    back = np.repeat(firsts + counts - 1, counts) - np.arange(len(rows))
    return RowWindows(rows, last_ends[rows] - back * slide)


def window_starts(assigner: WindowsByTime, ends_ms: Int64s) -> Int64s:
    """Return the starts of windows by their ends."""
    if isinstance(assigner, LocalEventTimeWindows):
        return assigner.calendar.bounds(ends_ms - 1)[0]
    if isinstance(assigner, CumulativeEventTimeWindows):
        last = ends_ms - 1
        return last - since_starts(last, assigner.offset_ms, assigner.size_ms)
    return ends_ms - assigner.size_ms
