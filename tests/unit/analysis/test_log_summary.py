"""What pictures know of a log, compared with its events one by one."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.timelines import steps_of

from flinkcore.analysis.log_summary import (
    LATENESS_MS,
    MOST_SPLITS,
    ArrivalGrid,
    Firings,
    KeyCounts,
    SummarisedLog,
    summarised_log,
)
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph

N = 1200


def disordered(splits: int = 3, seed: int = 7) -> pa.Table:
    random = np.random.default_rng(seed)
    arrival = np.sort(random.integers(0, 400_000, N))
    return pa.table(
        {
            "ts": arrival - random.integers(0, 30_000, N),
            "arrival": arrival,
            "key": [f"k{n}" for n in np.minimum(random.geometric(0.2, N), 20)],
            "source": random.integers(0, splits, N),
        }
    )


def counts(log: Any, parallelism: int = 1, **options: Any) -> DataStream:
    settings = {"timestamp": "ts", "arrival": "arrival", "split": "source", "integer_times": True} | options
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    return (
        StreamExecutionEnvironment.get_execution_environment()
        .set_parallelism(parallelism)
        .from_event_log(log, **settings)
        .assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .allowed_lateness(10_000)
        .aggregate(n=count())
    )


def summary_of(stream: DataStream) -> SummarisedLog:
    environment = stream.get_execution_environment()
    planned = environment.executor.planned(StreamGraph(stream._transformation), environment.get_config())
    found = summarised_log(planned, 0)
    assert found is not None
    return found


def watermark_at(log: SummarisedLog, arrival_ms: int) -> int:
    """The watermark in force for an event, found by looking at each step."""
    found = -(2**63)
    steps = steps_of(log.timeline)
    for clock_ms, watermark_ms in zip(steps.clock_ms.tolist(), steps.watermark_ms.tolist(), strict=True):
        if clock_ms < arrival_ms:
            found = watermark_ms
    return found


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_summary_has_what_the_events_have(parallelism: int) -> None:
    table = disordered()
    log = summary_of(counts(table, parallelism))
    summary, grid = log.summary, log.grid
    events, late = np.zeros((2, 3, grid.cells), np.int64)
    least: dict[tuple[int, int], int] = {}
    slowest: dict[tuple[int, int], int] = {}
    keys, late_keys, behind = Counter[str](), Counter[str](), Counter[int]()
    n_without = 0
    order = log.shown_splits
    rows = zip(*(table.column(name).to_pylist() for name in ("ts", "arrival", "key", "source")), strict=True)
    for ts, arrival, key, source in rows:
        cell = order.index(source), (arrival - grid.first_ms) // grid.width_ms
        watermark = watermark_at(log, arrival)
        events[cell] += 1
        keys[key] += 1
        least[cell] = min(ts, least.get(cell, ts))
        slowest[cell] = max(arrival - ts, slowest.get(cell, arrival - ts))
        n_without += watermark == -(2**63)
        if ts <= watermark:
            late[cell] += 1
            late_keys[key] += 1
            behind[sum(end <= watermark - ts for end in LATENESS_MS)] += 1
    assert log.split_names == tuple(map(str, order))
    assert summary.events.tolist() == events.tolist()
    assert summary.late.tolist() == late.tolist()
    assert late.sum() > 30
    assert {cell: summary.least_ms[cell] for cell in least} == least
    assert {cell: summary.greatest_delay_ms[cell] for cell in slowest} == slowest
    assert summary.behind.tolist() == [behind[bin_] for bin_ in range(len(LATENESS_MS) + 1)]
    assert summary.before_watermark == n_without
    assert summary.ahead.sum() + summary.behind.sum() + n_without == N
    assert dict(summary.keys.top(100)) == keys
    assert dict(summary.late_keys.top(100)) == late_keys
    assert summary.keys.missing == 0


def test_many_splits_share_a_group() -> None:
    log = summary_of(counts(disordered(splits=30)))
    assert len(log.shown_splits) == MOST_SPLITS
    assert log.split_names[-1] == f"{30 - MOST_SPLITS} other splits"
    assert log.summary.events.sum() == N
    busiest = log.time_plane.splits.events[list(log.shown_splits)].tolist()
    assert log.summary.events.sum(axis=1)[:MOST_SPLITS].tolist() == busiest
    assert min(busiest) >= np.sort(log.time_plane.splits.events)[-MOST_SPLITS]


def test_a_filter_behind_the_watermarks_takes_rows_out_of_the_summary() -> None:
    table = disordered()
    stream = (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log(table, timestamp="ts", integer_times=True, arrival="arrival", split="source")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .filter(pa.compute.field("source") == 1)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(n=count())
    )
    log = summary_of(stream)
    assert log.summary.events.sum() == table.column("source").to_pylist().count(1)


def test_the_watermark_at_an_edge_is_that_of_all_arrivals_before() -> None:
    log = summary_of(counts(disordered()))
    for edge, watermark in list(zip(log.grid.edges_ms.tolist(), log.watermark_ms.tolist(), strict=True))[
        ::40
    ]:
        assert watermark == watermark_at(log, edge)


def firings_of(log: SummarisedLog, emitted_at: str | None = None) -> Firings:
    return Firings(log.grid, log.timeline, log.time_plane.splits.arrival_range[1], emitted_at)


@pytest.mark.parametrize("emitted_at", [None, "known"])
def test_firings_are_those_of_the_results(emitted_at: str | None) -> None:
    stream = counts(disordered())
    result = (stream if emitted_at is None else stream.with_emitted_at(emitted_at)).execute()
    log = summary_of(counts(disordered()))
    firings = firings_of(log, emitted_at)
    for batch in result.to_arrow().select(firings.columns).to_batches():
        firings.add(batch)
    report = result.report
    assert firings.on_time.sum() + firings.at_end == report.on_time_firings
    late = firings.without_time if emitted_at is None else firings.late.sum()
    assert late == report.late_firings > 0


def test_firings_are_drawn_when_they_were_emitted() -> None:
    rows = counts(disordered()).with_emitted_at().to_arrow()
    log = summary_of(counts(disordered()))
    with_times = firings_of(log, "emitted_at")
    without = firings_of(log)
    for batch in rows.to_batches():
        with_times.add(batch)
        without.add(batch)
    emitted = [Counter[int](), Counter[int]()]
    for row in rows.filter(rows["emitted_at"].is_valid()).to_pylist():
        emitted[row["late_firing"]][int(log.grid.cell_of(row["emitted_at"]))] += 1
    assert dict(enumerate(with_times.on_time)) == {cell: emitted[0][cell] for cell in range(log.grid.cells)}
    assert dict(enumerate(with_times.late)) == {cell: emitted[1][cell] for cell in range(log.grid.cells)}
    assert without.on_time.tolist() == with_times.on_time.tolist()
    assert not without.late.any()


def test_a_late_firing_has_the_time_of_its_event_and_not_that_of_the_watermark() -> None:
    hour_ms = 3_600_000
    late = pa.table(
        {"ts": [10, 18_000, 20], "arrival": [0, 1000, hour_ms], "key": ["a"] * 3, "source": [0] * 3}
    )
    stream = counts(late).with_emitted_at()
    log = summary_of(stream)
    firings = firings_of(log, "emitted_at")
    for batch in stream.to_arrow().to_batches():
        firings.add(batch)
    assert np.flatnonzero(firings.on_time).tolist() == [log.grid.cell_of(1000)]
    assert np.flatnonzero(firings.late).tolist() == [log.grid.cell_of(hour_ms)]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 0, (0, 1, 1)),
        (5, 243, (5, 1, 239)),
        (-1500, 1500, (-1500, 20, 151)),
        (978392700000, 978591600000, (978392700000, 900_000, 222)),
        (0, 400 * 86_400_000, (0, 2 * 86_400_000, 201)),
    ],
)
def test_a_grid_has_cells_of_a_length_that_people_use(
    first: int, last: int, expected: tuple[int, int, int]
) -> None:
    grid = ArrivalGrid.over(first, last)
    assert (grid.first_ms, grid.width_ms, grid.cells) == expected
    assert grid.edges_ms[0] <= first
    assert last < grid.edges_ms[-1]
    assert grid.cell_of(np.array([first - 99, last, last + 10**9])).tolist() == [
        0,
        grid.cells - 1,
        grid.cells - 1,
    ]


def test_counts_of_too_many_keys_are_low_by_no_more_than_they_say() -> None:
    random = np.random.default_rng(3)
    keys = random.zipf(1.3, 60_000) % 20_000
    exact = Counter(keys.tolist())
    whole = KeyCounts(["k"])
    for part in np.array_split(keys, 7):
        counted = KeyCounts(["k"])
        for piece in np.array_split(part, 3):
            counted.add_rows(pa.record_batch({"k": piece}))
        columns = counted.to_columns("keys")
        assert len(columns["keys.rows"]) <= KeyCounts.CAPACITY
        whole.add_columns("keys", columns, counted.missing)
    top = whole.top(KeyCounts.CAPACITY)
    assert 0 < whole.missing <= len(keys) // KeyCounts.CAPACITY * 2
    assert all(exact[int(key)] - whole.missing <= rows <= exact[int(key)] for key, rows in top)
    assert all(rows <= whole.missing for key, rows in exact.items() if str(key) not in dict(top))
    assert [key for key, _ in top[:3]] == [str(key) for key, _ in exact.most_common(3)]


def test_keys_of_several_columns_are_named_by_all() -> None:
    counted = KeyCounts(["a", "rows"])
    counted.add_rows(pa.record_batch({"rows": [1, 1, 2], "a": ["x", "x", None]}))
    assert counted.top(5) == [("x, 1", 2), ("null, 2", 1)]
