"""From a window assigner and a trigger to the native windows that do what they say."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.count_windows import count_windows, sliced_count_windows
from flinkcore._native.panes import aligned_timestamps
from flinkcore._native.session_windows import session_windows
from flinkcore._native.time_windows import sliced_windows, time_windows
from flinkcore._native.triggered_windows import global_windows, triggered_windows
from flinkcore._native.window_operator import WindowKernel
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.graph.columnar_windows import ColumnarTrigger, columnar_trigger, require_columnar
from flinkcore.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    Evictor,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)

AlignedWindows: TypeAlias = TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows
"""Windows of fixed lengths, which start at fixed intervals."""

WindowsByTime: TypeAlias = AlignedWindows | LocalEventTimeWindows
"""Windows whose bounds follow from the timestamp alone, except tumbling ones that are staggered."""

_BEYOND_ALL_ELEMENTS: Final = 2**62
_SHARING_PAYS: Final = 32
"""By how many elements windows are longer than their slide where it costs less to share slices.

Where there are many keys, adding up a slice costs as much as it costs 13 windows to take in an element; where there
are few, more.
"""


def window_kernel(
    assigner: WindowAssigner[Any, Any],
    trigger: Trigger[Any, Any] | None,
    allowed_lateness_ms: int,
    evictor: Evictor[Any] | None = None,
    *,
    shareable: bool,
    purges: bool = False,
    has_timers: bool = False,
) -> WindowKernel:
    """Make native windows, without any state yet.

    Parameters
    ----------
    assigner : WindowAssigner
    trigger : Trigger or None
        Trigger, or None for the default one of the windows.
    allowed_lateness_ms : int
    evictor : Evictor, optional
    shareable : bool
        Whether windows that overlap may share what they aggregate.
    purges : bool
        Whether a firing empties a window, even if the trigger does not say so.
    has_timers : bool
        Whether each key of a window has its own timer, which may have fired though the watermark has not passed it.

    Returns
    -------
    WindowKernel
        For one operator.

    Raises
    ------
    ConfigurationError
        If the windows do not run over columns.
    """
    require_columnar(assigner, trigger, evictor)
    firing = columnar_trigger(assigner, trigger)
    assert firing is not None
    if isinstance(assigner, CountSlidingWindowAssigner):
        return _count_windows(assigner.window_size, assigner.window_slide, True, shareable)
    if isinstance(evictor, CountEvictor):
        return _last_elements(firing, evictor, shareable)
    purges = purges or firing.purges
    by_trigger: dict[str, Any] = {"trigger": firing.name, "every": firing.every, "purges": purges}
    if isinstance(assigner, EventTimeSessionWindows):
        return session_windows(gap=assigner.gap_ms, allowed_lateness=allowed_lateness_ms, **by_trigger)
    if not isinstance(assigner, WindowsByTime):
        return global_windows(**by_trigger)
    windows = {**window_bounds(assigner), "allowed_lateness": allowed_lateness_ms}
    if firing.name != "event_time":
        return triggered_windows(**windows, **by_trigger)
    if isinstance(assigner, LocalEventTimeWindows):
        return time_windows(**windows, purges=purges)
    slide_ms = slide_of(assigner)
    overlap = slide_ms < assigner.size_ms and assigner.size_ms % slide_ms == 0
    if has_timers and (overlap or allowed_lateness_ms):
        return triggered_windows(**windows, **by_trigger)
    # A purged window has nothing left for its late rows; the slices that windows share do.
    if shareable and overlap and not (purges and allowed_lateness_ms):
        return sliced_windows(**windows)
    return time_windows(**windows, purges=purges)


def _last_elements(firing: ColumnarTrigger, evictor: CountEvictor, shareable: bool) -> WindowKernel:
    """Return what an evictor leaves of a window without end, each time that it fires by a count."""
    slide = max(firing.every, 1)  # a CountTrigger of 0 fires at every element
    size = evictor.max_count
    if evictor.do_evict_after:
        size += slide  # what came since the last firing is in the result before it is evicted
    return _count_windows(min(size, slide) if firing.purges else size, slide, False, shareable)


def _count_windows(size: int, slide: int, full_only: bool, shareable: bool) -> WindowKernel:
    size, slide = min(size, _BEYOND_ALL_ELEMENTS), min(slide, _BEYOND_ALL_ELEMENTS)
    shares = shareable and size % slide == 0 and size - slide >= _SHARING_PAYS
    kernel = sliced_count_windows if shares else count_windows
    return kernel(size=size, slide=slide, full_only=full_only)


def last_moments(assigner: WindowAssigner[Any, Any], timestamps_ms: Int64s) -> Int64s | None:
    """Return the last moment of the last window of each event, in ms, or None if it depends on more than the timestamp.

    Parameters
    ----------
    assigner : WindowAssigner
    timestamps_ms : numpy.ndarray of int64, shape (n,)
        Within `window_timestamps`.
    """
    if not isinstance(assigner, WindowsByTime):
        return None
    if isinstance(assigner, LocalEventTimeWindows):
        _, ends = assigner.calendar.bounds(timestamps_ms)
        return ends - 1
    if (
        isinstance(assigner, TumblingEventTimeWindows)
        and assigner.window_stagger is not WindowStagger.ALIGNED
    ):
        return None
    slide_ms = assigner.slide_ms if isinstance(assigner, SlidingEventTimeWindows) else assigner.size_ms
    starts: Int64s = timestamps_ms - (timestamps_ms - assigner.offset_ms) % slide_ms
    return starts + (assigner.size_ms - 1)


def window_timestamps(assigner: WindowAssigner[Any, Any]) -> tuple[int, int]:
    """Return the lowest and the highest timestamp, in ms, of which all windows have bounds of 64 bits.

    All timestamps are allowed for windows whose bounds depend on more: each window is checked as it is assigned.
    """
    if isinstance(assigner, EventTimeSessionWindows):
        return MIN_TIMESTAMP, MAX_TIMESTAMP - assigner.gap_ms
    if isinstance(assigner, SlidingEventTimeWindows):
        return aligned_timestamps(size=assigner.size_ms, slide=assigner.slide_ms, offset=assigner.offset_ms)
    if isinstance(assigner, LocalEventTimeWindows):
        return assigner.calendar.lowest_timestamp, assigner.calendar.highest_timestamp
    if not isinstance(assigner, TumblingEventTimeWindows | CumulativeEventTimeWindows):
        return MIN_TIMESTAMP, MAX_TIMESTAMP
    size_ms = assigner.size_ms
    if (
        isinstance(assigner, TumblingEventTimeWindows)
        and assigner.window_stagger is not WindowStagger.ALIGNED
    ):
        return MIN_TIMESTAMP + size_ms - 1, MAX_TIMESTAMP - size_ms  # whatever the stagger is
    return aligned_timestamps(size=size_ms, slide=size_ms, offset=assigner.offset_ms)


def since_starts(timestamps_ms: Int64s, offset_ms: int, width_ms: int) -> Int64s:
    """Return how far each timestamp is from the last start before it; starts are a width apart, one at the offset."""
    # numpy divides by a number without a division, but takes remainders by one each. What wraps around here wraps back.
    since: Int64s = timestamps_ms - timestamps_ms // width_ms * width_ms
    if offset_ms % width_ms:
        since -= offset_ms % width_ms
        since[since < 0] += width_ms
    return since


def window_bounds(assigner: WindowsByTime) -> dict[str, Any]:
    """Return the bounds of windows as the native modules take them."""
    if isinstance(assigner, LocalEventTimeWindows):
        return {"calendar": assigner.calendar}
    return {
        "size": assigner.size_ms,
        "slide": slide_of(assigner),
        "offset": assigner.offset_ms,
        "cumulative": isinstance(assigner, CumulativeEventTimeWindows),
    }


def longest_ms(assigner: WindowsByTime) -> int:
    """Return the length of the longest windows in ms."""
    return assigner.calendar.longest if isinstance(assigner, LocalEventTimeWindows) else assigner.size_ms


def slide_of(assigner: AlignedWindows) -> int:
    """Return by how many ms windows begin, or cumulative ones end, after each other."""
    if isinstance(assigner, SlidingEventTimeWindows):
        return assigner.slide_ms
    return assigner.step_ms if isinstance(assigner, CumulativeEventTimeWindows) else assigner.size_ms
