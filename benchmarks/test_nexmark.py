"""The queries of Nexmark: flinkcore beside Flink's DataStream jobs, DuckDB and Spark, all of whose answers agree.

In memory with one thread: flinkcore and DuckDB from Arrow tables to Arrow tables, Flink from memory-mapped columns to
a sink that drops its results. With two, from Parquet: flinkcore on Spark, and Spark's SQL. Times are those that the
engine's own process measured. `FLINKCORE_BENCH_EVENTS` sets the number of events (5 M), `FLINKCORE_BENCH_ROUNDS` the
measured runs (3).
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest

from benchmarks.engine import Sums
from benchmarks.engine_process import EngineProcess, Run
from benchmarks.nexmark_log import Query
from benchmarks.peers import flink
from benchmarks.peers.flink_query import WITHOUT
from flinkcore.examples.nexmark.queries import QUERIES

EVENTS = int(os.environ.get("FLINKCORE_BENCH_EVENTS", 5_000_000))
ROUNDS = int(os.environ.get("FLINKCORE_BENCH_ROUNDS", 3))

# Baselines come first.
ENGINES = {
    "duckdb-query": 1,
    "flink-query": 1,
    "spark-query": 2,
    "flinkcore-query": 1,
    "flinkcore-spark-query": 2,
}
BASELINES = {"flinkcore-query": ("duckdb-query", "flink-query"), "flinkcore-spark-query": ("spark-query",)}

_seconds = 0.0
_best: dict[tuple[str, str], float] = {}
_sums: dict[tuple[str, bool], Sums] = {}


def engine_clock() -> float:
    """Seconds that engines reported so far: pytest-benchmark's timer here."""
    return _seconds


def _require(engine: str, query: str) -> None:
    product = engine.partition("-")[0]
    if product == "flink":
        if query in WITHOUT:
            pytest.skip(f"{query} is not written in Java")
        try:
            flink.jdk_tool("javac")
            flink.class_path()
        except flink.FlinkUnavailable as reason:
            pytest.skip(str(reason))
    module = {"duckdb": "duckdb", "spark": "pyspark"}.get(product)
    if module is not None and importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.benchmark(group="queries of Nexmark", timer=engine_clock)
def test_nexmark(benchmark: Any, query: str, engine: str) -> None:
    _require(engine, query)
    runs: list[Run] = []

    def run() -> None:
        global _seconds
        runs.append(process.run())
        _seconds += runs[-1].seconds

    log = Query(query, EVENTS)
    log.parquet()
    # A JVM compiles while it runs: Spark needs two runs to be warm; Flink starts anew, as its users' jobs do.
    warmups = 0 if engine == "flink-query" else 2 if "spark" in engine else 1
    with EngineProcess(engine, log, ENGINES[engine]) as process:
        benchmark.pedantic(run, rounds=min(ROUNDS, 2) if warmups == 0 else ROUNDS, warmup_rounds=warmups)
    # Of q4, SQL has what a stream has updated last.
    is_final = query == "q4" and engine in ("duckdb-query", "spark-query")
    for each in runs:
        assert each.checksum == _sums.setdefault((query, is_final), each.checksum)
    fastest = min(runs[warmups:])
    _best[query, engine] = fastest.seconds
    benchmark.extra_info |= {
        "query": query,
        "engine": engine,
        "threads": ENGINES[engine],
        "events": EVENTS,
        "ns_per_event": fastest.seconds / EVENTS * 1e9,
        "result_rows": fastest.checksum.rows,
    }
    if fastest.cpu_seconds is not None:
        benchmark.extra_info["cpu_ns_per_event"] = fastest.cpu_seconds / EVENTS * 1e9
        benchmark.extra_info["peak_mib"] = runs[-1].peak_bytes / 2**20
    for baseline in BASELINES.get(engine, ()):
        if (query, baseline) in _best:
            benchmark.extra_info[f"times_faster_than_{baseline}"] = _best[query, baseline] / fastest.seconds
