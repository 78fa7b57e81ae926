"""Generators called event by event make the timeline of the columnar pass, of the model and of the runtime."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from equipment.example_counts import examples
from equipment.timelines import steps_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.early_ends import ends_early, ends_early_model
from jobs.even_timestamps import EvenTimestamps
from models.element_passes import RuntimeReplay, stepped_plane
from models.timed_log import Log, steps
from models.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP, Event, Generator, Output, Punctuated, ReplayModel

from flinkcore.common import Time, Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from flinkcore.common.watermark_generators import BoundedOutOfOrdernessWatermarks, NoWatermarksGenerator
from flinkcore.time_plane.chunk_times import ArrivalRate
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS, TimePlane

STRIDES = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 7, 40, -1, -5, -60, 90, 250, 700])


@st.composite
def logs(draw: st.DrawFn, *, recorded: bool = True) -> list[Event]:
    splits = draw(st.sampled_from([[None], [0, 1], [-3, 5, 10, 11], ["b", "a", "ä", "Z"]]))
    start = draw(st.integers(-700, 700))
    clocks = {split: start + draw(st.sampled_from([0, 0, 3, 400])) for split in splits}
    rows = []
    for split in draw(st.lists(st.sampled_from(splits), max_size=50)):
        clocks[split] += draw(STRIDES)
        delay = draw(st.sampled_from([0, 0, 1, 5, 30, 200, -50]))
        arrival = clocks[split] if recorded else None
        rows.append(Event(split, arrival, clocks[split] - delay, draw(st.integers(0, 9)) > 0))
    return rows


INTERVALS = st.sampled_from([0, 1, 7, 7, 50, 200, 10_000])
IDLENESS = st.sampled_from([None, 1, 3, 50, 250, 2**62])
RUN_ROWS = st.sampled_from([1, 2, 7, 1 << 19])
CUTS = st.sets(st.integers(1, 49), max_size=5)
RATES = st.builds(ArrivalRate, st.sampled_from([1000.0, 3.0, 70.0]), st.sampled_from([0, -333, 10**6]))


class DeclaredEvenTimestamps(EvenTimestamps):
    changes_at_events_only = True


class Restless(WatermarkGenerator[Any]):
    """Emits at events, at ticks and idles by itself; counts its calls, so that none may be left out."""

    def __init__(self) -> None:
        self.calls = 0
        self.timestamp = -1000

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.calls = 0
        self.timestamp = event_timestamp
        if event_timestamp % 3 == 0:
            output.emit_watermark(Watermark(event_timestamp - 20))
        if event_timestamp % 7 == 0:
            output.mark_idle()

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        self.calls += 1
        if self.calls == 5:
            output.mark_idle()
        elif self.calls < 5 or self.calls % 4 == 0:
            output.emit_watermark(Watermark(self.timestamp - 50 + self.calls))


class RestlessModel:
    def __init__(self) -> None:
        self.calls = 0
        self.timestamp = -1000

    def on_event(self, timestamp_ms: int) -> list[Output]:
        self.calls = 0
        self.timestamp = timestamp_ms
        emitted: list[Output] = [("watermark", timestamp_ms - 20)] if timestamp_ms % 3 == 0 else []
        return [*emitted, ("status", "idle")] if timestamp_ms % 7 == 0 else emitted

    def on_periodic_emit(self, clock_ms: int) -> list[Output]:
        self.calls += 1
        if self.calls == 5:
            return [("status", "idle")]
        if self.calls < 5 or self.calls % 4 == 0:
            return [("watermark", self.timestamp - 50 + self.calls)]
        return []


@dataclass(frozen=True)
class Pair:
    """A generator and its model."""

    make: Any
    model: Any


PAIRS = st.sampled_from(
    [
        Pair(EvenTimestamps, Punctuated),
        Pair(DeclaredEvenTimestamps, Punctuated),
        Pair(Restless, RestlessModel),
        Pair(ends_early("event"), ends_early_model("event")),
        Pair(ends_early("tick"), ends_early_model("tick")),
    ]
)


def strategy_of(make: Any, idleness_ms: int | None) -> WatermarkStrategy:
    strategy = WatermarkStrategy.for_generator(make)
    return strategy if idleness_ms is None else strategy.with_idleness(Time(idleness_ms))


def bounded_supplier(out_of_orderness_ms: int | None, declared: bool) -> Any:
    if out_of_orderness_ms is None:
        return NoWatermarksGenerator
    kind = BoundedOutOfOrdernessWatermarks if declared else Undeclared
    return partial(kind, Time(out_of_orderness_ms))


class Undeclared(BoundedOutOfOrdernessWatermarks):
    """Called at every tick."""

    changes_at_events_only = False


def idle_spans(plane: TimePlane) -> list[tuple[Any, int, int]]:
    return [
        (split, *span)
        for number, split in enumerate(plane.split_values)
        for span in plane.splits.idle_spans(number)
    ]


def watermarks_at_events(plane: TimePlane, model: ReplayModel) -> list[int]:
    places = [model.place_of(event) for event in range(len(model.events))]
    arrivals, splits, positions = np.array(places, np.int64).reshape(-1, 3).T.copy()
    before = plane.timeline.steps_before(arrivals, splits.astype(np.int32), positions)
    return plane.timeline.watermark_after(before).tolist()


def check_against_model(plane: TimePlane, model: ReplayModel) -> None:
    assert steps(plane) == model.steps
    found = steps_of(plane.timeline)
    made_by = zip(found.split.tolist(), found.position.tolist(), strict=True)
    at_ticks = (AFTER_ALL_SPLITS, 0)
    assert list(made_by) == [
        at_ticks if split == float("inf") else (split, position) for _, split, position in model.places
    ]
    assert plane.splits.final_watermark_ms.tolist() == list(model.final_watermarks.values())
    assert idle_spans(plane) == model.idle_spans
    assert watermarks_at_events(plane, model) == [
        model.watermark_at(event) for event in range(len(model.events))
    ]


@settings(max_examples=examples(125), deadline=None)
@given(
    rows=logs(),
    bound_ms=st.sampled_from([None, 0, 0, 5, 100, 2**63 - 1]),
    idleness_ms=IDLENESS,
    interval_ms=INTERVALS,
    declared=st.booleans(),
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    parts=st.integers(1, 3),
    run_rows=RUN_ROWS,
)
def test_flinks_generators_make_the_columnar_timeline_event_by_event(
    rows: list[Event],
    bound_ms: int | None,
    idleness_ms: int | None,
    interval_ms: int,
    declared: bool,
    chunk_cuts: set[int],
    batch_cuts: set[int],
    parts: int,
    run_rows: int,
) -> None:
    log = Log(rows, chunk_cuts, batch_cuts)
    columnar = log.time_plane(GeneratorSpec(bound_ms, idleness_ms), interval_ms)
    strategy = strategy_of(bounded_supplier(bound_ms, declared), idleness_ms)
    stepped = stepped_plane(log, strategy, interval_ms, parts=parts, run_rows=run_rows)
    assert steps(stepped) == steps(columnar)
    assert not stepped.timeline.has_steps_of_events
    assert idle_spans(stepped) == idle_spans(columnar)
    assert stepped.splits.final_watermark_ms.tolist() == columnar.splits.final_watermark_ms.tolist()


@settings(max_examples=examples(50), deadline=None)
@given(
    rows=logs(recorded=False),
    rate=RATES,
    bound_ms=st.sampled_from([0, 5, 100]),
    idleness_ms=IDLENESS,
    interval_ms=INTERVALS,
    cuts=CUTS,
)
def test_arrivals_by_rate_make_the_columnar_timeline_event_by_event(
    rows: list[Event],
    rate: ArrivalRate,
    bound_ms: int,
    idleness_ms: int | None,
    interval_ms: int,
    cuts: set[int],
) -> None:
    log = Log(rows, cuts, cuts)
    columnar = log.time_plane(GeneratorSpec(bound_ms, idleness_ms), interval_ms, rate)
    strategy = strategy_of(bounded_supplier(bound_ms, True), idleness_ms)
    assert steps(stepped_plane(log, strategy, interval_ms, rate)) == steps(columnar)


@settings(max_examples=examples(125), deadline=None)
@given(
    rows=logs(),
    pair=PAIRS,
    idleness_ms=IDLENESS,
    interval_ms=INTERVALS,
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    parts=st.integers(1, 3),
    run_rows=RUN_ROWS,
)
def test_a_users_generator_makes_the_timeline_of_the_model(
    rows: list[Event],
    pair: Pair,
    idleness_ms: int | None,
    interval_ms: int,
    chunk_cuts: set[int],
    batch_cuts: set[int],
    parts: int,
    run_rows: int,
) -> None:
    log = Log(rows, chunk_cuts, batch_cuts)
    make_model: type[Generator] = pair.model
    model = ReplayModel(rows, None, idleness_ms, interval_ms, make_generator=make_model)
    plane = stepped_plane(
        log, strategy_of(pair.make, idleness_ms), interval_ms, parts=parts, run_rows=run_rows
    )
    check_against_model(plane, model)


@settings(max_examples=examples(75), deadline=None)
@given(rows=logs(), pair=PAIRS, idleness_ms=IDLENESS, interval_ms=INTERVALS)
def test_the_runtimes_operator_on_a_driven_clock_makes_the_same_timeline(
    rows: list[Event], pair: Pair, idleness_ms: int | None, interval_ms: int
) -> None:
    strategy = strategy_of(pair.make, idleness_ms)
    runtime = RuntimeReplay(ReplayModel(rows, None, None, interval_ms), strategy)
    assert steps(stepped_plane(Log(rows), strategy, interval_ms)) == runtime.steps


@settings(max_examples=examples(75), deadline=None)
@given(rows=logs(), bound_ms=st.sampled_from([0, 5, 100]), idleness_ms=IDLENESS, interval_ms=INTERVALS)
def test_the_runtimes_operator_makes_the_columnar_timeline(
    rows: list[Event], bound_ms: int, idleness_ms: int | None, interval_ms: int
) -> None:
    strategy = WatermarkStrategy(bound_ms, idleness_ms)
    runtime = RuntimeReplay(ReplayModel(rows, None, None, interval_ms), strategy)
    assert runtime.steps == steps(Log(rows).time_plane(GeneratorSpec(bound_ms, idleness_ms), interval_ms))


@pytest.mark.parametrize("last", [MAX_TIMESTAMP, MAX_TIMESTAMP - 1, MIN_TIMESTAMP])
def test_watermarks_at_the_ends_of_the_range_are_steps_or_nothing(last: int) -> None:
    class Extreme(EvenTimestamps):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark(Watermark(last))

    plane = stepped_plane(Log([Event(None, 1, 1), Event(None, 2, 2)]), strategy_of(Extreme, None), 100)
    emitted = [] if last == MIN_TIMESTAMP else [(1, last)]
    assert steps(plane) == [*emitted, (MAX_TIMESTAMP, MAX_TIMESTAMP)]
