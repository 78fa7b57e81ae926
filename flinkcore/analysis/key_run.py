"""The record of a run of an operator over the events of one key, and the numbers of rows for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX
from flinkcore.analysis.recorded_function import TimerAct
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.stages.kinds import opened_stage, prepared_batches
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    Window,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.datastream.window.window_assigner import TimeWindowAssigner
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS
from flinkcore.time_plane.total_order import LogEvents

EVENT: Final = f"{HIDDEN_PREFIX}event"
"""Column of events with their numbers."""

EVENTS: Final = f"{HIDDEN_PREFIX}events"
"""Column of results with the numbers of the events that they were made of."""

LATE: Final = OutputTag("flinkcore late")

Bounds: TypeAlias = tuple[int | None, int | None]
"""Start and end of a window, in ms since the epoch; None for a window without bounds."""


class Firing(NamedTuple):
    """Results that a window, or a call of a function, emitted at once.

    Attributes
    ----------
    bounds : Bounds
    arrival_ms : int
        Time of the replay clock.
    watermark : int
    event : int or None
        Number of the event that was the cause, or None if it was a watermark or a timer.
    timer : TimerAct or None
        That was the cause.
    is_late : bool
        Whether an event fired the window again after its end.
    events : list of int
        Numbers of those that it was made of.
    results : range
        Its rows among all results.
    call : int or None
        The number of the call of a process function, counted from 0 on.
    """

    bounds: Bounds
    arrival_ms: int
    watermark: int
    event: int | None
    timer: TimerAct | None
    is_late: bool
    events: list[int]
    results: range
    call: int | None = None


@dataclass(frozen=True)
class KeyRun:
    """Record of a run of an operator over the events of a key.

    Attributes
    ----------
    firings : list of Firing
        In the order in which they happened.
    results : pyarrow.Table
        Their rows.
    late : frozenset of int
        Numbers of the events that were late for all their windows.
    assigned : dict of int to sequence of Window
        By numbers of events, the windows that each was assigned to; empty for windows over columns that do not follow
        from the time of an event.
    timers : list of TimerAct
        Actions on timers of a process function.
    calls : dict of int to int
        By numbers of events, those of their calls of a process function.
    late_from : dict of int to int
        By numbers of events without windows that were late, the least watermark with which they are; empty if that does
        not follow from an event alone.
    unused : dict of int to str
        By numbers of events that are in no result and not late, the reason.
    """

    firings: list[Firing]
    results: pa.Table
    late: frozenset[int] = frozenset()
    assigned: Mapping[int, Sequence[Window]] = field(default_factory=dict)
    timers: list[TimerAct] = field(default_factory=list)
    calls: Mapping[int, int] = field(default_factory=dict)
    late_from: Mapping[int, int] = field(default_factory=dict)
    unused: Mapping[int, str] = field(default_factory=dict)


def with_numbers(events: LogEvents, numbers: Int64s) -> LogEvents:
    """Events, and their numbers as their last column; those of two streams side by side have a column for each."""
    return events.with_batch(events.batch.append_column(EVENT, pa.array(numbers, pa.int64())))


def event_numbers(events: LogEvents) -> list[int]:
    """Return the numbers of events as `with_numbers` makes them."""
    columns = [column for name, column in _columns(events.batch) if name.endswith(EVENT)]
    numbers: list[int] = pc.coalesce(*columns).to_pylist()
    return numbers


def _columns(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    return zip(batch.schema.names, batch.columns, strict=True)


class EventNumbers:
    """Numbers of events by their places."""

    def __init__(self, events: LogEvents) -> None:
        places = zip(events.splits.tolist(), events.positions.tolist(), strict=True)
        self._numbers = dict(zip(places, event_numbers(events), strict=True))

    def of(self, split: int, position: int) -> int | None:
        """Return the number of the event that caused a result, or None if a watermark did."""
        return None if split == AFTER_ALL_SPLITS else self._numbers[split, position]


def window_bounds(window: Window) -> Bounds:
    """Start and end of a window."""
    return (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)


def follow_from_time(assigner: WindowAssigner[Any, Any]) -> bool:
    """Return whether the time of an event alone determines the windows that it is assigned to."""
    if type(assigner) is TumblingEventTimeWindows:
        return assigner.window_stagger is WindowStagger.ALIGNED
    return type(assigner) in (
        SlidingEventTimeWindows,
        CumulativeEventTimeWindows,
        LocalEventTimeWindows,
        EventTimeSessionWindows,
    )


def assigned_by_time(assigner: WindowAssigner[Any, Any], events: LogEvents) -> dict[int, Sequence[Window]]:
    if not follow_from_time(assigner):
        return {}
    windows_at, no_context = cast(TimeWindowAssigner, assigner).windows_at, cast(Any, None)
    met = zip(event_numbers(events), events.timestamps.tolist(), strict=True)
    return {number: windows_at(timestamp, None, no_context) for number, timestamp in met}


def run_numbered(
    stage: StagePlan, numbering: OperatorPlan, time: ReplayTime, events: LogEvents
) -> tuple[PlacedEvents, frozenset[int]]:
    """Firings with the numbers of their events, and numbers of late events."""
    inputs = tuple(
        replace(each, schema=each.schema.append(pa.field(EVENT, pa.int64()))) for each in stage.inputs
    )
    fired, late = run_placed(replace(stage, inputs=inputs, operator=numbering), time, events)
    return fired, frozenset(number for rows in late for number in rows.column(EVENT).to_pylist())


def run_placed(
    stage: StagePlan, time: ReplayTime, events: LogEvents
) -> tuple[PlacedEvents, list[pa.RecordBatch]]:
    """Results in total order, with their places; and late rows."""
    inputs = stage.connected_inputs(time.second_from)
    context = StageContext(
        stage, time.timeline, time.last_arrival_ms, partitions=1, inputs=inputs, places_results=True
    )
    results: list[PlacedEvents] = []
    late: list[pa.RecordBatch] = []
    with opened_stage(context, 0) as running:
        prepared = prepared_batches(context).prepare(events.in_timeline(time.timeline))
        for outputs in (running.process(prepared, None), running.finish()):
            for output in outputs:
                if isinstance(output, PlacedOutput):
                    results.append(output.events)
                elif output.tag in stage.operator.late_tags:
                    late += output.batches
    if not results:
        none = np.empty(0, np.int64)
        empty = pa.RecordBatch.from_pylist([], schema=stage.result_schema())
        results = [PlacedEvents.of(empty, none, (none,) * (FIXED_COLUMNS + 1))]
    return PlacedEvents.concatenate(results).sorted(), late


def integers(times: pa.Array) -> list[int | None]:
    integers: list[int | None] = times.cast(pa.int64()).to_pylist()
    return integers
