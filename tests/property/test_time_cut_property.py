"""The time plane of a log in two parts is that of the whole log: as if the first part's end had not been one."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models.timed_log import TINY_LIMITS, Log, placed, steps
from models.watermarks import Event

from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.log.waiting_rows import WaitingBatch
from flinkcore.time_plane.chunk_times import ArrivalRate
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.paused_spans import NOT_READ
from flinkcore.time_plane.record_blocks import RecordLimits
from flinkcore.time_plane.timeline import TimePlane

STRIDES = st.sampled_from([0, 0, 1, 1, 2, 3, 7, 40, -1, 90, 250, 700])
DELAYS = st.sampled_from([0, 0, 1, 5, 30, 200, -50])
GENERATORS = st.builds(
    GeneratorSpec,
    st.sampled_from([None, 0, 0, 5, 100, 2**63 - 1]),
    st.sampled_from([None, 1, 3, 50, 250, 2**70]),
)
LIMITS = st.sampled_from(TINY_LIMITS)
INTERVALS = st.sampled_from([0, 1, 7, 50, 200, 10_000])
CUTS = st.sets(st.integers(1, 59), max_size=4)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    splits = draw(st.sampled_from([[None], [0, 1], [-3, 5, 10], ["b", "a", "ä"]]))
    clocks = dict.fromkeys(splits, draw(st.integers(-700, 700)))
    rows = []
    for split in draw(st.lists(st.sampled_from(splits), min_size=1, max_size=60)):
        clocks[split] += draw(STRIDES)
        rows.append(Event(split, clocks[split], clocks[split] - draw(DELAYS), draw(st.integers(0, 9)) > 0))
    return rows


ALIGNMENTS = st.builds(
    WatermarkAlignmentParams,
    st.just("group"),
    st.sampled_from([0, 0, 1, 10, 100, 2**63 - 1]),
    st.sampled_from([1, 3, 7, 20, 50, 1_000]),
)


def places(rows: list[Event], rate: ArrivalRate | None) -> list[tuple[int, int, int]]:
    """Of all rows in the total order, filtered ones where the events before them in their split are."""
    numbers = {split: number for number, split in enumerate(sorted({row.split for row in rows}, key=order))}
    ends: dict[Any, int] = {}
    counts: dict[Any, int] = {}
    found = []
    for row in rows:
        position = counts.get(row.split, 0)
        counts[row.split] = position + 1
        arrival = row.arrival_ms if rate is None else rate.start_ms + int(position * 1000 / rate.rate)
        assert arrival is not None
        if row.kept:
            ends[row.split] = max(ends.get(row.split, arrival), arrival)
        found.append((ends.get(row.split, -(2**60)), numbers[row.split], position))
    return found


def order(split: Any) -> Any:
    return split is not None, split


def without_arrivals(rows: list[Event]) -> list[Event]:
    """As a log by rate has them."""
    return [Event(row.split, None, row.timestamp_ms, row.kept) for row in rows]


def idle_spans(plane: TimePlane, *, without_open: bool = False) -> list[tuple[Any, int, int]]:
    found = []
    for number, split in enumerate(plane.split_values):
        spans = plane.splits.idle_spans(number)
        if without_open and plane.cut is not None and plane.cut.columns["operator_idle"][number]:
            spans = spans[:-1]
        found += [(split, *span) for span in spans]
    return found


@settings(deadline=None, max_examples=examples(150))
@given(
    rows=logs(),
    generator=GENERATORS,
    interval_ms=INTERVALS,
    rate=st.sampled_from([None, None, ArrivalRate(100.0, -30)]),
    cut=st.integers(0, 59),
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    limits=LIMITS,
)
def test_two_time_planes_are_those_of_the_whole_log(
    rows: list[Event],
    generator: GeneratorSpec,
    interval_ms: int,
    rate: ArrivalRate | None,
    cut: int,
    chunk_cuts: set[int],
    batch_cuts: set[int],
    limits: RecordLimits,
) -> None:
    if rate is not None:
        rows = without_arrivals(rows)
    place = places(rows, rate)
    last = sorted(place)[cut % len(rows)]
    parts = [
        [row for row, at in zip(rows, place, strict=True) if (at <= last) is is_first]
        for is_first in (True, False)
    ]
    # A split that only the second part has is another matter; so are arrivals that go back over the cut.
    assume({row.split for row in parts[1]} <= {row.split for row in parts[0]})
    if rate is None:
        splits = sorted({row.split for row in rows}, key=order)
        recorded = [(row.arrival_ms, splits.index(row.split)) for row in parts[1] if row.kept]
        assume(all(arrival is not None and (arrival, split) >= last[:2] for arrival, split in recorded))

    def time_plane(part: list[Event], **cuts: Any) -> TimePlane:
        return Log(part, chunk_cuts, batch_cuts).time_plane(generator, interval_ms, rate, limits, **cuts)

    whole = time_plane(rows)
    first = time_plane(parts[0], stops=True)
    again = time_plane([], cut=first.cut, stops=True)
    second = time_plane(parts[1], cut=again.cut)
    restored = second.timeline.steps_done(second.restored_arrival_ms)
    assert steps(first) + steps(second)[restored:] == steps(whole)
    assert (restored == 1) is bool(steps(first))
    assert second.splits.final_watermark_ms.tolist() == whole.splits.final_watermark_ms.tolist()
    assert second.last_arrival_ms == whole.last_arrival_ms
    assert sorted(map(repr, idle_spans(first, without_open=True) + idle_spans(second))) == sorted(
        map(repr, idle_spans(whole))
    )
    assert first.splits.regressions.sum() + second.splits.regressions.sum() == whole.splits.regressions.sum()

    first_log, second_log, whole_log = (
        Log(part, chunk_cuts, batch_cuts) for part in (parts[0], parts[1], rows)
    )
    assert sorted(placed(first, first_log) + placed(second, second_log)) == sorted(placed(whole, whole_log))


@settings(deadline=None, max_examples=examples(60))
@given(
    rows=logs(),
    generator=GENERATORS,
    interval_ms=st.sampled_from([0, 1, 7, 7, 20, 50, 200]),
    alignment=ALIGNMENTS,
    rate=st.sampled_from([None, None, ArrivalRate(100.0, -30)]),
    cuts=st.lists(st.integers(0, 59), min_size=1, max_size=3),
    chunk_cuts=CUTS,
    batch_cuts=CUTS,
    limits=LIMITS,
)
def test_time_planes_of_aligned_splits_are_those_of_the_whole_log(
    rows: list[Event],
    generator: GeneratorSpec,
    interval_ms: int,
    alignment: WatermarkAlignmentParams,
    rate: ArrivalRate | None,
    cuts: list[int],
    chunk_cuts: set[int],
    batch_cuts: set[int],
    limits: RecordLimits,
) -> None:
    if rate is not None:
        rows = without_arrivals(rows)
    place = places(rows, rate)
    # What is read with the last arrival comes in the order of the splits, and so nothing may be cut there.
    bounds = [
        (-(2**62), 0, 0),
        *sorted(min(sorted(place)[cut % len(rows)], (max(place)[0] - 1,)) for cut in cuts),
    ]
    bounds.append((2**62, 0, 0))
    parts = [
        [row for row, at in zip(rows, place, strict=True) if low < at <= high]
        for low, high in pairwise(bounds)
    ]
    first = {row.split for row in parts[0] if row.kept}
    assume({row.split for row in rows} <= first)
    if rate is None:
        splits = sorted(first, key=order)
        for (low, _), part in zip(pairwise(bounds), parts, strict=True):
            recorded = [(row.arrival_ms, splits.index(row.split)) for row in part if row.kept]
            assume(all(arrival is not None and (arrival, split) >= low[:2] for arrival, split in recorded))
    whole = Log(rows, chunk_cuts, batch_cuts).time_plane(generator, interval_ms, rate, limits, alignment)
    cut, waiting = None, list[WaitingBatch]()
    found_steps, found_places, paused = [], list[tuple[int, int, int]](), []
    for number, part in enumerate(parts):
        log, stops = Log(part, chunk_cuts, batch_cuts), number < len(parts) - 1
        plane = log.time_plane(generator, interval_ms, rate, limits, alignment, cut, stops, waiting)
        found_steps += steps(plane)[plane.timeline.steps_done(plane.restored_arrival_ms) :]
        read = [(-1, waiting)] if waiting else []
        still_waiting = []
        for index, batches in [*read, *enumerate(log.chunks())]:
            clock = plane.enter(index)
            for batch in batches:
                arrivals, of_splits, positions = clock.order(batch)
                waits = arrivals == NOT_READ
                columns = (column[~waits].tolist() for column in (arrivals, of_splits, positions))
                found_places += zip(*columns, strict=True)
                still_waiting.append(
                    WaitingBatch(
                        pa.RecordBatch.from_pydict({"row": np.flatnonzero(waits)}),
                        batch.timestamp_ms[waits],
                        clock.arrived_ms[waits],
                        of_splits[waits],
                        plane.split_values,
                        positions[waits],
                    )
                )
        spans = plane.paused
        paused += [
            (split, *span)
            for split, *span, read_ms in zip(
                spans.split, spans.from_ms, spans.to_ms, spans.read_ms, strict=True
            )
            if read_ms != NOT_READ
        ]
        waiting, cut = [batch for batch in still_waiting if batch.rows_read], plane.cut
    assert found_steps == steps(whole)
    assert plane.splits.final_watermark_ms.tolist() == whole.splits.final_watermark_ms.tolist()
    assert sorted(paused) == sorted(
        zip(whole.paused.split, whole.paused.from_ms, whole.paused.to_ms, strict=True)
    )
    assert sorted(found_places) == sorted(placed(whole, Log(rows, chunk_cuts, batch_cuts)))
