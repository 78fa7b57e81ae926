"""States of Flink SQL's aggregates: names and types, and how windows are named."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.row_data import row_data
from flinkcore.savepoints.sql.names import ACCUMULATORS, SESSIONS, WINDOW_ACCUMULATORS, WINDOW_TIMERS
from flinkcore.sql.plan.flink_state import CUMULATE, SESSION, FlinkState, StateWindows


def aggregate_states(state: FlinkState) -> Mapping[str, KeyedTypes]:
    """Return the types of the states and timers of an aggregate, by name.

    Notes
    -----
    Flink's ``GroupAggFunction``; ``WindowAggOperator`` with ``SliceUnsharedWindowAggProcessor``,
    ``SliceSharedWindowAggProcessor`` and ``UnsliceWindowAggProcessor``; ``WindowOperator`` of legacy group windows.

    Raises
    ------
    UnsupportedOperationError
        If a key or an accumulator is of a type that cannot be written or restored.
    """
    key = row_data([kind for _, kind in state.keys])
    value = row_data([each.type for each in state.fields])
    windows = state.windows
    if windows is None:
        return {ACCUMULATORS: KeyedTypes("VALUE", key, times.VOID_NAMESPACE, None, value, False)}
    namespace = times.TABLE_TIME_WINDOW if is_named_by_window(windows) else basic.LONG
    found = {
        WINDOW_ACCUMULATORS: KeyedTypes("VALUE", key, namespace, None, value, False),
        WINDOW_TIMERS: KeyedTypes("TIMERS", key, namespace, None, None, False),
    }
    if windows.kind == SESSION:
        window = times.TABLE_TIME_WINDOW
        found[SESSIONS] = KeyedTypes("MAP", key, times.VOID_NAMESPACE, window, window, False)
    return found


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
