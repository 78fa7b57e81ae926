"""flinkcore doing a query of Nexmark: with watermarks, state and timers, as Flink does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.engine import Engine
from benchmarks.flinkcore_bids import spark_session
from benchmarks.job_plans import planned
from benchmarks.nexmark_log import Query
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.examples.nexmark.queries import QUERIES, Streams

COLUMNS_OF_SPARK = frozenset({"q0", "q1", "q2", "q10", "q14", "q22"})
"""Queries that Spark computes alone on Spark, since they have no operator."""

REPLAYED = {"q21": "to_dataframe() replays the log, for Spark may give another value"}


def open_arrow(query: Query, threads: int) -> Engine:
    log = query.tables()
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(threads)
    job = planned(
        lambda: QUERIES[query.query](Streams(environment, log)), f"embedded replay, parallelism {threads},"
    )
    return lambda: job().to_arrow()


def _on_spark(query: Query, threads: int, how: str) -> Callable[[], Any]:
    """Return a function that makes the job, of whose plan this is a part."""
    from flinkcore.spark import SparkExecutionEnvironment

    log = query.parquet()
    environment = SparkExecutionEnvironment(spark_session(threads))
    return planned(lambda: QUERIES[query.query](Streams(environment, log)), how)


def open_spark(query: Query, threads: int) -> Engine:
    from benchmarks.peers.spark_query import sums

    alone = query.query in COLUMNS_OF_SPARK
    how = (
        "to_dataframe() gives columns that Spark computes"
        if alone
        else REPLAYED.get(query.query, "spark replay")
    )
    job = _on_spark(query, threads, how)
    return lambda: sums(job().to_dataframe(), query)


def open_spark_written(query: Query, threads: int) -> Engine:
    """Into Parquet files, which the tasks of the replay write."""
    from benchmarks.peers.spark_bids import timed_write

    job = _on_spark(query, threads, "spark replay")
    return timed_write(lambda out: job().write_parquet(out), query)
