"""flinkcore doing a query of Nexmark: with watermarks, state and timers, as Flink does it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.engine import Engine
from benchmarks.flinkcore_bids import spark_session
from benchmarks.job_plans import planned
from benchmarks.nexmark_log import Query
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
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


def open_sql(query: Query, threads: int) -> Engine:
    """The plan that Flink makes of the query's SQL."""
    from benchmarks import nexmark_sql

    logs, plan = query.tables()._asdict(), nexmark_sql.plan(query.query)
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(threads)
    read = {name: log for name, log in logs.items() if f"`{name}`" in json.dumps(plan)}

    def made() -> LogStream:
        streams = {
            name: environment.from_event_log(log, timestamp="date_time", arrival="arrival", split=None)
            for name, log in read.items()
        }
        return environment.from_plan(plan, streams)

    job = planned(made, f"embedded replay, parallelism {threads},")
    key = nexmark_sql.LAST_ROWS.get(query.query)
    return lambda: _last_rows(job().to_arrow(), key)


def _last_rows(changes: pa.Table, key: str | None) -> pa.Table:
    """Return the last row of each value of a key, unless it is withdrawn; all rows without a key."""
    if key is None:
        return changes
    numbered = pa.table({"key": changes[key], "row": range(changes.num_rows)})
    last = numbered.group_by("key").aggregate([("row", "max")])["row_max"]
    rows = changes.take(last)
    return rows.filter(pc.not_equal(rows["row_kind"], "-D"))
