"""flinkcore doing the windowed bids job: with watermarks, lateness and firings, as Flink does it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import flinkcore
from benchmarks.engine import KEY, WINDOW_MS, Checksum, Engine
from benchmarks.job_plans import planned
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

WINDOW_PLANS = {
    TUMBLING: "tumbling windows of 10000 ms, allowed lateness 0 ms",
    SLIDING: "sliding windows of 10000 ms every 2000 ms, allowed lateness 0 ms",
    SESSION: "sessions with a gap of 10000 ms, allowed lateness 0 ms",
}
AGGREGATE_PLAN = "n = count(), total = sum(price), top = max(price)"
BY_POSITION, BY_ARRIVAL = "arrival by position", "arrival arrival"
MERGED_ON_SPARK = ("spark replay", f"events of a key and {WINDOW_MS} ms are merged before the shuffle")


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


def planned_bids(
    new_env: Callable[[], Any],
    log: Any,
    bids: Bids,
    *parts: str,
    windows: Any = TUMBLING,
    arrival: str | None = None,
) -> Callable[[], Any]:
    """Return a function that makes the job over a log, whose plan shows the parts."""
    return planned(
        lambda: windowed_bids(new_env(), log, bids, windows, arrival),
        *(
            f"out of order by at most {bids.disorder_seconds * 1000} ms",
            WINDOW_PLANS[windows],
            AGGREGATE_PLAN,
        ),
        *(BY_POSITION if arrival is None else BY_ARRIVAL, *parts),
    )


def _planned_embedded(log: Any, bids: Bids, threads: int, windows: Any = TUMBLING) -> Callable[[], Any]:
    read = "event log Table in memory" if isinstance(log, pa.Table) else f"event log {log}:"
    return planned_bids(
        lambda: StreamExecutionEnvironment.get_execution_environment().set_parallelism(threads),
        *(log, bids, f"embedded replay, parallelism {threads},", read),
        windows=windows,
    )


def _open_arrow(bids: Bids, threads: int, windows: Any) -> Engine:
    table = pq.read_table(bids.parquet(), columns=[KEY, "price", "date_time"])
    job = _planned_embedded(table, bids, threads, windows)
    return lambda: job().to_arrow()


def open_arrow(bids: Bids, threads: int) -> Engine:
    return _open_arrow(bids, threads, TUMBLING)


def open_sliding(bids: Bids, threads: int) -> Engine:
    return _open_arrow(bids, threads, SLIDING)


def open_session(bids: Bids, threads: int) -> Engine:
    return _open_arrow(bids, threads, SESSION)


def open_parquet(bids: Bids, threads: int) -> Engine:
    job = _planned_embedded(bids.parquet(), bids, threads)
    return lambda: job().to_arrow()


def open_streamed(bids: Bids, threads: int) -> Engine:
    """From Parquet, each result batch dropped once it is summed: what is left in memory is open state."""
    job = _planned_embedded(bids.parquet(), bids, threads)

    def run() -> Checksum:
        total = Checksum(0, 0, 0, 0)
        for batch in job().to_batches():
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


def _planned_spark(
    log_of: Callable[[Any], Any], bids: Bids, threads: int, *parts: str, arrival: str | None = None
) -> Callable[[], Any]:
    from flinkcore.spark import SparkExecutionEnvironment

    spark = spark_session(threads)
    env = SparkExecutionEnvironment(spark)
    return planned_bids(lambda: env, log_of(spark), bids, *MERGED_ON_SPARK, *parts, arrival=arrival)


def open_spark_counted(bids: Bids, threads: int) -> Engine:
    from benchmarks.peers.spark_bids import checksum

    path = bids.parquet()
    job = _planned_spark(lambda spark: path, bids, threads, f"event log {path}:")
    return lambda: checksum(job().to_dataframe())


def _open_spark_arrivals(bids: Bids, threads: int, log_of: Callable[[Any], Any], how_read: str) -> Engine:
    from benchmarks.peers.spark_bids import checksum

    job = _planned_spark(log_of, bids, threads, how_read, arrival="arrival")
    return lambda: checksum(job().to_dataframe())


def open_spark_arrivals(bids: Bids, threads: int) -> Engine:
    """The log in files with arrivals."""
    path = bids.parquet_with_arrivals()
    return _open_spark_arrivals(bids, threads, lambda spark: path, f"event log {path}:")


def open_spark_dataframe(bids: Bids, threads: int) -> Engine:
    """A DataFrame that is these files."""
    path = bids.parquet_with_arrivals()
    files = f": read as {len(list(path.glob('*.parquet')))} Parquet files"
    return _open_spark_arrivals(bids, threads, lambda spark: spark.read.parquet(str(path)), files)


def open_spark_computed(bids: Bids, threads: int) -> Engine:
    """A DataFrame with a column of arithmetic, which tasks compute of what they read from the files."""
    from benchmarks.peers.spark_bids import computed

    path = bids.parquet_with_arrivals()
    files = f"{len(list(path.glob('*.parquet')))} Parquet files, of which tasks compute 'price'"
    return _open_spark_arrivals(bids, threads, lambda spark: computed(spark, path), f": read as {files}")


def open_spark_evaluated(bids: Bids, threads: int) -> Engine:
    """A DataFrame that Spark has to evaluate, for it alone computes a column that the job reads."""
    from benchmarks.peers.spark_bids import evaluated

    path = bids.parquet_with_arrivals()
    how_read = ": evaluated once, and their rows kept, for Spark computes the column 'price'"
    return _open_spark_arrivals(bids, threads, lambda spark: evaluated(spark, path), how_read)


def open_spark_written(bids: Bids, threads: int) -> Engine:
    from benchmarks.peers.spark_bids import timed_write

    path = bids.parquet()
    job = _planned_spark(lambda spark: path, bids, threads, f"event log {path}:")
    return timed_write(lambda out: job().write_parquet(out), bids)
