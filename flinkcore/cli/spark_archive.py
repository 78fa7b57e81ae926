"""The command `flinkcore spark-archive`, after which Spark starts in half the time on this machine."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from flinkcore.cli.spark_environment import spark_library
from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.window import TumblingEventTimeWindows

_EVENTS: Final = 10_000


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    archive = commands.add_parser(
        "spark-archive",
        help="let Spark start faster here: keep its classes as its JVM loads them (170 MB of the cache directory)",
    )
    archive.set_defaults(call=write_archive)


def write_archive(arguments: argparse.Namespace) -> None:
    """Run `flinkcore spark-archive`: run small jobs in a session, and archive the classes that they load.

    Raises
    ------
    ConfigurationError
        If Spark is not installed, or its Java writes no archive.
    SourceError
        If the cache directory cannot be written.
    """
    library = spark_library("run this where Spark is used")
    from flinkcore.spark.sessions.class_archive import archive_path, archive_written

    java = library.ensure_java()
    builder = library.configure_spark().master("local[2]").appName("flinkcore spark-archive")
    started = time.perf_counter()
    with (
        archive_written(java, builder) as spark,
        tempfile.TemporaryDirectory(prefix="flinkcore-archive-") as folder,
    ):
        _run_jobs(library.SparkExecutionEnvironment(spark), Path(folder))
    path = archive_path(java)
    print(
        f"{path}: {path.stat().st_size / 1e6:.0f} MB, written in {time.perf_counter() - started:.0f} s. "
        "configure_spark uses it for this Spark and Java; delete it, and sessions start without"
    )


def _run_jobs(environment: StreamExecutionEnvironment, folder: Path) -> None:
    """Run a job from files to files, one to a DataFrame, and one over single elements."""
    log = pa.table({"key": [number % 7 for number in range(_EVENTS)], "ts": range(_EVENTS)})
    pq.write_table(log, folder / "log.parquet")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))

    def windows() -> Any:
        stream = environment.from_event_log(folder / "log.parquet", timestamp="ts")
        keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("key")
        return keyed.window(TumblingEventTimeWindows.of(Duration.of_millis(100))).aggregate(n=count())

    windows().write_parquet(folder / "results")
    windows().execute().to_dataframe().collect()
    numbers = environment.from_collection(list(range(10))).map(lambda number: number + 1)
    list(numbers.execute_and_collect())
