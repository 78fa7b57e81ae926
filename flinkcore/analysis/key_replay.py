"""Runs of a job's operator over the events of one key alone, with the watermarks of all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.row import Row
from flinkcore.analysis.key_run import (
    EVENT,
    EVENTS,
    LATE,
    Bounds,
    EventNumbers,
    Firing,
    KeyRun,
    assigned_by_time,
    event_numbers,
    follow_from_time,
    integers,
    run_numbered,
    run_placed,
    window_bounds,
)
from flinkcore.analysis.recorded_function import (
    RecordedAggregateFunction,
    RecordedFunction,
    RecordedWindowFunction,
    WindowCall,
)
from flinkcore.analysis.verb_replay import VERBS, run_verb
from flinkcore.columnar.operator_plans.keyed_process import KeyedProcess
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.operator_plans.window_process import WindowProcess
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.stages.kinds import opened_stage
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.functions import AggregateFunction, ProcessWindowFunction
from flinkcore.datastream.graph.columnar_windows import WINDOW_RESULT_COLUMNS
from flinkcore.datastream.window import (
    MergingWindowAssigner,
    Trigger,
    Window,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS
from flinkcore.time_plane.total_order import LogEvents

_SPLIT: Final = 2
"""Column of the order of results with their splits."""


def run_key(stage: StagePlan, time: ReplayTime, events: LogEvents) -> KeyRun:
    """Run an operator over the events of one key, alone.

    Parameters
    ----------
    stage
        The operator, which `runs_alone`.
    time
        As the operator sees it.
    events
        In total order, as `with_numbers` makes them.
    """
    return _RUNS[type(stage.operator)](stage.operator, stage, time, events)


def runs_alone(operator: OperatorPlan) -> bool:
    """Return whether `run_key` can run a kind of operator."""
    return type(operator) in _RUNS


def _recorded(windows: WindowOperation, calls: list[WindowCall]) -> WindowOperation:
    aggregation = windows.pre_aggregation
    if isinstance(aggregation, AggregateFunction):
        aggregation = RecordedAggregateFunction(aggregation, calls)
    is_noted = isinstance(aggregation, RecordedAggregateFunction)
    function = RecordedWindowFunction(windows.window_function, calls, is_noted)
    return replace(windows, pre_aggregation=aggregation, window_function=function)


# ---- windows ----


class _CollectNumbers(ProcessWindowFunction):  # type: ignore[type-arg]
    """Window function that returns the numbers of a window's elements instead of a job's results."""

    def process(self, key: Any, context: Any, elements: Iterable[Row]) -> Iterator[Row]:
        window = context.window()
        bounds = window_bounds(window)
        is_over = window.max_timestamp() <= context.current_watermark()
        yield Row(*bounds, is_over, context.current_watermark(), [element[EVENT] for element in elements])


class _NotedWindows(WindowAssigner[Any, Any]):
    """Assigns the windows of an assigner, and notes them by the numbers of events; all copies write to one mapping."""

    def __init__(self, assigner: WindowAssigner[Any, Any], noted: dict[int, Sequence[Window]]) -> None:
        self._assigner = assigner
        self._noted = noted

    def __deepcopy__(self, memo: dict[int, Any]) -> _NotedWindows:
        return type(self)(deepcopy(self._assigner, memo), self._noted)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[Window]:
        windows = list(self._assigner.assign_windows(element, timestamp, context))
        self._noted[element[EVENT]] = windows
        return windows

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return self._assigner.get_default_trigger(env)

    def is_event_time(self) -> bool:
        return self._assigner.is_event_time()


class _NotedSessions(_NotedWindows, MergingWindowAssigner[Any, Any]):
    """The same of windows that merge."""

    def merge_windows(
        self, windows: Iterable[Any], callback: MergingWindowAssigner.MergeCallback[Any]
    ) -> None:
        assert isinstance(self._assigner, MergingWindowAssigner)
        self._assigner.merge_windows(windows, callback)


_COLLECTED: Final = pa.schema(
    [
        ("window_start", pa.int64()),
        ("window_end", pa.int64()),
        ("late_firing", pa.bool_()),
        ("watermark", pa.int64()),
        (EVENTS, pa.list_(pa.int64())),
    ]
)


def _run_aggregation(
    operator: WindowAggregation, stage: StagePlan, time: ReplayTime, events: LogEvents
) -> KeyRun:
    assigned = assigned_by_time(operator.window, events)
    aggregates = (*operator.aggregates, (EVENTS, collect(EVENT)))
    numbering = replace(operator, aggregates=aggregates, late_tag=LATE)
    fired, late = run_numbered(stage, numbering, time, events)
    firings = _firings(fired, events, fired.batch.column("late_firing").to_pylist())
    own = {*stage.keys, *WINDOW_RESULT_COLUMNS, EVENTS}
    names = [name for name in fired.batch.schema.names if name not in own]
    return KeyRun(firings, pa.Table.from_batches([fired.batch.select(names)]), late, assigned)


def _run_window_functions(
    operator: WindowProcess, stage: StagePlan, time: ReplayTime, events: LogEvents
) -> KeyRun:
    windows = replace(
        operator.function, pre_aggregation=None, window_function=_CollectNumbers(), late_tag=LATE
    )
    assigner = windows.assigner
    assigned = assigned_by_time(assigner, events)
    if not follow_from_time(assigner):
        noting = _NotedSessions if isinstance(assigner, MergingWindowAssigner) else _NotedWindows
        windows = replace(windows, assigner=noting(assigner, assigned))
    fired, late = run_numbered(stage, WindowProcess(windows, _COLLECTED), time, events)
    # A window of a function reports whether it is over; only an event fires it again then.
    by_event = fired.order[_SPLIT] != AFTER_ALL_SPLITS
    over = fired.batch.column("late_firing").to_pylist()
    firings = _firings(fired, events, [each and by for each, by in zip(over, by_event.tolist(), strict=True)])
    calls: list[WindowCall] = []
    recording = replace(operator, function=_recorded(operator.function, calls))
    given = run_placed(replace(stage, operator=recording), time, _without_numbers(events))[0]
    rows_of = _rows_of_calls(given, calls, [(each.bounds, each.watermark) for each in firings], fired)
    return KeyRun(
        [firing._replace(results=rows) for firing, rows in zip(firings, rows_of, strict=True)],
        pa.Table.from_batches([given.batch]),
        late,
        assigned,
    )


def _without_numbers(events: LogEvents) -> LogEvents:
    return events.with_batch(events.batch.drop_columns([EVENT]))


def _firings(fired: PlacedEvents, events: LogEvents, late: Sequence[bool]) -> list[Firing]:
    """The firings of windows, each with its only row; `late` says which come of late events."""
    batch, numbers = fired.batch, EventNumbers(events)
    starts, ends = (integers(batch.column(name)) for name in ("window_start", "window_end"))
    clocks, _, splits, positions, *_ = (column.tolist() for column in fired.order)
    watermarks, of_events = batch.column("watermark").to_pylist(), batch.column(EVENTS).to_pylist()
    return [
        Firing((start, end), clock, watermark, event, None, is_late, of, range(row, row + 1))
        for row, (start, end, clock, watermark, event, is_late, of) in enumerate(
            zip(
                starts,
                ends,
                clocks,
                watermarks,
                map(numbers.of, splits, positions),
                late,
                of_events,
                strict=True,
            )
        )
    ]


def _rows_of_calls(
    given: PlacedEvents,
    calls: Sequence[WindowCall],
    fired_at: Sequence[tuple[Bounds, int]],
    fired: PlacedEvents,
) -> list[range]:
    """Return the rows that the functions emitted for each firing; both runs fire in one order.

    A reduce function that gives None leaves a window without a value, and a firing without a call.
    """
    rows_of = [range(0)] * len(fired_at)
    firings = iter(np.argsort(_emitted(fired)).tolist())
    row_of_emitted = np.argsort(_emitted(given)).tolist()
    n_emitted = 0
    for call in calls:
        if call.fired_at is None:
            next(firings)
            continue
        window, watermark = call.fired_at
        called_at = window_bounds(window), watermark
        firing = next(number for number in firings if fired_at[number] == called_at)
        if call.n_results:
            first = row_of_emitted[n_emitted]
            rows_of[firing] = range(first, first + call.n_results)
        n_emitted += call.n_results
    return rows_of


def _emitted(placed: PlacedEvents) -> Int64s:
    """Return the sequences of results of one key, which count them as they are emitted."""
    return placed.order[FIXED_COLUMNS]


# ---- process functions ----


def _run_function(operator: KeyedProcess, stage: StagePlan, time: ReplayTime, events: LogEvents) -> KeyRun:
    recorded = RecordedFunction(operator.function)
    recording = replace(stage, operator=replace(operator, function=recorded))
    context = StageContext(recording, time.timeline, time.last_arrival_ms, partitions=1)
    batches: list[pa.RecordBatch] = []
    with opened_stage(context, 0) as running:
        ordered = _without_numbers(events).in_timeline(time.timeline)
        for outputs in (running.process(ordered, None), running.finish()):
            batches += [batch for output in outputs if output.tag is None for batch in output.batches]
    numbers = event_numbers(events)
    firings = [
        Firing(
            (None, None),
            call.arrival_ms,
            call.watermark,
            None if call.element is None else numbers[call.element],
            call.timer,
            False,
            [] if call.element is None else [numbers[call.element]],
            range(call.first_result, call.first_result + call.n_results),
            call.number,
        )
        for call in recorded.journal.calls
        if call.n_results
    ]
    timers = [
        act if act.by_element is None else act._replace(event=numbers[act.by_element])
        for act in recorded.journal.timers
    ]
    calls = {
        numbers[call.element]: call.number for call in recorded.journal.calls if call.element is not None
    }
    results = pa.Table.from_batches(batches, stage.result_schema())
    return KeyRun(firings, results, timers=timers, calls=calls)


_RUNS: Final[Mapping[type[OperatorPlan], Callable[[Any, StagePlan, ReplayTime, LogEvents], KeyRun]]] = {
    **dict.fromkeys(VERBS, run_verb),
    WindowAggregation: _run_aggregation,
    WindowProcess: _run_window_functions,
    KeyedProcess: _run_function,
}
"""Functions that run an operator over the events of one key, by its kind; other kinds cannot be run so."""
