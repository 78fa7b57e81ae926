"""Every figure of lateness is that of a replay with the bound: late events, windows, and how long results wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from equipment.example_counts import examples
from equipment.memory_disk import MEMORY
from equipment.timelines import packed_steps, steps_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.lateness import LatenessCounter, windows_of_slices
from flinkcore.analysis.lateness_frontier import LatenessFrontier
from flinkcore.columnar import planned_job
from flinkcore.columnar.operator_plans.native_windows import AlignedWindows, slide_of, window_timestamps
from flinkcore.columnar.planned_job import PlannedJob
from flinkcore.common import MIN_TIMESTAMP, Duration, Row, Time, WatermarkStrategy
from flinkcore.datastream import (
    KeyedProcessFunction,
    LogStream,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.datastream.window import CumulativeEventTimeWindows

STRIDES = st.sampled_from([0, 0, 1, 1, 2, 3, 7, 40, -1, -5, 90, 250, 700])
DELAYS = st.sampled_from([0, 0, 1, 5, 30, 200, 900, -50, -400])


@st.composite
def logs(draw: st.DrawFn) -> pa.Table:
    splits = draw(st.sampled_from([[0], [0, 1], [-3, 5, 10, 11]]))
    clocks = {split: draw(st.integers(-700, 700)) for split in splits}
    rows = []
    for split in draw(
        st.lists(st.sampled_from(splits), min_size=draw(st.sampled_from([0, 12, 12])), max_size=50)
    ):
        clocks[split] += draw(STRIDES)
        rows.append(
            {
                "split": split,
                "arrival": clocks[split],
                "ts": clocks[split] - draw(DELAYS),
                "before": draw(st.integers(0, 9)) > 0,
                "after": draw(st.integers(0, 9)) > 0,
                "key": 0,
            }
        )
    types = {"split": pa.int64(), "arrival": pa.int64(), "ts": pa.int64(), "key": pa.int64()}
    return pa.Table.from_pylist(
        rows, schema=pa.schema([*types.items(), ("before", pa.bool_()), ("after", pa.bool_())])
    )


def milliseconds(least: int, greatest: int) -> st.SearchStrategy[Time]:
    return st.integers(least, greatest).map(Time.milliseconds)


WINDOWS = st.one_of(
    st.builds(TumblingEventTimeWindows.of, milliseconds(20, 300), milliseconds(-19, 19)),
    st.builds(SlidingEventTimeWindows.of, milliseconds(5, 300), milliseconds(20, 120), milliseconds(-19, 19)),
    st.builds(
        lambda step, steps: CumulativeEventTimeWindows.of(
            Time.milliseconds(step * steps), Time.milliseconds(step)
        ),
        st.integers(10, 100),
        st.integers(1, 5),
    ),
)
STRATEGIES = st.builds(
    lambda idle, aligned: (idle, aligned),
    st.sampled_from([None, None, 3, 50, 250]),
    st.sampled_from([None, None, None, 100]),
)


class LateForWatermark(KeyedProcessFunction):
    """Emits a row for each that is late."""

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int]]:
        if ctx.timestamp() <= ctx.timer_service().current_watermark():
            yield (value["split"],)


def stream(
    table: pa.Table | str,
    bound: int,
    parts: tuple[int | None, int | None],
    interval: int,
    has_arrival: bool,
) -> LogStream:
    idle, aligned = parts
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    if idle is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idle))
    if aligned is not None and interval:
        strategy = strategy.with_watermark_alignment(
            "group", Duration.of_millis(aligned), Duration.of_millis(interval * 2)
        )
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(interval)
    env.set_parallelism(2)
    return (
        env.from_event_log(
            table,
            timestamp="ts",
            integer_times=True,
            arrival="arrival" if has_arrival else None,
            split="split",
            rate=20.0,
        )
        .filter(pc.field("before"))
        .assign_timestamps_and_watermarks(strategy)
        .filter(pc.field("after"))
    )


@settings(max_examples=examples(10), deadline=None)
@given(
    table=logs(),
    window=WINDOWS,
    own=st.sampled_from([0, 7, 100]),
    parts=STRATEGIES,
    interval=st.sampled_from([0, 7, 200]),
    has_arrival=st.booleans(),
    filters=st.booleans(),
    group_rows=st.sampled_from([4, 11, 100]),
    most_bytes=st.sampled_from([0, 200, 400, 1 << 20]),
)
def test_times_that_are_kept_have_the_figures_of_those_that_are_read_again(
    table: pa.Table,
    window: Any,
    own: int,
    parts: tuple[int | None, int | None],
    interval: int,
    has_arrival: bool,
    filters: bool,
    group_rows: int,
    most_bytes: int,
) -> None:
    def frontier(log: pa.Table | str) -> LatenessFrontier:
        events = stream(log, own, parts, interval, has_arrival)
        if not filters:  # the one behind the strategy
            events = LogStream(events._environment, events._transformation.inputs()[0])
        return events.lateness([window], [Time.milliseconds(0), Time.milliseconds(10)])  # type: ignore[return-value]

    with (
        TemporaryDirectory(dir=MEMORY) as folder,
        patch.object(planned_job, "CHUNK_BYTES", 1),
        patch.object(planned_job, "KEPT_BYTES", most_bytes),
    ):
        path = str(Path(folder, "log.parquet"))
        pq.write_table(table, path, row_group_size=group_rows)
        found, expected = frontier(path), frontier(table)
    np.testing.assert_equal(steps_of(found._timeline), steps_of(expected._timeline))
    pairs = (found, expected), (found.splits, expected.splits), (found.by_window[0], expected.by_window[0])
    for of_found, of_expected in pairs:
        for name in vars(of_found).keys() - {"by_window", "splits", "_timeline"}:
            np.testing.assert_equal(getattr(of_found, name), getattr(of_expected, name), name)


def planned(job: LogStream) -> PlannedJob:
    return job._environment.executor.planned(StreamGraph(job._transformation), job._environment.get_config())


def windows_of(table: pa.Table, window: Any) -> Counter[tuple[int, int]]:
    """Events of each window."""
    found: Counter[tuple[int, int]] = Counter()
    for row in table.filter(pc.field("before") & pc.field("after")).to_pylist():
        found.update((each.start, each.end) for each in window.assign_windows(None, row["ts"], None))
    return found


@settings(max_examples=examples(15), deadline=None)
@given(
    table=logs(),
    window=WINDOWS,
    latenesses=st.lists(st.sampled_from([0, 10, 150]), min_size=1, max_size=2, unique=True),
    own=st.sampled_from([0, 7, 100]),
    asked=st.none() | st.lists(st.integers(0, 1_200), min_size=1, max_size=3),
    at=st.lists(st.floats(0, 1, exclude_max=True), min_size=3, max_size=3),
    parts=STRATEGIES,
    interval=st.sampled_from([0, 1, 7, 50, 200]),
    has_arrival=st.booleans(),
)
def test_figures_are_those_of_replays(
    table: pa.Table,
    window: Any,
    latenesses: list[int],
    own: int,
    asked: list[int] | None,
    at: list[float],
    parts: tuple[int | None, int | None],
    interval: int,
    has_arrival: bool,
) -> None:
    frontier = stream(table, own, parts, interval, has_arrival).lateness(
        [window],
        [Time.milliseconds(each) for each in latenesses],
        None if asked is None else [Time.milliseconds(each) for each in asked],
    )
    bounds = frontier.bounds_ms.tolist()
    # Most of all where a window just is incomplete, or late from the start.
    (of_window,) = frontier.by_window
    edges = np.concatenate((of_window.opened_behind_ms, of_window.last_behind_ms))
    edges = np.intersect1d(np.concatenate((edges, edges + 1)), bounds).tolist() or bounds
    chosen = {
        min(own, frontier.largest_disorder_ms),
        frontier.largest_disorder_ms + 5,
        *(each[int(share * len(each))] for each, share in zip((bounds, edges, edges), at, strict=True)),
    }
    if asked is not None:
        assert {bound for bound in asked if bound < frontier.largest_disorder_ms} <= set(bounds)
    totals = windows_of(table, window)
    for bound in sorted(chosen & {*bounds, frontier.largest_disorder_ms + 5}):
        job = stream(table, bound, parts, interval, has_arrival).key_by("key")
        late = Counter(
            job.process(LateForWatermark(), pa.schema({"split": pa.int64()})).to_arrow()["split"].to_pylist()
        )
        rows = {row["allowed_lateness_ms"]: row for row in frontier.at(Time.milliseconds(bound)).to_pylist()}
        assert set(rows) == set(latenesses)
        if bound in frontier._shown_ms or bound >= frontier.largest_disorder_ms:
            of_splits = frontier.by_split(Time.milliseconds(bound)).to_pylist()
            assert Counter({row["split"]: row["late_for_watermark"] for row in of_splits}) == late
        for lateness, row in rows.items():
            assert row["late_for_watermark"] == late.total()
            check_windows(job, window, lateness, row, totals, has_arrival)


def check_windows(
    job: Any,
    window: Any,
    lateness: int,
    row: dict[str, Any],
    totals: Counter[tuple[int, int]],
    has_arrival: bool,
) -> None:
    windowed = job.window(window).allowed_lateness(lateness).aggregate(n=count())
    result = windowed.execute()
    fired = result.to_arrow().to_pylist()
    assert row["late"] == result.report.late
    assert row["windows"] == len(totals)
    on_time = [each for each in fired if not each["late_firing"]]
    assert row["fired_on_time"] == len(on_time)
    complete = [each for each in on_time if each["n"] == totals[each["window_start"], each["window_end"]]]
    assert row["incomplete"] == len(totals) - len(complete)
    last = {
        (each["window_start"], each["window_end"]): each["n"]
        for each in sorted(fired, key=lambda each: each["n"])
    }
    assert row["incomplete_for_good"] == sum(last.get(key) != total for key, total in totals.items())
    (plane,) = planned(windowed).time_planes
    made = steps_of(plane.timeline)
    clock_of = dict(zip(made.watermark_ms.tolist(), made.clock_ms.tolist(), strict=True))
    waits = sorted(
        clock_of[each["watermark"]] - each["window_end"] for each in on_time if each["watermark"] < 2**63 - 1
    )
    assert row["open_at_end"] == len(on_time) - len(waits)
    if not has_arrival or not waits:
        expected = [None, None, None]
    else:
        expected = [waits[ceil(len(waits) / 2) - 1], waits[ceil(0.99 * len(waits)) - 1], waits[-1]]
    assert [row["wait_median_ms"], row["wait_p99_ms"], row["wait_max_ms"]] == expected


@settings(deadline=None)
@given(
    st.sampled_from(
        [
            TumblingEventTimeWindows(7, 2),
            TumblingEventTimeWindows(2**62 + 1, -5),
            SlidingEventTimeWindows(7, 1),
            SlidingEventTimeWindows(12, 5, 3),
            SlidingEventTimeWindows(1, 2),
            SlidingEventTimeWindows(3, 11, -4),
            CumulativeEventTimeWindows(12, 1, 5),
            CumulativeEventTimeWindows(12, 4, -7),
        ]
    ),
    st.lists(st.tuples(st.booleans(), st.integers(0, 30)), min_size=1, max_size=6),
)
def test_windows_are_those_of_the_assigner_near_the_ends_of_64_bits(
    window: AlignedWindows, places: list[tuple[bool, int]]
) -> None:
    lowest, highest = window_timestamps(window)
    lowest = max(lowest, MIN_TIMESTAMP + 1)
    times = np.array([lowest + step if is_low else highest - step for is_low, step in places])
    zero = np.zeros(1, np.int64)
    shape: dict[str, Any] = {
        "size": window.size_ms,
        "slide": slide_of(window),
        "offset": window.offset_ms,
        "cumulative": isinstance(window, CumulativeEventTimeWindows),
    }
    counter = LatenessCounter(packed_steps([], []), zero, np.zeros(2, np.int32), 0, 1)
    counter.add_windows(**shape, allowed_lateness_ms=zero)
    counter.update(np.zeros(1, np.int32), np.array([0, len(times)]), np.arange(len(times)), times)
    slices = np.sort(pa.array(counter.counts()["0.slice"]).to_numpy())
    extremes = np.zeros(len(slices), np.int64)
    ends, _, _ = windows_of_slices(slices, extremes, extremes, **shape)
    assigned = [window.assign_windows(None, time, cast(Any, None)) for time in times.tolist()]
    assert ends.tolist() == sorted({each.max_timestamp() for found in assigned for each in found})
