"""Aggregates over the rows before each row, in frames of 10 rows and of 100,000: a row must cost the same in both.

Arrow table in, Arrow table out, one thread; five keys, so that the long frames fill. The rows are up to four seconds
out of order, and most of the time of a row goes into that order, which all frames share: compare frames of one
aggregate. `FLINKCORE_BENCH_EVENTS` sets the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.job_plans import planned
from benchmarks.measuring import measure
from benchmarks.sizes import size
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import Aggregate, count_distinct, max_, min_, stddev, sum_

EVENTS = size(2_000_000)
KEYS = 5
MS_PER_EVENT = 2
START_MS = 1_700_000_000_000

AGGREGATES: dict[str, dict[str, Aggregate]] = {
    "subtract": {"total": sum_("v")},
    "two stacks": {"least": min_("v"), "greatest": max_("v"), "spread": stddev("x")},
    "distinct values": {"values": count_distinct("v")},
}
FRAMES: dict[str, Callable[[int], Any]] = {
    "rows": lambda rows: rows - 1,
    "time": lambda rows: Time.milliseconds(rows * KEYS * MS_PER_EVENT),
}
PLANS = {"rows": "rows before each row (rows)", "time": "ms before each row (range)"}


@pytest.fixture(scope="module")
def log() -> pa.Table:
    random = np.random.default_rng(1)
    times = np.arange(EVENTS) * MS_PER_EVENT + START_MS
    arrivals = times + random.integers(0, 4_000, EVENTS)
    order = np.argsort(arrivals, kind="stable")
    columns = {"k": random.integers(0, KEYS, EVENTS), "v": random.integers(0, 1_000, EVENTS)}
    return pa.table({**columns, "x": random.random(EVENTS), "ts": times[order], "at": arrivals[order]})


@pytest.mark.parametrize("aggregates", AGGREGATES)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("rows", [10, 100_000])
@pytest.mark.benchmark(group="frames")
def test_frames(benchmark: Any, log: pa.Table, rows: int, frame: str, aggregates: str) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    bound = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
    events = environment.from_event_log(log, timestamp="ts", arrival="at").assign_timestamps_and_watermarks(
        bound
    )
    framed = events.key_by("k").over(FRAMES[frame](rows)).aggregate(**AGGREGATES[aggregates])
    plan = (
        "embedded replay, parallelism 1,",
        "event log Table in memory",
        PLANS[frame],
        *AGGREGATES[aggregates],
    )
    job = planned(lambda: framed, *plan)

    def run() -> pa.Table:
        return job().execute().to_arrow()

    assert measure(benchmark, EVENTS, "event", run).num_rows == EVENTS
