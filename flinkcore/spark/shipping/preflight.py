"""The preflight of a session: what its executors have. Nothing is sent here."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from flinkcore.errors import ConfigurationError
from flinkcore.spark.sessions.session import job_description, short_job
from flinkcore.spark.shipping.worker_environment import installed_version, worker_report

LEAST_VERSIONS: Final = {"pyarrow": (15,), "numpy": (1, 24)}
"""Requirements of flinkcore, as in its metadata."""

NUMPY_BESIDE_2: Final = (1, 26)
"""The first numpy that can unpickle what numpy 2 has pickled."""

WORKERS_LOOKED_AT: Final = 1 << 10
"""Rows of the preflight, which Spark distributes over all cores."""

WAYS_OUT: Final = (
    "Give the executors what they lack: by an image, by an environment packed with venv-pack or conda-pack "
    "(spark.archives and spark.pyspark.python), or, if only flinkcore is missing, by a wheel for their platform: "
    "flinkcore.spark.ship_flinkcore(spark, wheel=...)"
)

_REFUSED_INTERPRETER: Final = re.compile(
    r"(?<=\[PYTHON_VERSION_MISMATCH\] )[^\n]*"
    r"|Cannot run program [^\n]*"
    r"|No module named '?pyspark\b[^\n)]*"
    r"|EOFException occurred while reading the port number [^\n]*"
)
"""Spark's messages about an interpreter of another version, a missing one, one without PySpark, or no interpreter."""


def executor_reports(spark: Any) -> list[dict[str, Any]]:
    """Look at the executors of a session.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession

    Returns
    -------
    list of dict
        What `worker_environment.worker_report` tells of Python workers, at least one from each executor that is there.

    Raises
    ------
    ConfigurationError
        If an executor has another Python than the driver, or no pyarrow or numpy.
    """
    reports = _reports(spark)
    for report in reports:
        _check_versions(report)
    return reports


def _reports(spark: Any) -> list[dict[str, Any]]:
    from pyspark.sql.functions import udf

    reports: list[str] = []

    def report(_: int) -> str:
        if not reports:
            reports.append(worker_report())
        return reports[0]

    # Not by Arrow, which may be missing.
    look = udf(report, "string", useArrow=False)
    rows = spark.range(WORKERS_LOOKED_AT).select(look("id"))
    try:
        with job_description(spark, "flinkcore: what the executors have"), short_job(spark):
            found = {row[0] for row in rows.collect()}
    except Exception as failure:  # of PySpark, or of Py4J
        refused = _refused_interpreter(str(failure))
        if refused is None:
            raise
        raise ConfigurationError(
            f"{refused} Driver and executors need one minor version of Python, and PySpark: set PYSPARK_PYTHON or "
            f"spark.pyspark.python to such an interpreter on the executors. {WAYS_OUT}"
        ) from failure
    return [json.loads(each) for each in sorted(found)]


def _refused_interpreter(account: str) -> str | None:
    """Which executor has no interpreter that can run a function, and why; None if Spark failed otherwise."""
    refusal = _REFUSED_INTERPRETER.search(account)
    if refusal is None:
        return None
    place = re.search(r"\((\S+) executor (\S+)\)", account)
    executor = f"executor {place[2]} at {place[1]}" if place else "an executor"
    return f"{executor} cannot run this driver's functions: {refusal[0].rstrip('.')}."


def _check_versions(report: dict[str, Any]) -> None:
    for name, least in LEAST_VERSIONS.items():
        found = report[name]
        if name == "numpy" and _numbers(installed_version("numpy")) >= (2,):
            least = NUMPY_BESIDE_2
        if found is None or _numbers(found) < least:
            needed = f"{name} {'.'.join(map(str, least))} or later"
            raise ConfigurationError(
                f"the Python worker {report['place']} needs {needed} and has {found or 'none'}. {WAYS_OUT}"
            )


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version or "")[:2]))
