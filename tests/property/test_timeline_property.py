"""The timeline is that of the step-by-step model, however the log is cut into chunks and batches."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models.timed_log import TINY_LIMITS, Log, check_floors, placed, steps, watermarks_of
from models.watermarks import Event, Operator, ReplayModel, generator_of

from flinkcore.time_plane.chunk_times import ArrivalRate
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.record_blocks import RecordLimits

GOLDEN = Path(__file__).parents[1] / "golden"

# Steps of the clock: often none, small ones back and forth, and gaps in which splits turn idle.
STRIDES = st.sampled_from([0, 0, 1, 1, 2, 3, 7, 40, -1, -5, -60, 90, 250, 700])


@st.composite
def logs(draw: st.DrawFn, *, recorded: bool = True) -> list[Event]:
    splits = draw(st.sampled_from([[None], [0, 1], [-3, 5, 10, 11], ["b", "a", "ä", "Z"]]))
    clocks = {split: draw(st.integers(-700, 700)) for split in splits}
    rows = []
    for split in draw(st.lists(st.sampled_from(splits), max_size=60)):
        clocks[split] += draw(STRIDES)
        delay = draw(st.sampled_from([0, 0, 1, 5, 30, 200, -50]))
        rows.append(
            Event(
                split, clocks[split] if recorded else None, clocks[split] - delay, draw(st.integers(0, 9)) > 0
            )
        )
    return rows


GENERATORS = st.builds(
    GeneratorSpec,
    st.sampled_from([None, 0, 0, 5, 100, 2**63 - 1]),
    st.sampled_from([None, 1, 3, 50, 250, 2**70]),
)
# In one window or many, from memory or by way of a file.
LIMITS = st.sampled_from(TINY_LIMITS)
INTERVALS = st.sampled_from([0, 1, 7, 7, 50, 200, 10_000])
CUTS = st.sets(st.integers(1, 59), max_size=6)


def check(
    log: Log,
    generator: GeneratorSpec,
    interval_ms: int,
    limits: RecordLimits,
    rate: ArrivalRate | None = None,
) -> None:
    model = ReplayModel(
        list(log.rows),
        generator.out_of_orderness_ms,
        generator.idleness_ms,
        interval_ms,
        rate=rate.rate if rate else 1000.0,
        arrival_start_ms=rate.start_ms if rate else 0,
    )
    plane = log.time_plane(generator, interval_ms, rate, limits)
    assert steps(plane) == model.steps
    assert plane.split_values == model.splits
    assert plane.splits.final_watermark_ms.tolist() == list(model.final_watermarks.values())
    spans = [
        (split, *span)
        for number, split in enumerate(model.splits)
        for span in plane.splits.idle_spans(number)
    ]
    assert spans == model.idle_spans
    assert plane.events == len(model.events)
    check_report(plane.splits, log, model)
    check_order(log, plane, model)


def check_report(splits: Any, log: Log, model: ReplayModel) -> None:
    for number, split in enumerate(model.splits):
        own = [row for row in log.rows if row.split == split]
        events = [event for event in model.events if event.split == split]
        arrivals = [
            arrival
            for arrival, event in zip(model.arrivals, model.events, strict=True)
            if event.split == split
        ]
        assert splits.rows[number] == len(own)
        assert splits.events[number] == len(events)
        if events:
            timestamps = [event.timestamp_ms for event in events]
            assert (splits.min_timestamp_ms[number], splits.max_timestamp_ms[number]) == (
                min(timestamps),
                max(timestamps),
            )
            assert (splits.first_arrival_ms[number], splits.last_arrival_ms[number]) == (
                arrivals[0],
                arrivals[-1],
            )
        if events and events[0].arrival_ms is not None:
            recorded = [event.arrival_ms for event in events]
            went_back = sum(later < earlier for earlier, later in pairwise(recorded))
            assert splits.regressions[number] == went_back


def check_order(log: Log, plane: Any, model: ReplayModel) -> None:
    places = placed(plane, log)
    numbers_of = {split: number for number, split in enumerate(model.splits)}
    splits = [numbers_of[event.split] for event in model.events]
    check_floors(log, plane, [arrival for arrival, _, _ in places])
    assert places == list(zip(model.arrivals, splits, model.positions, strict=True))
    watermarks = watermarks_of(plane, model.arrivals)
    assert watermarks == [model.watermark_of(arrival) for arrival in model.arrivals]
    holders = plane.holders.at(np.array(model.arrivals, np.int64)).tolist()
    for arrival, holder in zip(model.arrivals, holders, strict=True):
        holding = model.holders_of(arrival)
        assert (model.splits[holder] in holding) if holder >= 0 else not holding
    check_leads(plane, model)


def check_leads(plane: Any, model: ReplayModel) -> None:
    """Lead times time is that of the model in all, as far as means in ms tell it."""
    if not model.leads:
        return
    assert model.replay_range is not None
    last = model.replay_range[1]
    spans = np.diff(np.append(plane.holders.clock_ms, last))
    clocks = [clock for clock, _ in model.leads]
    expected = sum(
        lead * (until - clock) for (clock, lead), until in zip(model.leads, [*clocks[1:], last], strict=True)
    )
    found = sum(
        lead * span for lead, span in zip(plane.holders.lead_ms.tolist(), spans.tolist(), strict=True)
    )
    assert abs(found - expected) <= int(spans.sum()) + expected * 1e-9


@settings(max_examples=examples(200), deadline=None)
@given(
    rows=logs(),
    generator=GENERATORS,
    interval_ms=INTERVALS,
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    limits=LIMITS,
)
def test_recorded_arrivals_give_the_timeline_of_the_model(
    rows: list[Event],
    generator: GeneratorSpec,
    interval_ms: int,
    chunk_cuts: set[int],
    batch_cuts: set[int],
    limits: RecordLimits,
) -> None:
    check(Log(rows, chunk_cuts, batch_cuts), generator, interval_ms, limits)


@settings(max_examples=examples(75), deadline=None)
@given(
    rows=logs(recorded=False),
    generator=GENERATORS,
    interval_ms=INTERVALS,
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    limits=LIMITS,
    rate=st.builds(ArrivalRate, st.sampled_from([1000.0, 3.0, 70.0, 1e6]), st.sampled_from([0, -333, 10**6])),
)
def test_arrivals_by_rate_give_the_timeline_of_the_model(
    rows: list[Event],
    generator: GeneratorSpec,
    interval_ms: int,
    chunk_cuts: set[int],
    batch_cuts: set[int],
    limits: RecordLimits,
    rate: ArrivalRate,
) -> None:
    check(Log(rows, chunk_cuts, batch_cuts), generator, interval_ms, limits, rate)


@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    generator=GENERATORS,
    interval_ms=st.sampled_from([7, 50, 200]),
    cut=st.integers(1, 1999),
    batch=st.integers(1, 1999),
    limits=LIMITS,
)
def test_long_logs_give_the_timeline_of_the_model(
    seed: int, generator: GeneratorSpec, interval_ms: int, cut: int, batch: int, limits: RecordLimits
) -> None:
    random = np.random.default_rng(seed)
    n, n_splits = 2_000, int(random.integers(1, 12)) * int(random.choice([1, 1, 1, 9]))
    # Each split is busy in some stretches of the log only.
    stretch = np.arange(n) // int(random.integers(50, 400))
    split = (stretch * 7 + random.integers(0, 3, n)) % n_splits
    arrival = np.arange(n) * 2 + random.integers(-20, 20, n)
    timestamp = arrival - random.integers(0, 150, n)
    rows = [Event(*row) for row in zip(split.tolist(), arrival.tolist(), timestamp.tolist(), strict=True)]
    check(Log(rows, {cut, cut // 3}, {batch}), generator, interval_ms, limits)


def test_the_model_emits_what_flinks_operator_does() -> None:
    compared = 0
    for line in (GOLDEN / "timestamps_operator.jsonl").read_text().splitlines():
        scenario = json.loads(line)
        item = scenario["input"]
        if scenario["flink"] == "1.20.5" or any(
            entry["type"] == "error" for entry in scenario["output"]["entries"]
        ):
            continue
        expected = [
            (entry["at"], entry["type"], entry["ts"] if entry["type"] == "watermark" else entry["status"])
            for entry in scenario["output"]["entries"]
            if entry["type"] in ("watermark", "status")
        ]
        assert operator_trace(item) == expected, scenario["name"]
        compared += 1
    assert compared > 100


def operator_trace(item: dict[str, Any]) -> list[tuple[int, str, int | str]]:
    progressive = item["emit_progressive"]
    operator = Operator(generator_of(item["generator"] if progressive else {"type": "none"}), opened_ms=0)
    now = item["now"]
    tick = now + item["interval"] if item["interval"] > 0 and progressive else None
    trace = []
    for at, (verb, *arguments) in enumerate(item["events"]):
        emitted: list[tuple[str, int | str]] = []
        if verb == "r":
            recorded, value = arguments
            emitted = operator.process_element(
                value if item["assigner"] else -(2**63) if recorded is None else recorded
            )
        elif verb == "w":
            emitted = operator.process_watermark(arguments[0])
        elif verb == "pt":
            now = arguments[0]
            while tick is not None and tick <= now:
                emitted += operator.periodic_emit(now)
                tick = now + item["interval"]
        elif verb == "finish":
            emitted = operator.periodic_emit(now)
        trace += [(at, kind, value) for kind, value in emitted]
    return trace
