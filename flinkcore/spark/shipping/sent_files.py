"""Files sent to the executors of a session: wheels of flinkcore, and the user's modules and archives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import flinkcore
from flinkcore.datastream.graph.python_dependencies import PythonArchive, check_target
from flinkcore.errors import ConfigurationError, in_words
from flinkcore.spark.sessions.session import is_classic, spark_version
from flinkcore.spark.shipping.archives import archive_suffix, stored, zipped_modules
from flinkcore.spark.shipping.preflight import executor_reports, ways_out
from flinkcore.spark.shipping.task_errors import WAYS_OUT
from flinkcore.spark.shipping.wheel import Wheel, check_same_version, installed_wheel, own_build
from flinkcore.spark.shipping.worker_environment import MODULES, ShippedArchive, ShippedWheel, fits

WheelPath = str | PathLike[str]


class TaskArtifacts(NamedTuple):
    """Artifacts that a task finds on its executor.

    Attributes
    ----------
    builds : list of str
        Builds of flinkcore that the driver accepts.
    wheels : list of ShippedWheel
        Wheels of flinkcore.
    modules : list of str
        Archives of the user's modules, in the order of the path.
    archives : list of ShippedArchive
        Archives of the user's files.
    """

    builds: list[str]
    wheels: list[ShippedWheel]
    modules: list[str]
    archives: list[ShippedArchive]


@dataclass
class SentFiles:
    """Archives that a session has sent to its executors; threads that use the session at once take turns.

    Spark keeps them apart by session, and before Spark 4.0 by application.

    Attributes
    ----------
    names : set of str
        Names of everything that was sent.
    wheels : list of ShippedWheel
        Wheels of flinkcore.
    python_files : dict of pathlib.Path to str
        The newest archive of each of the user's files and folders, in the order in which they were sent.
    python_archives : dict of str to ShippedArchive
        The newest archive for each target directory.
    is_checked : bool
        Whether the preflight has looked at the executors.
    task_modules : set of str
        Names of the modules that define tasks of the session's jobs; workers import them in the preflight.
    """

    names: set[str] = field(default_factory=set)
    wheels: list[ShippedWheel] = field(default_factory=list)
    python_files: dict[Path, str] = field(default_factory=dict)
    python_archives: dict[str, ShippedArchive] = field(default_factory=dict)
    is_checked: bool = False
    task_modules: set[str] = field(default_factory=set)
    _lock: RLock = field(default_factory=RLock)

    @staticmethod
    def of(spark: Any) -> SentFiles:
        """Return what a session has sent, which is the same object each time."""
        if not is_classic(spark):
            key = spark.session_id
        elif spark_version() < (4, 0):
            key = spark.conf.get("spark.app.id")
        else:
            key = spark._jsparkSession.sessionUUID()
        return _SENT.setdefault(key, SentFiles())

    def for_tasks(self, spark: Any) -> TaskArtifacts:
        """Return what tasks of the session find, once its executors have what replays need.

        The executors are looked at before the first task, and sent flinkcore if any of them lacks it. Those that join
        later are looked at by the tasks that they run (`worker_environment.provide_flinkcore`).

        Parameters
        ----------
        spark : pyspark.sql.SparkSession

        Raises
        ------
        ConfigurationError
            If an executor has another Python than the driver, no pyarrow or numpy, or no flinkcore, and no wheel fits.
        """
        with self._lock:
            if not self.is_checked:
                self._supply(spark)
                self.is_checked = True
            wheels = list(self.wheels)
            modules = list(dict.fromkeys(reversed(self.python_files.values())))
            archives = list(self.python_archives.values())
        builds = [own_build(), *(wheel.build for wheel in wheels)]
        return TaskArtifacts(builds, wheels, modules, archives)

    def _supply(self, spark: Any) -> None:
        reports = executor_reports(spark, sorted(self.task_modules))
        builds = {own_build(), *(wheel.build for wheel in self.wheels)}
        for report in reports:
            if report["build"] in builds or any(fits(wheel.tag, report["abi"]) for wheel in self.wheels):
                continue
            wheel = installed_wheel()
            if not fits(wheel.tag, report["abi"]):
                found = f"a build of its own in {report['package']}" if report["package"] else "none"
                raise ConfigurationError(
                    f"the Python worker {report['place']} needs flinkcore {flinkcore.__version__} and has {found}; "
                    f"the package that is installed here is for {wheel.tag}. {ways_out(spark)}"
                )
            self.add_wheel(spark, wheel)

    def add_wheel(self, spark: Any, wheel: Wheel) -> None:
        """Send a wheel, once."""
        name = f"flinkcore-{wheel.build}"
        with self._lock:
            # Spark unpacks archives by their endings, and .whl is none that it knows.
            if self._send(spark, "flinkcore", f"{name}.zip", name, wheel.path.read_bytes()):
                self.wheels.append(ShippedWheel(name, wheel.build, wheel.tag))

    def add_python_file(self, spark: Any, path: Path) -> None:
        """Send a module, a folder or an archive of modules; again if it has changed since it was sent."""
        packed = zipped_modules(path)
        name = f"{MODULES}{_digest(packed)}"
        with self._lock:
            self._send(spark, str(path), f"{name}.zip", name, packed)
            self.python_files.pop(path, None)
            self.python_files[path] = name

    def add_python_archive(self, spark: Any, archive: PythonArchive) -> None:
        """Send an archive of files; again if it has changed since it was sent."""
        packed = archive.path.read_bytes()
        name = f"flinkcore-archive-{_digest(packed)}"
        with self._lock:
            check_target(archive.target_dir, self.python_archives)
            self._send(spark, str(archive.path), f"{name}{archive_suffix(archive.path)}", name, packed)
            self.python_archives[archive.target_dir] = ShippedArchive(archive.target_dir, name)

    def _send(self, spark: Any, what: str, file_name: str, name: str, packed: bytes) -> bool:
        """Let executors unpack an archive into a folder of its name, and return whether they had none."""
        if name in self.names:
            return False
        archive = stored(file_name, packed)
        try:
            if is_classic(spark) and spark_version() < (4, 0):
                spark.sparkContext.addArchive(f"{archive}#{name}")
            else:
                spark.addArtifact(f"{archive}#{name}", archive=True)
        except Exception as failure:  # of PySpark, Py4J or gRPC, or of a platform that lets nobody send files
            raise ConfigurationError(
                f"{what} cannot be sent to the executors of this session: {in_words(failure)}. {WAYS_OUT}"
            ) from failure
        self.names.add(name)
        return True


_SENT: dict[str, SentFiles] = {}


def _digest(packed: bytes) -> str:
    return sha256(packed).hexdigest()[:16]


def ship_flinkcore(spark: Any, wheel: WheelPath | Sequence[WheelPath] | None = None) -> None:
    """Send flinkcore to the executors of a session, which then use it instead of any build that they have installed.

    Call it only where executors run on another platform than the driver: the first job of a session sends the installed
    package to executors that lack it. Executors need Python of the driver's minor version, pyarrow and numpy.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or remote.
    wheel : path or sequence of path, optional
        Wheels of this version of flinkcore for the executors' platforms. By default the package that this process
        runs.

    Raises
    ------
    SourceError
        If a file is not a wheel of flinkcore.
    ConfigurationError
        If a wheel is of another version, or the session lets nobody send files.
    """
    if wheel is None:
        wheels = [installed_wheel()]
    else:
        paths = [wheel] if isinstance(wheel, str | PathLike) else wheel
        wheels = [Wheel.of(path) for path in paths]
        for each in wheels:
            check_same_version(each)
    sent = SentFiles.of(spark)
    for each in wheels:
        sent.add_wheel(spark, each)
