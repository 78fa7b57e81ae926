"""Spark's own groupBy doing the windowed bids job in a warm session: no watermarks, no late rows."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.engine import KEY, WINDOW_MS, Checksum, Engine, Timed
from benchmarks.nexmark import Bids
from benchmarks.nexmark_log import Query
from benchmarks.sizes import jvm_mib


def checksum(result: DataFrame) -> Checksum:
    """Consume a result in Spark; without the sums the optimizer would drop the aggregates."""
    return Checksum(*result.agg(F.count("*"), F.sum("n"), F.sum("total"), F.sum("top")).first())


def timed_write(write: Callable[[str], object], log: Bids | Query) -> Engine:
    """An engine that measures `write(new directory)` and then reads back what was written."""

    def run() -> Timed:
        with tempfile.TemporaryDirectory(prefix="bids-out-") as parent:
            out = f"{parent}/result"
            start = time.perf_counter()
            write(out)
            seconds = time.perf_counter() - start
            return Timed(seconds, log.checksum(pq.read_table(out, columns=[*log.summed])))

    return run


def session_builder(threads: int) -> SparkSession.Builder:
    """The settings that Spark's own aggregation and flinkcore share."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(f"local[{threads}]")
        .appName("flinkcore benchmarks")
        .config("spark.driver.memory", f"{jvm_mib(6 * 1024)}m")
        # 2 to 200 measured alike; adaptive execution coalesces them.
        .config("spark.sql.shuffle.partitions", 8)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
    )


def _aggregate(spark: SparkSession, path: Path) -> DataFrame:
    window_start = F.expr(f"date_time div {WINDOW_MS} * {WINDOW_MS}").alias("window_start")
    return (
        spark.read.parquet(str(path))
        .groupBy(KEY, window_start)
        .agg(F.count("*").alias("n"), F.sum("price").alias("total"), F.max("price").alias("top"))
    )


def computed(spark: SparkSession, path: Path) -> DataFrame:
    """Return the bids with a column of arithmetic: the optimizer does not see that the prices stay the same."""
    return spark.read.parquet(str(path)).withColumn("price", F.col("price") * 2 - F.col("price"))


def evaluated(spark: SparkSession, path: Path) -> DataFrame:
    """Return the bids with a column that Spark alone computes, whose values stay the same."""
    doubled = F.shiftleft("price", 1)
    return spark.read.parquet(str(path)).withColumn("price", F.shiftright(doubled, 1))


def open_mapped(bids: Bids, threads: int) -> Engine:
    """The columns that a replay needs, computed by Spark, go to Python as Arrow batches and are counted, no more."""
    path = bids.parquet_with_arrivals()
    spark = session_builder(threads).getOrCreate()

    rows = evaluated(spark, path).select(KEY, "price", "date_time", "arrival")
    plan = rows._jdf.queryExecution().optimizedPlan().toString()
    assert "AS price" in plan, f"Spark would not compute the prices:\n{plan}"

    def run() -> Checksum:
        counted = rows.mapInArrow(_count_rows, "n long").agg(F.sum("n")).first()
        assert counted is not None
        return Checksum(counted[0], 0, 0, 0)

    return run


def _count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"n": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})


def open_counted(bids: Bids, threads: int) -> Engine:
    path = bids.parquet()
    spark = session_builder(threads).getOrCreate()
    return lambda: checksum(_aggregate(spark, path))


def open_written(bids: Bids, threads: int) -> Engine:
    path = bids.parquet()
    spark = session_builder(threads).getOrCreate()
    return timed_write(lambda out: _aggregate(spark, path).write.parquet(out), bids)
