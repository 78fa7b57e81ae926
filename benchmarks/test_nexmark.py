"""The queries of Nexmark: flinkcore beside Flink's DataStream jobs, Flink SQL, DuckDB and Spark, whose answers agree.

In memory with one thread: flinkcore and DuckDB from Arrow tables to Arrow tables, Flink from memory-mapped columns to
a sink that drops its results. `flinkcore-sql` and `flink-sql` run the same plan of Flink's. With two, from Parquet:
flinkcore on Spark, and Spark's SQL, which consume the results or write them as Parquet. `FLINKCORE_BENCH_EVENTS` sets
the number of events (5 M); `measuring` says how they are measured.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import nexmark_sql
from benchmarks.measuring import Engines, reported_clock
from benchmarks.nexmark_log import Query
from benchmarks.peers import flink_sql
from benchmarks.peers.flink_query import WITHOUT
from benchmarks.sizes import size
from flinkcore.examples.nexmark.queries import QUERIES

EVENTS = size(5_000_000)

# Baselines come first.
THREADS = {
    "duckdb-query": 1,
    "flink-query": 1,
    "flink-sql": 1,
    "spark-query": 2,
    "spark-query-written": 2,
    "flinkcore-query": 1,
    "flinkcore-sql": 1,
    "flinkcore-spark-query": 2,
    "flinkcore-spark-query-written": 2,
}
BASELINES = {
    "flinkcore-query": ("duckdb-query", "flink-query"),
    "flinkcore-sql": ("flinkcore-query", "flink-sql"),
    "flinkcore-spark-query": ("spark-query",),
    "flinkcore-spark-query-written": ("spark-query-written",),
}
ONLY_LAST_UPDATES = ("duckdb-query", "spark-query", "spark-query-written", "flinkcore-sql", "flink-sql")
SQL_OF_FLINK = ("flinkcore-sql", "flink-sql")

ENGINES = Engines()


@pytest.mark.parametrize("engine", THREADS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.benchmark(group="queries of Nexmark", timer=reported_clock)
def test_nexmark(benchmark: Any, query: str, engine: str) -> None:
    if engine == "flink-query" and query in WITHOUT:
        pytest.skip(f"{query} is not written in Java")
    if engine in SQL_OF_FLINK and query not in nexmark_sql.QUERIES:
        pytest.skip(f"{query} is not written in Flink's SQL")
    if engine == "flink-sql" and query in flink_sql.WITHOUT:
        pytest.skip(f"{query} depends on the clock in Flink")
    # In q4, SQL returns the last updates of a stream.
    is_final = query == "q4" and engine in ONLY_LAST_UPDATES
    has_updates = engine in SQL_OF_FLINK and query in nexmark_sql.OTHER_ROWS
    log, baselines = Query(query, EVENTS), BASELINES.get(engine, ())
    answer = (is_final, has_updates)
    ENGINES.measure(benchmark, engine, log, THREADS[engine], baselines=baselines, answer=answer)
    benchmark.extra_info["query"] = query
