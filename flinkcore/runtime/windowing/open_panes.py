"""A short cut for elements whose windows are open and fire at their end only: most elements of most jobs.

A pane is the contents of a window for one key. A slot is a range of timestamps that belong to the same windows::

    windows   [-------)       [-------)            of 10 every 4
                  [-------)       [-------)
    slots     |   |   | | |   |

The slot of the last element is remembered, with the state tables of its windows. An element of the same slot goes into
its panes without a call of assigner and trigger, which would repeat what they did for the first element of the pane.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.functions import AggregateFunction
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowOperation,
    WindowStagger,
)
from flinkcore.datastream.window.window_operation import PreAggregation
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.function_calls import KeyedElementCall
from flinkcore.runtime.output import OutputFullError
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.state.heap_states import HeapState
from flinkcore.runtime.timers import InternalTimerService

NO_CONTEXT: Any = None
"""These assigners use no context."""


class OpenPaneCalls(NamedTuple):
    """The calls of a window operator with open panes.

    Attributes
    ----------
    process : callable
        Processes a record of a key.
    pass_watermark : callable
        Called with every watermark, in ms since the epoch, before timers fire.
    """

    process: KeyedElementCall
    pass_watermark: Callable[[int], None]


def has_open_panes(operation: WindowOperation) -> bool:
    """Return whether windows are of event time, depend on the timestamp alone, and fire only at their end."""
    assigner = operation.assigner
    return (
        type(operation.trigger) is EventTimeTrigger
        and operation.evictor is None
        and type(assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows, CumulativeEventTimeWindows)
        and getattr(assigner, "window_stagger", WindowStagger.ALIGNED) is WindowStagger.ALIGNED
    )


def open_pane_calls(
    operation: WindowOperation,
    backend: KeyedStateBackend,
    state: HeapState,
    timers: InternalTimerService,
    process_any: KeyedElementCall,
    failed: Callable[[StreamRecord[Any], Exception], Exception],
) -> OpenPaneCalls:
    """Return the calls of an operator that has open panes.

    Parameters
    ----------
    operation : WindowOperation
    backend : KeyedStateBackend
    state : HeapState
        Of the windows' contents.
    timers : InternalTimerService
        Of the windows.
    process_any : callable
        Processes a record of a key in any slot.
    failed : callable
        From a record and the exception of a function to the exception to raise.
    """
    set_current_key, cleanups = backend.key_context.set_current_key, backend.cleanups_per_record
    key_context = backend.key_context
    assign_windows = operation.assigner.assign_windows
    slot_bounds = _slot_bounds(operation)
    first, more = _additions(operation.pre_aggregation)
    lateness_ms = operation.allowed_lateness_ms
    register_timer = timers.register_event_time_timer
    slots: dict[int, tuple[int, int, list[tuple[TimeWindow, int, dict[int, Any]]]]] = {}
    panes: list[tuple[TimeWindow, int, dict[int, Any]]] = []
    low = high = 0
    first_end = MAX_TIMESTAMP
    passed_ms = MIN_TIMESTAMP
    fired = _maybe_fired(state, timers, lateness_ms)
    may_empty = operation.pre_aggregation is not None

    def process(key: Hashable, record: StreamRecord[Any]) -> None:
        nonlocal low, high, panes
        timestamp, value = record.timestamp, record.value
        if timestamp is None or value is None:
            process_unknown(key, record)
            return
        if not low <= timestamp < high:
            slot = slots.get(slot_bounds(timestamp)[0])
            if slot is None:
                process_unknown(key, record)
                remember(timestamp)
                return
            low, high, panes = slot
        set_current_key(key)
        for clean_up in cleanups:
            clean_up()
        key_id = key_context.current_key_id
        try:
            for window, end, values in panes:
                accumulator = values.get(key_id)
                if accumulator is not None:
                    accumulator = more(value, accumulator)
                else:
                    accumulator = first(value)
                    register_timer(window, end)
                    if lateness_ms and end + lateness_ms < MAX_TIMESTAMP:
                        register_timer(window, end + lateness_ms)
                if accumulator is not None:
                    values[key_id] = accumulator
                else:
                    state.table.remove(window, key_id)
                    forget()
        except Exception as failure:
            raise failed(record, failure) from failure

    def process_unknown(key: Hashable, record: StreamRecord[Any]) -> None:
        try:
            process_any(key, record)
        except OutputFullError as full:
            full.then(forget_emptied)
            raise
        forget_emptied()

    def remember(timestamp: int) -> None:
        """Remember the slot of a timestamp that was just processed, if its windows are open."""
        nonlocal low, high, panes, first_end
        found = []
        # After a watermark that goes back, a pane that has fired does not fire again at its end.
        watermark = max(timers.current_watermark(), passed_ms)
        for window in assign_windows(None, timestamp, NO_CONTEXT):
            end, values = window.max_timestamp(), state.table.values_in(window)
            if end <= watermark or not values or window in fired:
                return
            found.append((window, end, values))
            first_end = min(first_end, end)
        if found:  # else the timestamp is between two windows
            low, high = slot_bounds(timestamp)
            panes = found
            slots[low] = low, high, panes

    def forget_emptied() -> None:
        """Forget all slots if an aggregation has emptied a window: its table is dropped, and made anew."""
        if may_empty and any(not values for _, _, held in slots.values() for _, _, values in held):
            forget()

    def forget() -> None:
        nonlocal low, high, first_end
        slots.clear()
        low = high = 0
        first_end = MAX_TIMESTAMP

    def pass_watermark(watermark_ms: int) -> None:
        nonlocal passed_ms
        passed_ms = max(passed_ms, watermark_ms)
        if watermark_ms >= first_end:
            forget()

    return OpenPaneCalls(process, pass_watermark)


def _maybe_fired(state: HeapState, timers: InternalTimerService, lateness_ms: int) -> set[Hashable]:
    """Return the restored windows with a pane that has no timer at its end, and so may have fired."""
    panes = Counter(window for window, _ in state.table.places_in_windows())
    if not panes:
        return set()
    waiting = timers.num_event_time_timers_by_namespace()
    fired: set[Hashable] = set()
    for window, count in panes.items():
        assert isinstance(window, TimeWindow)
        has_cleanup = lateness_ms and window.max_timestamp() + lateness_ms < MAX_TIMESTAMP
        if waiting.get(window, 0) != (2 if has_cleanup else 1) * count:
            fired.add(window)
    return fired


def _slot_bounds(operation: WindowOperation) -> Callable[[int], tuple[int, int]]:
    """Return the function from a timestamp to the bounds of its slot, the upper one exclusive."""
    assigner = operation.assigner
    if isinstance(assigner, SlidingEventTimeWindows):
        slide_ms, start_offset_ms = assigner.slide_ms, assigner.offset_ms
        end_offset_ms = start_offset_ms + assigner.size_ms

        def of_overlapping(timestamp: int) -> tuple[int, int]:
            start = timestamp - (timestamp - start_offset_ms) % slide_ms
            end = timestamp - (timestamp - end_offset_ms) % slide_ms
            return max(start, end), min(start, end) + slide_ms

        return of_overlapping
    if isinstance(assigner, CumulativeEventTimeWindows):
        step_ms, offset_ms = assigner.step_ms, assigner.offset_ms
    else:
        assert isinstance(assigner, TumblingEventTimeWindows)
        step_ms, offset_ms = assigner.size_ms, assigner.offset_ms

    def of_steps(timestamp: int) -> tuple[int, int]:
        start = timestamp - (timestamp - offset_ms) % step_ms
        return start, start + step_ms

    return of_steps


def _additions(
    aggregation: PreAggregation | None,
) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """Return how the contents of a pane are made: of its first element, and of each further one and the contents."""
    if aggregation is None:
        return lambda value: [value], _append
    if isinstance(aggregation, AggregateFunction):
        create, add = aggregation.create_accumulator, aggregation.add
        return lambda value: add(value, create()), add
    reduce = aggregation.reduce
    return lambda value: value, lambda value, reduced: reduce(reduced, value)


def _append(value: Any, elements: list[Any]) -> list[Any]:
    elements.append(value)
    return elements
