"""The timeline of aligned splits is that of the step-by-step model, however the log is cut into chunks and batches."""

import numpy as np
from equipment.example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jobs.aligned_sources import AlignedSources
from models.aligned_replay import AlignedReplayModel
from models.timed_log import TINY_LIMITS, Log, check_floors, placed, steps, watermarks_of
from models.watermarks import Event

from flinkcore.common import WatermarkAlignmentParams, WatermarkStrategy
from flinkcore.time_plane.chunk_times import ArrivalRate
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.record_blocks import DEFAULT_LIMITS, RecordLimits
from flinkcore.time_plane.timeline import TimePlane

STRIDES = st.sampled_from([0, 1, 2, 3, 7, 7, 20, 20, 40, -5, 90, 250, 700])
GENERATORS = st.builds(
    GeneratorSpec, st.sampled_from([0, 0, 5, 100, None]), st.sampled_from([None, None, 1, 3, 50, 250, 2**70])
)
ALIGNMENTS = st.builds(
    WatermarkAlignmentParams,
    st.just("group"),
    st.sampled_from([0, 0, 1, 10, 100, 2**63 - 1, 2**70]),
    st.sampled_from([1, 3, 7, 20, 50, 100, 1_000]),
)
LIMITS = st.sampled_from(TINY_LIMITS)
INTERVALS = st.sampled_from([0, 1, 7, 7, 20, 50, 50, 200])
CUTS = st.sets(st.integers(1, 59), max_size=4)


@st.composite
def logs(draw: st.DrawFn, *, recorded: bool = True) -> list[Event]:
    """Each split has its own speed of event time, and some fall far behind."""
    splits = draw(st.sampled_from([[0, 1], ["a", "b", "c"], [-3, 5, 10, 11]]))
    clocks = {split: draw(st.integers(-300, 300)) for split in splits}
    speeds = {split: draw(st.sampled_from([0, 1, 1, 2, 10])) for split in splits}
    rows = []
    for split in draw(st.lists(st.sampled_from(splits), min_size=2, max_size=60)):
        clocks[split] += draw(STRIDES)
        timestamp = clocks[split] * speeds[split] - draw(st.sampled_from([0, 0, 5, 30, 200]))
        rows.append(Event(split, clocks[split] if recorded else None, timestamp, draw(st.integers(0, 9)) > 0))
    return rows


def check(
    log: Log,
    generator: GeneratorSpec,
    interval_ms: int,
    alignment: WatermarkAlignmentParams,
    limits: RecordLimits = DEFAULT_LIMITS,
    rate: ArrivalRate | None = None,
) -> AlignedReplayModel:
    model = AlignedReplayModel(
        list(log.rows),
        generator.out_of_orderness_ms,
        generator.idleness_ms,
        interval_ms,
        rate=rate.rate if rate else 1000.0,
        arrival_start_ms=rate.start_ms if rate else 0,
        max_drift_ms=alignment.max_allowed_watermark_drift_ms,
        update_interval_ms=alignment.update_interval_ms,
    )
    plane = log.time_plane(generator, interval_ms, rate, limits, alignment)
    numbers = range(len(model.splits))
    assert model.paused_spans == [
        (model.splits[number], *span) for number in numbers for span in plane.paused.of(number)
    ]
    assert model.idle_spans == [
        (model.splits[number], *span) for number in numbers for span in plane.splits.idle_spans(number)
    ]
    assert steps(plane) == model.steps
    assert plane.splits.final_watermark_ms.tolist() == list(model.final_watermarks.values())
    check_order(log, plane, model)
    return model


def check_order(log: Log, plane: TimePlane, model: AlignedReplayModel) -> None:
    places = placed(plane, log)
    check_floors(log, plane, [arrival for arrival, _, _ in places])
    splits = [model.splits.index(event.split) for event in model.events]
    assert places == list(zip(model.arrivals, splits, model.positions, strict=True))
    watermarks = watermarks_of(plane, model.arrivals)
    assert watermarks == [model.watermark_of(arrival) for arrival in model.arrivals]


@settings(max_examples=examples(150), deadline=None)
@given(
    rows=logs(),
    generator=GENERATORS,
    interval_ms=INTERVALS,
    alignment=ALIGNMENTS,
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    limits=LIMITS,
)
def test_recorded_arrivals_give_the_timeline_and_the_pauses_of_the_model(
    rows: list[Event],
    generator: GeneratorSpec,
    interval_ms: int,
    alignment: WatermarkAlignmentParams,
    chunk_cuts: set[int],
    batch_cuts: set[int],
    limits: RecordLimits,
) -> None:
    check(Log(rows, chunk_cuts, batch_cuts), generator, interval_ms, alignment, limits)


@settings(max_examples=examples(50), deadline=None)
@given(
    rows=logs(recorded=False),
    generator=GENERATORS,
    interval_ms=INTERVALS,
    alignment=ALIGNMENTS,
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    rate=st.builds(ArrivalRate, st.sampled_from([3.0, 70.0]), st.sampled_from([0, -333])),
)
def test_arrivals_by_rate_give_the_timeline_and_the_pauses_of_the_model(
    rows: list[Event],
    generator: GeneratorSpec,
    interval_ms: int,
    alignment: WatermarkAlignmentParams,
    chunk_cuts: set[int],
    batch_cuts: set[int],
    rate: ArrivalRate,
) -> None:
    check(Log(rows, chunk_cuts, batch_cuts), generator, interval_ms, alignment, rate=rate)


@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    generator=GENERATORS,
    interval_ms=st.sampled_from([7, 20, 50]),
    alignment=ALIGNMENTS,
    cut=st.integers(1, 799),
)
def test_long_logs_give_the_timeline_and_the_pauses_of_the_model(
    seed: int, generator: GeneratorSpec, interval_ms: int, alignment: WatermarkAlignmentParams, cut: int
) -> None:
    random = np.random.default_rng(seed)
    n, n_splits = 800, int(random.integers(2, 6))
    # Each split is busy in some stretches of the log only, and in some its event time runs faster.
    stretch = np.arange(n) // int(random.integers(30, 200))
    split = (stretch * 7 + random.integers(0, 3, n)) % n_splits
    arrival = np.arange(n) * 3 + random.integers(-20, 20, n)
    ahead = random.integers(-1, 3, (int(stretch[-1]) + 1, n_splits))[stretch, split] * 150
    timestamp = arrival + ahead - random.integers(0, 60, n)
    rows = [Event(*row) for row in zip(split.tolist(), arrival.tolist(), timestamp.tolist(), strict=True)]
    check(Log(rows, {cut, cut // 3}, {cut // 2}), generator, interval_ms, alignment)


@settings(max_examples=examples(75), deadline=None)
@given(
    rows=logs(),
    delay_ms=st.sampled_from([0, 5, 100]),
    idleness_ms=st.sampled_from([None, None, 3, 50, 250]),
    interval_ms=st.sampled_from([7, 20, 50]),
    alignment=ALIGNMENTS,
)
def test_the_model_pauses_and_emits_as_source_operators_and_their_coordinator_do(
    rows: list[Event],
    delay_ms: int,
    idleness_ms: int | None,
    interval_ms: int,
    alignment: WatermarkAlignmentParams,
) -> None:
    drift_ms, update_ms = alignment.max_allowed_watermark_drift_ms, alignment.update_interval_ms
    kept = [Event(row.split, row.arrival_ms, row.timestamp_ms) for row in rows]
    model = AlignedReplayModel(
        kept, delay_ms, idleness_ms, interval_ms, max_drift_ms=drift_ms, update_interval_ms=update_ms
    )
    strategy = WatermarkStrategy(delay_ms, idleness_ms, alignment_parameters=alignment)
    assume(not model.finds_idle_while_paused)  # Flink resumes such a split no more
    sources = AlignedSources(model, strategy)
    last_ms = max(model.recorded)
    assert sources.steps == [step for step in model.steps if step[0] < last_ms]
    assert sorted(sources.paused_spans) == [span for span in model.paused_spans if span[2] < last_ms]
    left = [(model.splits[channel], since, last_ms) for channel, since in sources.paused_since.items()]
    assert sorted(left) == [span for span in model.paused_spans if span[2] == last_ms]
