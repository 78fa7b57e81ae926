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

_SHARED: dict[str, Any] = {}
"""The first session of the context that sessions of tests share, by its master; there is one context at a time."""


@contextmanager
def spark_session(master: str, **settings: str) -> Iterator[Any]:
    """A session that ends with the block; settings are named with underscores for dots.

    Sessions with the same master share a context, and so its Python workers, whose start takes seconds. A session whose
    settings a context has gets a context of its own.
    """
    named = {name.replace("_", "."): value for name, value in settings.items()}
    if not all(name.startswith("spark.sql.") for name in named):
        with session_of(local_builder(master), named) as spark:
            yield spark
        return
    before = signal.getsignal(signal.SIGINT)
    spark = new_session(master)
    for name, value in named.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        spark.catalog.clearCache()
        for kept in spark.sparkContext._jsc.getPersistentRDDs().values():
            kept.unpersist()
        signal.signal(signal.SIGINT, before)


def new_session(master: str) -> Any:
    """A session with settings of its own, which is the one that builders find."""
    from pyspark.sql import SparkSession

    first = _SHARED.get(master)
    if first is None or first.sparkContext._jsc is None:
        end_shared_context()
        first = _SHARED[master] = started(local_builder(master))
    spark = first.newSession()
    SparkSession._instantiatedSession = SparkSession._activeSession = spark
    for name in ("setDefaultSession", "setActiveSession"):
        getattr(spark._jvm.SparkSession, name)(spark._jsparkSession)
    return spark


def end_shared_context() -> None:
    """Make room for another context, of which a process has one."""
    for first in _SHARED.values():
        first.stop()
    _SHARED.clear()


def local_builder(master: str) -> Any:
    """A builder of sessions whose workers import the flinkcore that the tests import."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("flinkcore tests")
    return builder.config("spark.executorEnv.PYTHONPATH", str(Path(flinkcore.__file__).parents[1]))


def started(builder: Any) -> Any:
    """A builder's session, of which nothing is left in this process but the JVM and the session."""
    from flinkcore.spark import configure_spark

    configure_spark(builder.config("spark.ui.enabled", "false"))
    with patch.dict(os.environ, QUICK_JAVA):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    # The builder may be one object for the whole process, and would hand these settings to the next session.
    builder._options.clear()
    return spark


@contextmanager
def session_of(builder: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """A builder's session with further settings, whose context ends with the block."""
    end_shared_context()
    for name, value in settings.items():
        builder.config(name, value)
    before = signal.getsignal(signal.SIGINT)
    spark = started(builder)
    try:
        yield spark
    finally:
        spark.stop()
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
