"""Runs of the relational verbs over the events of one key: the rows of each result, and why others are in none.

One way for all: rows get a column with their numbers, the job's own kernel runs over them, and its results name their
rows, in columns that pass through or in an aggregate that collects them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

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
    integers,
    run_numbered,
)
from flinkcore.analysis.recorded_function import TimerAct
from flinkcore.columnar.operator_plans.deduplication import Deduplication
from flinkcore.columnar.operator_plans.group_aggregation import GroupAggregation
from flinkcore.columnar.operator_plans.join import WINDOW_COLUMNS, Join
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, OperatorWindows
from flinkcore.columnar.operator_plans.over import Over
from flinkcore.columnar.operator_plans.relational import RelationalPlan
from flinkcore.columnar.operator_plans.top_rows import TopRows
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.columnar.stages.top_stage import given_ends
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.graph.join_operations import TimeIntervalJoin, WindowJoin
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS
from flinkcore.time_plane.total_order import LogEvents

VERBS: Final[tuple[type[RelationalPlan], ...]] = (Deduplication, TopRows, Over, GroupAggregation, Join)

_LATE_RIGHT: Final = OutputTag("flinkcore late right")


def windows_of_verb(operator: OperatorPlan) -> OperatorWindows | None:
    """Return the windows in whose rows a verb finds its results, or None if it has none."""
    assigner: Any = None
    if isinstance(operator, TopRows):
        assigner = operator.window
    elif isinstance(operator, Join) and isinstance(operator.operation, WindowJoin):
        assigner = operator.operation.assigner
    return None if assigner is None else OperatorWindows(assigner, None, 0)


def run_verb(operator: RelationalPlan, stage: StagePlan, time: ReplayTime, events: LogEvents) -> KeyRun:
    """Run a verb over the events of a key; parameters and result as of `run_key`."""
    given, late = run_numbered(stage, _numbering(operator), time, events)
    windows = windows_of_verb(operator)
    firings = list(_firings(given, time, events, windows is not None))
    assigned = {} if windows is None else assigned_by_time(windows.assigner, events)
    results = given.batch.select([name for name in given.batch.schema.names if not name.startswith(EVENT)])
    return KeyRun(
        firings,
        pa.Table.from_batches([results]),
        late,
        assigned,
        late_from=dict(_late_from(operator, events)),
        unused=dict(_unused(operator, firings, late, assigned, events)),
    )


def _numbering(operator: RelationalPlan) -> RelationalPlan:
    """Return an operator whose results have the numbers of their events, and whose late rows come out."""
    match operator:
        case Join(operation=WindowJoin() as join):
            return replace(operator, operation=replace(join, left_late_tag=LATE, right_late_tag=_LATE_RIGHT))
        case Deduplication(keeps_last=False, by_time=True, changes=False):
            return replace(operator, late_tag=LATE)
        case TopRows(of_windows=True):
            return replace(operator, late_tag=LATE)
        case Over(by_time=by_time, rows=rows, range_ms=range_ms):
            aggregates = operator.aggregates
            if rows is not None or range_ms is not None:
                aggregates = (*aggregates, (EVENTS, collect(EVENT)))
            return replace(operator, aggregates=aggregates, late_tag=LATE if by_time else None)
        case GroupAggregation(changes=False):
            return replace(operator, aggregates=(*operator.aggregates, (EVENTS, collect(EVENT))))
    return operator


def _firings(given: PlacedEvents, time: ReplayTime, events: LogEvents, has_windows: bool) -> Iterator[Firing]:
    """Yield each result as a firing of its own."""
    batch, numbers = given.batch, EventNumbers(events)
    clocks, steps, splits, positions, _, fired, *_ = given.order
    by_event = splits != AFTER_ALL_SPLITS
    # Results of a watermark come before it reaches the next operator: the step that has it is not counted.
    watermarks = time.timeline.watermark_after(np.where(by_event, steps, steps + 1)).tolist()
    bounds: list[Bounds] = [(None, None)] * batch.num_rows
    if has_windows:
        starts, ends = (integers(batch.column(name)) for name in WINDOW_COLUMNS)
        bounds = list(zip(starts, ends, strict=True))
    made_of = [batch.column(name).to_pylist() for name in batch.schema.names if name.startswith(EVENT)]
    for row, (clock, split, position, timer) in enumerate(
        zip(clocks.tolist(), splits.tolist(), positions.tolist(), fired.tolist(), strict=True)
    ):
        event, watermark = numbers.of(split, position), watermarks[row]
        of: set[int] = set() if made_of or event is None else {event}
        for column in made_of:
            of.update(column[row] if isinstance(column[row], list) else [column[row]])
        act = None
        if event is None and bounds[row] == (None, None) and timer not in (MIN_TIMESTAMP, MAX_TIMESTAMP):
            act = TimerAct("fired", True, timer, clock, watermark, None, 0)
        yield Firing(
            bounds[row],
            clock,
            watermark,
            event,
            act,
            False,
            sorted(number for number in of if number is not None),
            range(row, row + 1),
        )


def _late_from(operator: RelationalPlan, events: LogEvents) -> Iterator[tuple[int, int]]:
    """Yield the numbers of events, and the least watermark with which each is late, if that follows from it alone."""
    numbers = event_numbers(events)
    match operator:
        case Deduplication():
            yield from zip(numbers, (events.timestamps + 1).tolist(), strict=True)
        case Over(is_bounded=False):
            yield from zip(numbers, events.timestamps.tolist(), strict=True)
        case TopRows(window_end=str() as column):
            yield from zip(numbers, (given_ends(events.batch, column) - 1).tolist(), strict=True)


def _unused(
    operator: RelationalPlan,
    firings: list[Firing],
    late: frozenset[int],
    assigned: Mapping[int, Any],
    events: LogEvents,
) -> Iterator[tuple[int, str]]:
    """Yield the numbers of events that are in no result and not late, and the reason of each."""
    if isinstance(operator, Over | GroupAggregation):
        return
    used = {number for firing in firings for number in firing.events}
    right: set[int] = set()
    how = ""
    if isinstance(operator, Join) and operator.gives_left_alone:
        how = operator.operation.how
        right.update(events.batch.column(f"1.{EVENT}").drop_null().to_pylist())
    reason = _reasons(operator, firings, assigned, events)
    for number in event_numbers(events):
        if number in right:
            yield number, f"results of {how} joins have left rows alone"
        elif number not in used and number not in late:
            yield number, reason(number)


def _reasons(
    operator: RelationalPlan, firings: list[Firing], assigned: Mapping[int, Any], events: LogEvents
) -> Callable[[int], str]:
    """Return what gives the reason why an event is in no result, by its number."""
    if isinstance(operator, Join):
        without_partner = _without_partner(operator)
        return lambda number: without_partner
    first = (
        "another row of its key is kept" if isinstance(operator, Deduplication) else "other rows rank higher"
    )
    if getattr(operator, "changes", False):
        return lambda number: first
    bounds: dict[int, list[Bounds]]
    instead: dict[Bounds, set[int]] = defaultdict(set)
    if isinstance(operator, TopRows) and operator.window_end is not None:
        ends = given_ends(events.batch, operator.window_end).tolist()
        bounds = {number: [(None, end)] for number, end in zip(event_numbers(events), ends, strict=True)}
        for number in (number for firing in firings for number in firing.events):
            instead[bounds[number][0]].add(number)
    else:
        bounds = {
            number: [(window.start, window.end) for window in windows] for number, windows in assigned.items()
        }
        for firing in firings:
            instead[firing.bounds].update(firing.events)

    @cache
    def reason(own: tuple[Bounds, ...]) -> str:
        others = sorted(set().union(*(instead[each] for each in own)))
        return f"{first}: {', '.join(map(str, others))}" if others else first

    return lambda number: reason(tuple(bounds.get(number, [(None, None)])))


def _without_partner(operator: Join) -> str:
    operation = operator.operation
    if operation.how == "anti":
        return "a row of the other stream matches it"
    within = ""
    if isinstance(operation, TimeIntervalJoin):
        within = f" with right - left in [{operation.lower_ms} ms, {operation.upper_ms} ms]"
    elif operation.has_windows:
        within = " in its windows"
    where = "" if operation.where is None else f", where {operation.where}"
    return f"no row of the other stream matches it while both are kept{within}{where}"
