"""flinkcore doing a query of Nexmark: with watermarks, state and timers, as Flink does it."""

from __future__ import annotations

from benchmarks.engine import Engine
from benchmarks.flinkcore_bids import spark_session
from benchmarks.job_plans import planned
from benchmarks.nexmark_log import Query
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.examples.nexmark.queries import QUERIES, Streams


def open_arrow(query: Query, threads: int) -> Engine:
    log = query.tables()
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(threads)
    job = planned(
        lambda: QUERIES[query.query](Streams(environment, log)), f"embedded replay, parallelism {threads},"
    )
    return lambda: job().to_arrow()


def open_spark(query: Query, threads: int) -> Engine:
    from benchmarks.peers.spark_query import sums
    from flinkcore.spark import SparkExecutionEnvironment

    log = query.parquet()
    environment = SparkExecutionEnvironment(spark_session(threads))
    job = planned(lambda: QUERIES[query.query](Streams(environment, log)), "spark replay")
    return lambda: sums(job().to_dataframe(), query)
