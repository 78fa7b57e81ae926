"""The windowed bids job: flinkcore against plain aggregations and against Flink; all rows are made.

`FLINKCORE_BENCH_EVENTS` sets the number of bids (20 M), and `FLINKCORE_BENCH_HUGE=1` adds five times as many;
`measuring` says how they are measured.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from benchmarks.engine_process import Run
from benchmarks.measuring import Engines, reported_clock
from benchmarks.nexmark import Bids
from benchmarks.sizes import size

EVENTS = size(20_000_000)
SIZES = [EVENTS // 4, EVENTS, *([EVENTS * 5] if os.environ.get("FLINKCORE_BENCH_HUGE") == "1" else [])]

# Each engine with its threads, and the baselines that it is compared with at so many; these come first.
CONTESTANTS: list[tuple[str, int, tuple[str, ...]]] = [
    ("duckdb-arrow", 1, ()),
    ("polars-arrow", 1, ()),
    ("duckdb-arrow", 2, ()),
    ("polars-arrow", 2, ()),
    ("duckdb-parquet", 2, ()),
    ("polars-parquet", 2, ()),
    ("flink-generated", 1, ()),
    ("flink-generated", 2, ()),
    ("spark-counted", 2, ()),
    ("spark-written", 2, ()),
    ("flinkcore-arrow", 1, ("duckdb-arrow", "polars-arrow", "flink-generated")),
    ("flinkcore-arrow", 2, ("duckdb-arrow", "polars-arrow", "flink-generated")),
    ("flinkcore-parquet", 2, ("duckdb-parquet", "polars-parquet", "flink-generated")),
    ("flinkcore-spark-counted", 2, ("spark-counted", "flink-generated")),
    ("flinkcore-spark-written", 2, ("spark-written", "flink-generated")),
]

ENGINES = Engines()

_peaks: dict[str, int] = {}


def measure(
    benchmark: Any, engine: str, threads: int, bids: Bids, baselines: tuple[str, ...] = ()
) -> list[Run]:
    only_counts = engine == "spark-evaluated-mapped"
    return ENGINES.measure(benchmark, engine, bids, threads, baselines=baselines, answer=only_counts)


@pytest.mark.parametrize(
    ("engine", "threads", "baselines"),
    CONTESTANTS,
    ids=[f"{name}-{threads}" for name, threads, _ in CONTESTANTS],
)
@pytest.mark.benchmark(group="windowed bids", timer=reported_clock)
def test_windowed_bids(benchmark: Any, engine: str, threads: int, baselines: tuple[str, ...]) -> None:
    measure(benchmark, engine, threads, Bids(EVENTS), baselines)


@pytest.mark.parametrize("bidders", [None, 2_000])
@pytest.mark.parametrize(
    "engine",
    [
        "spark-counted",
        "flinkcore-spark-counted",
        "spark-evaluated-mapped",
        "flinkcore-spark-arrivals",
        "flinkcore-spark-dataframe",
        "flinkcore-spark-computed",
        "flinkcore-spark-evaluated",
    ],
)
@pytest.mark.benchmark(
    group="windowed bids on Spark, with few bidders and many; but for counted, with arrivals",
    timer=reported_clock,
)
def test_windowed_bids_of_dataframes(benchmark: Any, engine: str, bidders: int | None) -> None:
    before = ("spark-counted", "spark-evaluated-mapped", "flinkcore-spark-arrivals")
    baselines = before[: before.index(engine)] if engine in before else before
    measure(benchmark, engine, 2, Bids(EVENTS, bidders=bidders), baselines)


@pytest.mark.parametrize("events", SIZES)
@pytest.mark.parametrize("engine", ["duckdb-parquet", "flinkcore-streamed"])
@pytest.mark.benchmark(group="cost per event against size, 2 threads", timer=reported_clock)
def test_cost_per_event_against_size(benchmark: Any, engine: str, events: int) -> None:
    runs = measure(benchmark, engine, 2, Bids(events))
    peak = max(run.peak_bytes for run in runs)
    if engine == "flinkcore-streamed":
        # Keeping no results, it may hold only open state: no more for a longer log.
        assert peak <= 1.25 * _peaks.setdefault(engine, peak)
