"""The preflight of a session: what its executors have. Nothing is sent here."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Collection
from typing import Any, Final

from flinkcore.errors import ConfigurationError
from flinkcore.spark.sessions.session import is_local, short_job, workers_interpreter
from flinkcore.spark.sessions.spark_jobs import SparkJobs
from flinkcore.spark.shipping.task_errors import WAYS_OUT, task_errors_raised
from flinkcore.spark.shipping.wheel import own_build
from flinkcore.spark.shipping.worker_environment import (
    import_for_tasks,
    installed_version,
    unmet_requirement,
    version_numbers,
    worker_report,
)

LEAST_VERSIONS: Final[dict[str, tuple[int, ...]]] = {"pyarrow": (19,), "numpy": (1, 24)}
"""Requirements of flinkcore, as in its metadata."""

NUMPY_BESIDE_2: Final = (1, 26)
"""The first numpy that can unpickle what numpy 2 has pickled."""

WORKERS_LOOKED_AT: Final = 1 << 10
"""Rows of the preflight, which Spark distributes over all cores."""


def executor_reports(spark: Any, task_modules: Collection[str]) -> list[dict[str, Any]]:
    """Look at the executors of a session, whose Python workers import the modules of tasks meanwhile.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    task_modules : collection of str
        Names of the modules, which workers with the driver's build import.

    Returns
    -------
    list of dict
        Reports of `worker_environment.worker_report` from Python workers, at least one of each present executor.

    Raises
    ------
    ConfigurationError
        If an executor has another Python than the driver, or no pyarrow or numpy.
    """
    reports = _reports(spark, task_modules)
    least = least_versions()
    for report in reports:
        unmet = unmet_requirement(report, least)
        if unmet is not None:
            raise ConfigurationError(f"the Python worker {report['place']} {unmet}. {ways_out(spark)}")
    return reports


def _reports(spark: Any, task_modules: Collection[str]) -> list[dict[str, Any]]:
    from pyspark.sql.functions import udf

    reports: list[str] = []
    build = own_build()

    def report(_: int) -> str:
        if not reports:
            reports.append(worker_report())
            import_for_tasks(build, task_modules)
        return reports[0]

    # Not by Arrow, which may be missing.
    look = udf(report, "string", useArrow=False)
    rows = spark.range(WORKERS_LOOKED_AT).select(look("id"))
    described = SparkJobs(spark).described("what the executors have")
    with task_errors_raised(ways_out(spark)), described, short_job(spark):
        found = {row[0] for row in rows.collect()}
    return [json.loads(each) for each in sorted(found)]


def least_versions() -> dict[str, tuple[int, ...]]:
    """Return the versions of packages that workers need at least, by distribution."""
    beside_2 = version_numbers(installed_version("numpy")) >= (2,)
    return LEAST_VERSIONS | ({"numpy": NUMPY_BESIDE_2} if beside_2 else {})


def ways_out(spark: Any) -> str:
    """Return what to do where workers of a session lack something: on this machine they run the wrong interpreter."""
    interpreter = workers_interpreter(spark)
    if interpreter is None or not is_local(spark):
        return WAYS_OUT
    if shutil.which(interpreter) == sys.executable:
        return f"Install what is missing for {sys.executable}"
    named = "PYSPARK_PYTHON" in os.environ
    start = (
        ""
        if named
        else "Start the session with flinkcore.spark.configure_spark(SparkSession.builder), or set "
    )
    return (
        f"The Python workers of this local session run {interpreter}, and this program runs {sys.executable}. As a "
        "session starts, PYSPARK_PYTHON or spark.pyspark.python names the interpreter of its workers, or else it is "
        f"the python3 on the PATH. {start or 'Set '}PYSPARK_PYTHON to {sys.executable} before the session starts"
    )
