"""flinkcore doing the windowed bids job: with watermarks, lateness and firings, as Flink does it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import flinkcore
from benchmarks.engine import KEY, WINDOW_MS, Checksum, Engine
from benchmarks.nexmark import Bids
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, max_, sum_

TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
# As in peers/WindowedBids.java.
SLIDING = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))
SESSION = EventTimeSessionWindows.with_gap(Time.seconds(10))


def windowed_bids(env: Any, log: Any, bids: Bids, windows: Any = TUMBLING, arrival: str | None = None) -> Any:
    out_of_orderness = Duration.of_seconds(bids.disorder_seconds)
    return (
        env.from_event_log(
            log,
            timestamp="date_time",
            arrival=arrival,
            rate=bids.bids_per_second,
            arrival_start_ms=bids.base_ms,
        )
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_bounded_out_of_orderness(out_of_orderness))
        .key_by(KEY)
        .window(windows)
        .aggregate(n=count(), total=sum_("price"), top=max_("price"))
    )


def _embedded(threads: int) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(threads)


def _open_arrow(bids: Bids, threads: int, windows: Any) -> Engine:
    table = pq.read_table(bids.parquet(), columns=[KEY, "price", "date_time"])
    return lambda: windowed_bids(_embedded(threads), table, bids, windows).to_arrow()


def open_arrow(bids: Bids, threads: int) -> Engine:
    return _open_arrow(bids, threads, TUMBLING)


def open_sliding(bids: Bids, threads: int) -> Engine:
    return _open_arrow(bids, threads, SLIDING)


def open_session(bids: Bids, threads: int) -> Engine:
    return _open_arrow(bids, threads, SESSION)


def open_parquet(bids: Bids, threads: int) -> Engine:
    path = bids.parquet()
    return lambda: windowed_bids(_embedded(threads), path, bids).to_arrow()


def open_streamed(bids: Bids, threads: int) -> Engine:
    """From Parquet, each result batch dropped once it is summed: what is left in memory is open state."""
    path = bids.parquet()

    def run() -> Checksum:
        total = Checksum(0, 0, 0, 0)
        for batch in windowed_bids(_embedded(threads), path, bids).to_batches():
            total = total.plus(Checksum.of(batch))
        return total

    return run


def spark_session(threads: int) -> Any:
    """A session on this machine, with Spark's settings of the peers' and flinkcore's own."""
    from benchmarks.peers.spark_bids import session_builder
    from flinkcore.spark import configure_spark

    # Spark's Python workers import the same flinkcore as this process, be it installed or a source tree.
    paths = [str(Path(flinkcore.__file__).parents[1]), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return configure_spark(session_builder(threads)).getOrCreate()


def _spark(threads: int) -> Any:
    from flinkcore.spark import SparkExecutionEnvironment

    return SparkExecutionEnvironment(spark_session(threads))


def open_spark_counted(bids: Bids, threads: int) -> Engine:
    from benchmarks.peers.spark_bids import checksum

    path, env = bids.parquet(), _spark(threads)
    return lambda: checksum(windowed_bids(env, path, bids).to_dataframe())


def _open_spark_arrivals(bids: Bids, threads: int, log_of: Callable[[Any, str], Any]) -> Engine:
    from benchmarks.peers.spark_bids import checksum

    path, spark, env = str(bids.parquet_with_arrivals()), spark_session(threads), _spark(threads)
    return lambda: checksum(windowed_bids(env, log_of(spark, path), bids, arrival="arrival").to_dataframe())


def open_spark_arrivals(bids: Bids, threads: int) -> Engine:
    """The log in files with arrivals."""
    return _open_spark_arrivals(bids, threads, lambda spark, path: path)


def open_spark_dataframe(bids: Bids, threads: int) -> Engine:
    """A DataFrame that is these files."""
    return _open_spark_arrivals(bids, threads, lambda spark, path: spark.read.parquet(path))


def open_spark_rows(bids: Bids, threads: int) -> Engine:
    """A DataFrame that Spark has to evaluate: behind a filter that keeps all rows, which Spark cannot know."""
    from pyspark.sql import functions as F

    return _open_spark_arrivals(
        bids, threads, lambda spark, path: spark.read.parquet(path).where(F.rand(1) < 2)
    )


def open_spark_written(bids: Bids, threads: int) -> Engine:
    from benchmarks.peers.spark_bids import timed_write

    path, env = bids.parquet(), _spark(threads)
    return timed_write(lambda out: windowed_bids(env, path, bids).write_parquet(out))
