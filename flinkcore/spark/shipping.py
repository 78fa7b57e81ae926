"""How the tasks of a replay, and flinkcore itself, come to Spark's Python workers."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle

import flinkcore
from flinkcore.errors import ConfigurationError, UserCodeError
from flinkcore.spark.archives import stored, zipped_modules
from flinkcore.spark.job_labels import job_description
from flinkcore.spark.session import is_classic, spark_version
from flinkcore.spark.task_errors import RaisesTaskErrors
from flinkcore.spark.wheel import Wheel, check_same_version, installed_wheel
from flinkcore.spark.worker_environment import (
    MODULES,
    ShippedWheel,
    build_of,
    fits,
    installed_version,
    provide_flinkcore,
    provide_modules,
    worker_place,
    worker_report,
)

LEAST_VERSIONS: Final = {"pyarrow": (15,), "numpy": (1, 24)}
"""What flinkcore needs beside Spark, as its metadata says."""

NUMPY_BESIDE_2: Final = (1, 26)
"""The first numpy that can read what numpy 2 has pickled."""

WORKERS_LOOKED_AT: Final = 1 << 10
"""Rows of the preflight, which Spark deals out to all cores."""

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
"""What Spark tells of an interpreter that is another one, is not there, lacks PySpark, or is none."""

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
WheelPath = str | PathLike[str]


@dataclass
class SentFiles:
    """What the executors of a session have been sent, and whether they were looked at.

    Attributes
    ----------
    archives : set of str
        Names of all archives.
    wheels : list of ShippedWheel
        Of flinkcore.
    python_files : dict of pathlib.Path to str
        The archive of each of the user's files and folders as it is now, the last one that was sent at the end.
    is_checked : bool
    """

    archives: set[str] = field(default_factory=set)
    wheels: list[ShippedWheel] = field(default_factory=list)
    python_files: dict[Path, str] = field(default_factory=dict)
    is_checked: bool = False

    def add_wheel(self, spark: Any, wheel: Wheel) -> None:
        """Send a wheel, once."""
        name = f"flinkcore-{wheel.build}"
        if name not in self.archives:
            self._send(spark, name, wheel.path.read_bytes())
            self.wheels.append(ShippedWheel(name, wheel.build, wheel.tag))

    def add_python_file(self, spark: Any, path: Path) -> None:
        """Send the user's modules; if they have changed since they were sent, once more."""
        packed = zipped_modules(path)
        name = f"{MODULES}{sha256(packed).hexdigest()[:16]}"
        if name not in self.archives:
            self._send(spark, name, packed)
        self.python_files.pop(path, None)
        self.python_files[path] = name

    def _send(self, spark: Any, name: str, packed: bytes) -> None:
        """Let executors unpack an archive into a folder of its name."""
        # Spark unpacks archives by the endings of their names, and does not know that of wheels.
        archive = stored(f"{name}.zip", packed)
        if is_classic(spark) and spark_version() < (4, 0):
            spark.sparkContext.addArchive(f"{archive}#{name}")
        else:
            spark.addArtifact(f"{archive}#{name}", archive=True)
        self.archives.add(name)


_SENT: dict[str, SentFiles] = {}
"""By what Spark keeps apart: sessions, on Spark 3.5 applications."""


def _sent_to(spark: Any) -> SentFiles:
    if not is_classic(spark):
        key = spark.session_id
    elif spark_version() < (4, 0):
        key = spark.sparkContext.applicationId
    else:
        key = spark._jsparkSession.sessionUUID()
    return _SENT.setdefault(key, SentFiles())


def ship_flinkcore(spark: Any, wheel: WheelPath | Sequence[WheelPath] | None = None) -> None:
    """Send flinkcore to the executors of a session, which take it instead of another build that they may have.

    There is no need to call it where the installed package suits the executors: the first job of a session looks at
    them, and sends it if they lack it. Executors need Python of the driver's minor version, pyarrow and numpy.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or remote.
    wheel : path or sequence of path, optional
        Wheels of this version of flinkcore for the executors' platforms, where these are not the driver's. By default
        the package that this process runs.

    Raises
    ------
    SourceError
        If a file is no wheel of flinkcore.
    ConfigurationError
        If a wheel is of another version.
    """
    if wheel is None:
        wheels = [installed_wheel()]
    else:
        paths = [wheel] if isinstance(wheel, str | PathLike) else wheel
        wheels = [Wheel.of(path) for path in paths]
        for each in wheels:
            check_same_version(each)
    sent = _sent_to(spark)
    for each in wheels:
        sent.add_wheel(spark, each)


def ship_python_file(spark: Any, path: Path) -> None:
    """Send modules to the executors of a session, where the tasks of its later jobs can import them.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or remote.
    path : pathlib.Path
        A module, a folder or an archive of modules.
    """
    _sent_to(spark).add_python_file(spark, path)


@dataclass(frozen=True)
class ShippedTask:
    """A task that is unpickled where it runs.

    Attributes
    ----------
    pickled : bytes
    """

    pickled: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the task gives.

        Raises
        ------
        UserCodeError
            If its functions come from a module that this worker does not have.
        """
        yield from unpickled(self.pickled)(batches)


def unpickled(pickled: bytes) -> Any:
    """Return, on a worker, what the driver has pickled for it.

    Raises
    ------
    UserCodeError
        If functions in it come from a module that this worker does not have.
    """
    try:
        return pickle.loads(pickled)
    except ModuleNotFoundError as failure:
        module = (failure.name or "").partition(".")[0]
        raise UserCodeError(
            f"functions of this job need the module {module!r}, which the Python worker {worker_place()} does not "
            f"have: call env.add_python_file with the path of {module}.py, or of a folder or wheel that has it, or "
            "install it on the executors"
        ) from failure


def portable(spark: Any, task: BatchFunction) -> BatchFunction:
    """Wrap a task so that a worker finds flinkcore before it unpickles the task.

    The first task of a session is preceded by a look at its executors; see `check_executors`.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    task
        Picklable; takes and gives batches.

    Raises
    ------
    UserCodeError
        If it cannot be pickled, because of what the user's functions in it hold.
    ConfigurationError
        If executors lack what replays need.
    """
    try:
        shipped = ShippedTask(cloudpickle.dumps(task))
    except Exception as failure:
        raise UserCodeError(
            f"the job cannot be sent to Spark's workers: {type(failure).__name__}: {failure}. Let functions and "
            "generators make what cannot be pickled (connections, locks, the Spark session) in open(), or when they "
            "are made on the worker"
        ) from failure
    check_executors(spark)
    sent = _sent_to(spark)
    wheels = list(sent.wheels)
    modules = list(dict.fromkeys(reversed(sent.python_files.values())))
    builds = [_own_build(), *(wheel.build for wheel in wheels)]
    pickled = pickle.dumps(RaisesTaskErrors(shipped))

    # A nested function travels by value: what is of flinkcore in it must, too.
    def run(batches: Any) -> Any:
        provide_flinkcore(builds, wheels)
        provide_modules(modules)
        yield from pickle.loads(pickled)(batches)

    return run


def check_executors(spark: Any) -> None:
    """Look at the executors of a session once, and send flinkcore to those that lack it.

    Executors that join later are looked at by the tasks that they run.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession

    Raises
    ------
    ConfigurationError
        If an executor has another Python than the driver, no pyarrow or numpy, or no flinkcore, and no wheel fits.
    """
    sent = _sent_to(spark)
    if sent.is_checked:
        return
    reports = _reports(spark)
    builds = {_own_build(), *(wheel.build for wheel in sent.wheels)}
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
    """What the Python workers have, one or more of each executor that is there."""
    from pyspark.sql.functions import udf

    reports: list[str] = []

    def report(_: int) -> str:
        if not reports:
            reports.append(worker_report())
        return reports[0]

    # Not over Arrow, which may be what is missing.
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
    """Which executor cannot run a function for want of an interpreter, and why; None: that is not what Spark tells."""
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
def _own_build() -> str:
    return build_of(str(Path(flinkcore.__file__).parent))
