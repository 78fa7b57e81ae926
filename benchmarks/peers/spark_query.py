"""Spark doing a query of Nexmark in SQL, from Parquet, in a warm session: no watermarks, an answer at the end."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.engine import Engine, Sums
from benchmarks.nexmark_log import Query
from benchmarks.peers.spark_bids import session_builder, timed_write
from flinkcore.examples.nexmark.side_input import side_input
from flinkcore.examples.nexmark.sql import SQL


def sums(result: DataFrame, query: Query) -> Sums:
    """Consume a result in Spark: hashes of all columns, so that its optimizer leaves none out."""
    total = sum((F.col(name) for name in query.summed), F.lit(0))
    rows, found, _ = result.agg(
        F.count("*"), F.sum(total.cast("bigint")), F.bit_xor(F.xxhash64(*result.columns))
    ).first()
    return Sums(rows, found or 0)


def _opened(query: Query, threads: int) -> Callable[[], DataFrame]:
    """Return a function that returns the result, in a session with the logs as tables."""
    spark = session_builder(threads).config("spark.sql.ansi.enabled", False).getOrCreate()
    for name, path in query.parquet()._asdict().items():
        spark.read.parquet(str(path)).createOrReplaceTempView(name)
    values = spark.createDataFrame(side_input().to_pandas())
    values.createOrReplaceTempView("side_input")
    return lambda: spark.sql(SQL[query.query])


def open_query(query: Query, threads: int) -> Engine:
    result = _opened(query, threads)
    return lambda: sums(result(), query)


def open_written(query: Query, threads: int) -> Engine:
    """The same into Parquet files."""
    result = _opened(query, threads)
    return timed_write(lambda out: result().write.parquet(out), query)
