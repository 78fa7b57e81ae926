"""The windowed bids job: flinkcore against plain aggregations and against Flink; all rows are made.

Times are those that the engine's own process measured: loading its input where that is not part of the job,
starting a JVM and passing the answer are left out. `FLINKCORE_BENCH_EVENTS` sets the number of bids (20 M),
`FLINKCORE_BENCH_ROUNDS` the measured runs (3), `FLINKCORE_BENCH_HUGE=1` adds five times the bids.
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
SIZES = [EVENTS // 4, EVENTS, *([EVENTS * 5] if os.environ.get("FLINKCORE_BENCH_HUGE") == "1" else [])]

# Each engine with its threads and the baselines that its time is compared with; baselines come first.
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
    ("flinkcore-arrow", 1, ("duckdb-arrow-1", "polars-arrow-1", "flink-generated-1")),
    ("flinkcore-arrow", 2, ("flinkcore-arrow-1", "duckdb-arrow-2", "polars-arrow-2", "flink-generated-2")),
    ("flinkcore-parquet", 2, ("duckdb-parquet-2", "polars-parquet-2", "flink-generated-2")),
    ("flinkcore-spark-counted", 2, ("spark-counted-2", "flink-generated-2")),
    ("flinkcore-spark-written", 2, ("spark-written-2", "flink-generated-2")),
]

_seconds = 0.0
_best: dict[tuple[Bids, str], float] = {}
_checksums: dict[Bids, Checksum] = {}
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


def _measure(benchmark: Any, engine: str, threads: int, bids: Bids, rounds: int, warmups: int) -> list[Run]:
    """Run the engine under pytest-benchmark and note in `extra_info` what its time does not say."""
    runs: list[Run] = []

    def run() -> None:
        global _seconds
        runs.append(process.run())
        _seconds += runs[-1].seconds

    _require(engine)
    bids.parquet()
    with EngineProcess(engine, bids, threads) as process:
        benchmark.pedantic(run, rounds=rounds, warmup_rounds=warmups)

    for each in runs:
        assert each.checksum == _checksums.setdefault(bids, each.checksum)
    fastest = min(runs[warmups:])
    benchmark.extra_info |= {
        "engine": engine,
        "threads": threads,
        "events": bids.events,
        "ns_per_event": fastest.seconds / bids.events * 1e9,
        "result_rows": fastest.checksum.rows,
    }
    if fastest.cpu_seconds is not None:
        benchmark.extra_info["cpu_ns_per_event"] = fastest.cpu_seconds / bids.events * 1e9
        benchmark.extra_info["peak_mib"] = runs[-1].peak_bytes / 2**20
    return runs


@pytest.mark.parametrize(
    ("engine", "threads", "baselines"),
    CONTESTANTS,
    ids=[f"{name}-{threads}" for name, threads, _ in CONTESTANTS],
)
@pytest.mark.benchmark(group="windowed bids", timer=engine_clock)
def test_windowed_bids(benchmark: Any, engine: str, threads: int, baselines: tuple[str, ...]) -> None:
    bids = Bids(EVENTS)
    # A JVM compiles while it runs: Spark needs two runs to be warm; Flink starts anew, as its users' jobs do.
    warmups = 0 if engine.startswith("flink-") else 2 if "spark" in engine else 1
    runs = _measure(benchmark, engine, threads, bids, min(ROUNDS, 2) if warmups == 0 else ROUNDS, warmups)
    seconds = min(run.seconds for run in runs[warmups:])
    _best[bids, f"{engine}-{threads}"] = seconds
    for baseline in baselines:
        if (bids, baseline) in _best:
            benchmark.extra_info[f"times_faster_than_{baseline}"] = _best[bids, baseline] / seconds


@pytest.mark.parametrize("bidders", [None, 2_000])
@pytest.mark.parametrize(
    "engine",
    ["spark-counted", "flinkcore-spark-arrivals", "flinkcore-spark-dataframe", "flinkcore-spark-rows"],
)
@pytest.mark.benchmark(group="windowed bids with arrivals, by number of bidders", timer=engine_clock)
def test_windowed_bids_of_dataframes(benchmark: Any, engine: str, bidders: int | None) -> None:
    bids = Bids(EVENTS, bidders=bidders)
    runs = _measure(benchmark, engine, 2, bids, ROUNDS, warmups=2)
    _best[bids, engine] = min(run.seconds for run in runs[2:])
    for baseline in ("spark-counted", "flinkcore-spark-arrivals"):
        if (bids, baseline) in _best and baseline != engine:
            faster = _best[bids, baseline] / _best[bids, engine]
            benchmark.extra_info[f"times_faster_than_{baseline}"] = faster


@pytest.mark.parametrize("events", SIZES)
@pytest.mark.parametrize("engine", ["duckdb-parquet", "flinkcore-streamed"])
@pytest.mark.benchmark(group="cost per event against size, 2 threads", timer=engine_clock)
def test_cost_per_event_against_size(benchmark: Any, engine: str, events: int) -> None:
    runs = _measure(benchmark, engine, 2, Bids(events), ROUNDS, warmups=1)
    peak = max(run.peak_bytes for run in runs)
    if engine == "flinkcore-streamed":
        # Keeping no results, it may hold only open state: no more for a longer log.
        assert peak <= 1.25 * _peaks.setdefault(engine, peak)
