"""Spark sessions for tests: small, quiet, and seeing the flinkcore that the tests import."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import flinkcore

QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Environment in which Java compiles quickly: what tests run is over before the best code would pay."""


@contextmanager
def spark_session(master: str, **settings: str) -> Iterator[Any]:
    """A session that ends with the block; settings are named with underscores for dots."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("flinkcore tests")
    builder = builder.config("spark.executorEnv.PYTHONPATH", str(Path(flinkcore.__file__).parents[1]))
    with session_of(builder, settings) as spark:
        yield spark


@contextmanager
def session_of(builder: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """A builder's session with further settings, of which nothing is left in this process but the JVM."""
    from flinkcore.spark import configure_spark

    configure_spark(builder.config("spark.ui.enabled", "false"))
    for name, value in settings.items():
        builder.config(name.replace("_", "."), value)
    before = signal.getsignal(signal.SIGINT)
    with patch.dict(os.environ, QUICK_JAVA):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
        # The builder is one object for the whole process and would hand these settings to the next session.
        builder._options.clear()
        signal.signal(signal.SIGINT, before)


def dataframe_of(spark: Any, table: pa.Table) -> Any:
    """A DataFrame of a table, also on Spark 3.5, which takes no Arrow data."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(
        [tuple(row.values()) for row in table.to_pylist()],
        from_arrow_schema(table.schema, prefer_timestamp_ntz=True),
    )


def table_of(dataframe: Any) -> pa.Table:
    """The table of a DataFrame with rows, also on Spark 3.5, which gives no Arrow data."""
    if hasattr(dataframe, "toArrow"):
        return dataframe.toArrow()
    return pa.Table.from_batches(dataframe._collect_as_arrow())


def evaluated(dataframe: Any) -> Any:
    """The same rows as a DataFrame that Spark has to evaluate: neither its optimizer nor Arrow can do without it."""
    from pyspark.sql import functions as F

    from flinkcore.spark.logs.parquet_scan import parquet_files
    from flinkcore.spark.logs.plan_nodes import NotJustFiles

    kept = dataframe.where(F.rand() + F.rand() >= 0)
    try:
        parquet_files(kept)
    except NotJustFiles:
        return kept
    raise AssertionError("the DataFrame is read as files")
