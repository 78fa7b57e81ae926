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
from typing import Any, Final, NamedTuple

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.element_calls import OpenPaneCall
from flinkcore.datastream.functions import AggregateFunction, ReduceFunction
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeTrigger,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowOperation,
    WindowStagger,
)
from flinkcore.datastream.window.window_operation import PreAggregation
from flinkcore.operators.function_calls import KeyedElementCall, KeySelector, key_selector_failed
from flinkcore.operators.records.output import OutputFullError
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.state.heap_states import HeapState
from flinkcore.operators.timers import InternalTimerService

NO_CONTEXT: Any = None
"""These assigners use no context."""

_BY_TIME_ALONE: Final = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulativeEventTimeWindows,
    LocalEventTimeWindows,
)


class OpenPanes(NamedTuple):
    """The calls of a window operator with open panes.

    Attributes
    ----------
    call : OpenPaneCall
        Processes elements.
    pass_watermark : callable
        Called with every watermark, in ms since the epoch, before timers fire.
    forget : callable
        Called after timers have fired without a watermark.
    """

    call: OpenPaneCall
    pass_watermark: Callable[[int], None]
    forget: Callable[[], None]


def has_open_panes(operation: WindowOperation) -> bool:
    """Return whether windows are of event time, depend on the timestamp alone, and fire only at their end."""
    assigner = operation.assigner
    return (
        type(operation.trigger) is EventTimeTrigger
        and operation.evictor is None
        and type(assigner) in _BY_TIME_ALONE
        and getattr(assigner, "window_stagger", WindowStagger.ALIGNED) is WindowStagger.ALIGNED
    )


def open_panes(
    operation: WindowOperation,
    key_selector: KeySelector | None,
    backend: KeyedStateBackend,
    state: HeapState,
    timers: InternalTimerService,
    process_any: KeyedElementCall,
    failed: Callable[[StreamRecord[Any], Exception], Exception],
) -> OpenPanes:
    """Return the calls of an operator that has open panes.

    Parameters
    ----------
    operation : WindowOperation
    key_selector : callable or None
        Function from an element to its key, or None if elements come with their keys.
    backend : KeyedStateBackend
    state : HeapState
        State of the windows' contents.
    timers : InternalTimerService
        Timers of the windows.
    process_any : callable
        Processes a record of a key in any slot.
    failed : callable
        From a record and the exception of a function to the exception to raise.
    """
    assign_windows = operation.assigner.assign_windows
    slot_bounds = _slot_bounds(operation)
    aggregation = operation.pre_aggregation
    slots: dict[int, tuple[int, int, list[tuple[TimeWindow, int, dict[int, Any]]]]] = {}
    first_end = MAX_TIMESTAMP
    passed_ms = MIN_TIMESTAMP
    fired = _maybe_fired(state, timers, operation.allowed_lateness_ms)
    may_empty = aggregation is not None

    def process_elsewhere(key: Hashable, record: StreamRecord[Any]) -> bool:
        timestamp = record.timestamp
        if timestamp is None or record.value is None:
            process_unknown(key, record)
            return False
        slot = slots.get(slot_bounds(timestamp)[0])
        if slot is None:
            process_unknown(key, record)
            remember(timestamp)
            return False
        call.open(*slot)
        return True

    def drop(window: TimeWindow, key_id: int) -> None:
        state.table.remove(window, key_id)
        forget()

    def process_unknown(key: Hashable, record: StreamRecord[Any]) -> None:
        try:
            process_any(key, record)
        except OutputFullError as full:
            full.then(forget_emptied)
            raise
        forget_emptied()

    def remember(timestamp: int) -> None:
        """Remember the slot of a timestamp that was just processed, if its windows are open."""
        nonlocal first_end
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
            slots[low] = slot = max(low, MIN_TIMESTAMP), min(high, MAX_TIMESTAMP), found
            call.open(*slot)

    def forget_emptied() -> None:
        """Forget all slots if an aggregation has emptied a window: its table is dropped, and made again."""
        if may_empty and any(not values for _, _, held in slots.values() for _, _, values in held):
            forget()

    def forget() -> None:
        nonlocal first_end
        slots.clear()
        call.close()
        first_end = MAX_TIMESTAMP

    def pass_watermark(watermark_ms: int) -> None:
        nonlocal passed_ms
        passed_ms = max(passed_ms, watermark_ms)
        if watermark_ms >= first_end:
            forget()

    create, add = _additions(aggregation)
    call = OpenPaneCall(
        backend.key_context,
        backend.cleanups_per_record,
        key_selector,
        key_selector_failed,
        create,
        add,
        isinstance(aggregation, ReduceFunction),
        timers.register_event_time_timer,
        operation.allowed_lateness_ms,
        process_elsewhere,
        drop,
        failed,
    )
    return OpenPanes(call, pass_watermark, forget)


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
    if isinstance(assigner, LocalEventTimeWindows):
        return assigner.calendar.window
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
) -> tuple[Callable[[Any], Any] | None, Callable[[Any, Any], Any] | None]:
    """Return how the contents of a pane are made, as :class:`OpenPaneCall` takes it."""
    if isinstance(aggregation, AggregateFunction):
        new_accumulator, add = aggregation.create_accumulator, aggregation.add
        return lambda value: add(value, new_accumulator()), add
    return None, None if aggregation is None else aggregation.reduce
