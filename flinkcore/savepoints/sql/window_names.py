"""Names of windows and slices in states of Flink SQL, with their beginnings and ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.sql.plan.flink_state import CUMULATE, SESSION, StateWindows


def is_named_by_window(windows: StateWindows) -> bool:
    """Return whether Flink names windows by their bounds, and not by the end of a slice."""
    return windows.by_window or windows.kind == SESSION


def names_of_windows(windows: StateWindows, starts: Int64s, ends: Int64s) -> pa.Array:
    """Return the namespaces of windows or slices."""
    if not is_named_by_window(windows):
        return pa.array(ends)
    return pa.StructArray.from_arrays([pa.array(starts), pa.array(ends)], ["start_ms", "end_ms"])


def first_slices(windows: StateWindows, slice_ends: Int64s) -> Int64s:
    """Return the end of the first slice of the window that a slice is in, of windows that cumulate."""
    starts = slice_ends - 1 - (slice_ends - 1 - windows.offset_ms) % windows.size_ms
    return starts + windows.slide_ms


def starts_of_windows(windows: StateWindows, ends: Int64s) -> Int64s:
    """Return the starts of windows with these ends."""
    if windows.kind == CUMULATE:
        return first_slices(windows, ends) - windows.slide_ms
    return ends - windows.size_ms


def last_ends(windows: StateWindows, slice_ends: Int64s) -> Int64s:
    """Return the end of the last window that a slice is in."""
    if windows.kind == CUMULATE:
        return first_slices(windows, slice_ends) + (windows.size_ms - windows.slide_ms)
    return slice_ends + (windows.size_ms - windows.slide_ms)


def ends_of_windows(windows: StateWindows, slice_ends: Int64s) -> tuple[Int64s, Int64s]:
    """Return the number of a slice and the end of a window, for each window that a slice is in."""
    n = windows.size_ms // windows.slide_ms
    of_slice = np.repeat(np.arange(len(slice_ends)), n)
    ends = slice_ends[of_slice] + np.tile(np.arange(n), len(slice_ends)) * windows.slide_ms
    is_in = ends <= last_ends(windows, slice_ends)[of_slice]
    return of_slice[is_in], ends[is_in]
