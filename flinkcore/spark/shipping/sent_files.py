"""What the executors of a session have been sent: wheels of flinkcore and modules of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from flinkcore.spark.sessions.session import is_classic, spark_version
from flinkcore.spark.shipping.archives import stored, zipped_modules
from flinkcore.spark.shipping.wheel import Wheel, check_same_version, installed_wheel
from flinkcore.spark.shipping.worker_environment import MODULES, ShippedWheel

WheelPath = str | PathLike[str]


@dataclass
class SentFiles:
    """Archives that a session has sent to its executors.

    Spark keeps them apart by session, and before Spark 4.0 by application.

    Attributes
    ----------
    archives : set of str
        Names of all archives.
    wheels : list of ShippedWheel
        Of flinkcore.
    python_files : dict of pathlib.Path to str
        The newest archive of each of the user's files and folders, in the order in which they were sent.
    is_checked : bool
        Whether the preflight has looked at the executors.
    """

    archives: set[str] = field(default_factory=set)
    wheels: list[ShippedWheel] = field(default_factory=list)
    python_files: dict[Path, str] = field(default_factory=dict)
    is_checked: bool = False

    @staticmethod
    def of(spark: Any) -> SentFiles:
        """Return what a session has sent, which is the same object each time."""
        if not is_classic(spark):
            key = spark.session_id
        elif spark_version() < (4, 0):
            key = spark.sparkContext.applicationId
        else:
            key = spark._jsparkSession.sessionUUID()
        return _SENT.setdefault(key, SentFiles())

    def add_wheel(self, spark: Any, wheel: Wheel) -> None:
        """Send a wheel, once."""
        name = f"flinkcore-{wheel.build}"
        if name not in self.archives:
            self._send(spark, name, wheel.path.read_bytes())
            self.wheels.append(ShippedWheel(name, wheel.build, wheel.tag))

    def add_python_file(self, spark: Any, path: Path) -> None:
        """Send a module, a folder or an archive of modules; again if it has changed since it was sent."""
        packed = zipped_modules(path)
        name = f"{MODULES}{sha256(packed).hexdigest()[:16]}"
        if name not in self.archives:
            self._send(spark, name, packed)
        self.python_files.pop(path, None)
        self.python_files[path] = name

    def _send(self, spark: Any, name: str, packed: bytes) -> None:
        """Let executors unpack an archive into a folder of its name."""
        # Spark unpacks archives by their endings, and .whl is none that it knows.
        archive = stored(f"{name}.zip", packed)
        if is_classic(spark) and spark_version() < (4, 0):
            spark.sparkContext.addArchive(f"{archive}#{name}")
        else:
            spark.addArtifact(f"{archive}#{name}", archive=True)
        self.archives.add(name)


_SENT: dict[str, SentFiles] = {}


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
        If a wheel is of another version.
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
