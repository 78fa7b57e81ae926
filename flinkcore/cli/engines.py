"""The engine of a command: this process, or Spark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from flinkcore.cli.spark_environment import spark_environment
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.lake_tables import LakeTable
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore import JobResult

SPARK_FROM_GIB: Final = 8
"""Size of a log from which ``--engine auto`` runs on Spark: this process holds all open windows in memory."""


def add_engine(
    parser: argparse.ArgumentParser,
    of_auto: str = f"spark if the log has {SPARK_FROM_GIB} GiB or more and pyspark is installed",
) -> None:
    """Add where to run.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    of_auto : str
        When ``auto`` runs on Spark, besides where a master is given, for the help.
    """
    parser.add_argument(
        "--engine",
        choices=["auto", "embedded", "spark"],
        default="auto",
        help=f"where to run; auto: spark if --master is given, {of_auto}, else embedded, in this process",
    )
    parser.add_argument("--master", help="Spark master; local[*] if not given")
    parser.add_argument(
        "--parallelism", type=int, help="tasks (spark) or threads (embedded) of the keyed part"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress and no choice of the engine")


def environment_of(
    arguments: argparse.Namespace, job: Callable[[StreamExecutionEnvironment], JobResult] | None = None
) -> StreamExecutionEnvironment:
    """Return where to run, and print which engine ``auto`` has chosen, and why.

    Parameters
    ----------
    arguments : argparse.Namespace
        With the options of :func:`add_engine`.
    job : callable, optional
        Plans the job, which runs nothing: an invalid one is reported before Spark starts. Without it, ``auto`` runs on
        Spark wherever pyspark is installed; otherwise the size of the log in `arguments` decides.

    Raises
    ------
    ConfigurationError
        If Spark is not installed, or a master is given to the other engine.
    """
    if arguments.engine == "embedded" and arguments.master is not None:
        raise ConfigurationError(
            f"--master {arguments.master} is for Spark. Leave it out, or choose --engine spark"
        )
    is_spark, reason = _choice(arguments, has_log=job is not None)
    if is_spark and job is not None:
        job(StreamExecutionEnvironment()).discard()
    if reason and not arguments.quiet:
        chosen = "on Spark" if is_spark else "in this process"
        print(f"flinkcore: the job runs {chosen}: {reason}", file=sys.stderr, flush=True)
    if is_spark:
        environment = spark_environment(arguments.master or "local[*]", "choose --engine embedded")
    else:
        environment = StreamExecutionEnvironment.get_execution_environment()
    if arguments.parallelism is not None:
        environment.set_parallelism(arguments.parallelism)
    return environment


def _choice(arguments: argparse.Namespace, has_log: bool) -> tuple[bool, str]:
    """Return whether to run on Spark, and why, or an empty text where the user has chosen."""
    if arguments.engine != "auto":
        return arguments.engine == "spark", ""
    if arguments.master is not None:
        return True, f"--master is {arguments.master}"
    if find_spec("pyspark") is None:
        return False, "pyspark is not installed"
    if not has_log:
        return True, "pyspark is installed"
    log_bytes = _log_bytes(arguments)
    return (
        log_bytes >= SPARK_FROM_GIB << 30,
        f"the log has {log_bytes:,} bytes, and Spark is chosen from {SPARK_FROM_GIB} GiB on",
    )


def _log_bytes(arguments: argparse.Namespace) -> int:
    """Return the size of the log by the listing of its files alone: opening them is left to the job."""
    from flinkcore.log.tables.lake_files import log_of_paths, table_files

    log = arguments.input
    if isinstance(log, list):
        log = log_of_paths(log, arguments.format)
    return (table_files(log) if isinstance(log, LakeTable) else log).size_bytes
