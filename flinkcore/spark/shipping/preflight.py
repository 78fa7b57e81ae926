"""The preflight of a session: whether its executors have what replays need."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import flinkcore
from flinkcore.errors import ConfigurationError
from flinkcore.spark.sessions.session import job_description
from flinkcore.spark.shipping.sent_files import SentFiles
from flinkcore.spark.shipping.wheel import installed_wheel
from flinkcore.spark.shipping.worker_environment import build_of, fits, installed_version, worker_report

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


def check_executors(spark: Any) -> None:
    """Check the executors of a session once, and send flinkcore if any of them lacks it.

    Executors that join later are checked by the tasks that they run (`worker_environment.provide_flinkcore`).

    Parameters
    ----------
    spark : pyspark.sql.SparkSession

    Raises
    ------
    ConfigurationError
        If an executor has another Python than the driver, no pyarrow or numpy, or no flinkcore, and no wheel fits.
    """
    sent = SentFiles.of(spark)
    if sent.is_checked:
        return
    reports = _reports(spark)
    builds = {own_build(), *(wheel.build for wheel in sent.wheels)}
    for report in reports:
        _check_versions(report)
        if report["build"] in builds or any(fits(wheel.tag, report["abi"]) for wheel in sent.wheels):
            continue
        wheel = installed_wheel()
        if not fits(wheel.tag, report["abi"]):
            found = f"a build of its own in {report['package']}" if report["package"] else "none"
            raise ConfigurationError(
                f"the Python worker {report['place']} needs flinkcore {flinkcore.__version__} and has {found}; the "
                f"package that is installed here is for {wheel.tag}. {WAYS_OUT}"
            )
        sent.add_wheel(spark, wheel)
    sent.is_checked = True


def _reports(spark: Any) -> list[dict[str, Any]]:
    """Reports of the Python workers, at least one from each executor that is there."""
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
        with job_description(spark, "flinkcore: what the executors have"):
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


@cache
def own_build() -> str:
    """Return the build of the package that this process runs."""
    return build_of(str(Path(flinkcore.__file__).parent))
