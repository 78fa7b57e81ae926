"""The windowed bids job: flinkcore against plain aggregations and against Flink; all rows are made.

Times are those that the engine's own process measured: loading its input where that is not part of the job,
starting a JVM and passing the answer are left out. `FLINKCORE_BENCH_EVENTS` sets the number of bids (20 M),
`FLINKCORE_BENCH_ROUNDS` the measured runs (3, after two that are not counted), whose median is compared;
`FLINKCORE_BENCH_HUGE=1` adds five times the bids.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest

from benchmarks.engine import Checksum
from benchmarks.engine_process import EngineProcess, Run
from benchmarks.nexmark import Bids
from benchmarks.peers import flink

EVENTS = int(os.environ.get("FLINKCORE_BENCH_EVENTS", 20_000_000))
ROUNDS = int(os.environ.get("FLINKCORE_BENCH_ROUNDS", 3))
WARMUPS = 2
"""Runs that are not counted, of every engine: a JVM that stays needs two to be warm; Flink's is new each time."""
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

_seconds = 0.0
_medians: dict[tuple[Bids, str, int], float] = {}
_checksums: dict[tuple[Bids, bool], Checksum] = {}
_peaks: dict[str, int] = {}


def engine_clock() -> float:
    """Seconds that engines reported so far: pytest-benchmark's timer here."""
    return _seconds


def _require(engine: str) -> None:
    product = engine.partition("-")[0]
    if product == "flink":
        try:
            flink.jdk_tool("javac")
            flink.class_path()
        except flink.FlinkUnavailable as reason:
            pytest.skip(str(reason))
    module = {"duckdb": "duckdb", "polars": "polars", "spark": "pyspark"}.get(product)
    if module is not None and importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def _measure(
    benchmark: Any, engine: str, threads: int, bids: Bids, baselines: tuple[str, ...] = ()
) -> list[Run]:
    """Run the engine under pytest-benchmark and note in `extra_info` what its time does not say.

    `baselines` are those, of engines measured before it, with whose median its median is compared.
    """
    runs: list[Run] = []

    def run() -> None:
        global _seconds
        runs.append(process.run())
        _seconds += runs[-1].seconds

    _require(engine)
    bids.parquet()
    with EngineProcess(engine, bids, threads) as process:
        benchmark.pedantic(run, rounds=ROUNDS, warmup_rounds=WARMUPS)

    for each in runs:
        only_counts = engine == "spark-mapped"
        assert each.checksum == _checksums.setdefault((bids, only_counts), each.checksum)
    middle = sorted(runs[WARMUPS:])[ROUNDS // 2]
    _medians[bids, engine, threads] = middle.seconds
    benchmark.extra_info |= {
        "engine": engine,
        "threads": threads,
        "events": bids.events,
        "ns_per_event": middle.seconds / bids.events * 1e9,
        "result_rows": middle.checksum.rows,
    }
    if middle.cpu_seconds is not None:
        benchmark.extra_info["cpu_ns_per_event"] = middle.cpu_seconds / bids.events * 1e9
        benchmark.extra_info["peak_mib"] = runs[-1].peak_bytes / 2**20
    for baseline in baselines:
        if (bids, baseline, threads) in _medians:
            ratio = _medians[bids, baseline, threads] / middle.seconds
            benchmark.extra_info[f"times_faster_than_{baseline}"] = ratio
    return runs


@pytest.mark.parametrize(
    ("engine", "threads", "baselines"),
    CONTESTANTS,
    ids=[f"{name}-{threads}" for name, threads, _ in CONTESTANTS],
)
@pytest.mark.benchmark(group="windowed bids", timer=engine_clock)
def test_windowed_bids(benchmark: Any, engine: str, threads: int, baselines: tuple[str, ...]) -> None:
    _measure(benchmark, engine, threads, Bids(EVENTS), baselines)


@pytest.mark.parametrize("bidders", [None, 2_000])
@pytest.mark.parametrize(
    "engine",
    [
        "spark-counted",
        "flinkcore-spark-counted",
        "spark-mapped",
        "flinkcore-spark-arrivals",
        "flinkcore-spark-dataframe",
        "flinkcore-spark-rows",
    ],
)
@pytest.mark.benchmark(
    group="windowed bids on Spark, with few bidders and many; but for counted, with arrivals",
    timer=engine_clock,
)
def test_windowed_bids_of_dataframes(benchmark: Any, engine: str, bidders: int | None) -> None:
    before = ("spark-counted", "spark-mapped", "flinkcore-spark-arrivals")
    baselines = before[: before.index(engine)] if engine in before else before
    _measure(benchmark, engine, 2, Bids(EVENTS, bidders=bidders), baselines)


@pytest.mark.parametrize("events", SIZES)
@pytest.mark.parametrize("engine", ["duckdb-parquet", "flinkcore-streamed"])
@pytest.mark.benchmark(group="cost per event against size, 2 threads", timer=engine_clock)
def test_cost_per_event_against_size(benchmark: Any, engine: str, events: int) -> None:
    runs = _measure(benchmark, engine, 2, Bids(events))
    peak = max(run.peak_bytes for run in runs)
    if engine == "flinkcore-streamed":
        # Keeping no results, it may hold only open state: no more for a longer log.
        assert peak <= 1.25 * _peaks.setdefault(engine, peak)
