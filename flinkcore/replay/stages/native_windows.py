"""From a window assigner and a trigger to the native windows that do what they say."""

from __future__ import annotations

from typing import Any

from flinkcore._native.session_windows import session_windows
from flinkcore._native.sliced_windows import sliced_windows
from flinkcore._native.triggered_windows import global_windows, triggered_windows
from flinkcore._native.window_kernel import WindowKernel
from flinkcore._native.windows import time_windows
from flinkcore.datastream.columnar_windows import columnar_trigger, require_columnar
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)


def window_kernel(
    assigner: WindowAssigner[Any, Any],
    trigger: Trigger[Any, Any] | None,
    allowed_lateness_ms: int,
    *,
    shareable: bool,
    purges: bool = False,
) -> WindowKernel:
    """Make native windows, without any state yet.

    Parameters
    ----------
    assigner : WindowAssigner
    trigger : Trigger or None
        None: the one that the windows have by themselves.
    allowed_lateness_ms : int
    shareable : bool
        Whether windows that overlap may share what they aggregate.
    purges : bool
        Whether a firing empties a window, also where the trigger does not say so.

    Returns
    -------
    WindowKernel
        For one operator; also tells which timestamps have a window.

    Raises
    ------
    ConfigurationError
        If the windows do not run over columns.
    """
    require_columnar(assigner, trigger)
    firing = columnar_trigger(assigner, trigger)
    assert firing is not None
    purges = purges or firing.purges
    by_trigger: dict[str, Any] = {"trigger": firing.name, "every": firing.every, "purges": purges}
    if isinstance(assigner, EventTimeSessionWindows):
        return session_windows(gap=assigner.gap_ms, allowed_lateness=allowed_lateness_ms, **by_trigger)
    if not isinstance(
        assigner, TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows
    ):
        return global_windows(**by_trigger)
    slide_ms = _slide_ms(assigner)
    windows: dict[str, Any] = {
        "size": assigner.size_ms,
        "slide": slide_ms,
        "offset": assigner.offset_ms,
        "allowed_lateness": allowed_lateness_ms,
        "cumulative": isinstance(assigner, CumulativeEventTimeWindows),
    }
    if firing.name != "event_time":
        return triggered_windows(**windows, **by_trigger)
    overlap = slide_ms < assigner.size_ms and assigner.size_ms % slide_ms == 0
    # A purged window has nothing left for its late rows; the slices that windows share do.
    if shareable and overlap and not (purges and allowed_lateness_ms):
        return sliced_windows(**windows)
    return time_windows(**windows, purges=purges)


def _slide_ms(
    assigner: TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows,
) -> int:
    if isinstance(assigner, SlidingEventTimeWindows):
        return assigner.slide_ms
    return assigner.step_ms if isinstance(assigner, CumulativeEventTimeWindows) else assigner.size_ms
