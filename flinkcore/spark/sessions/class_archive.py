"""Archives of Spark's classes (Java's class data sharing), with which its JVM starts in half the time."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkContext

from flinkcore._internal.io.free_room import directory_remedy
from flinkcore.errors import ConfigurationError, SourceError, in_words

JVM_OPTIONS: Final = "spark.driver.defaultJavaOptions"
"""The setting with options of the driver's JVM that leaves `spark.driver.extraJavaOptions` to the user."""

_SECONDS_TO_WRITE: Final = 300


def archive_path(java: Path) -> Path:
    """Return where the archive is for a Java and the installed Spark, whether there is one or not.

    Parameters
    ----------
    java : pathlib.Path
        The program.
    """
    runtime = java.resolve().parents[1]
    release = ""
    with suppress(OSError):
        release = (runtime / "release").read_text()
    spark = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    identity = "\n".join([str(runtime), release, os.path.realpath(spark), pyspark.__version__])
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = f"spark-{pyspark.__version__}-{sha256(identity.encode()).hexdigest()[:16]}.jsa"
    return Path(caches, "flinkcore", name)


def archive_options(java: Path) -> str | None:
    """Return the options with which a JVM uses the archive; None if there is none.

    A JVM that an archive does not fit, since jars or its own options are others, starts as without.

    Parameters
    ----------
    java : pathlib.Path
        The program.
    """
    path = archive_path(java)
    return f"{_option('SharedArchiveFile', path)} {_logged('off')}" if path.is_file() else None


@contextmanager
def archive_written(java: Path, builder: Any) -> Iterator[Any]:
    """Start a session, and write an archive of the classes that it has loaded when the block ends.

    Parameters
    ----------
    java : pathlib.Path
        The program.
    builder : pyspark.sql.SparkSession.Builder

    Yields
    ------
    pyspark.sql.SparkSession

    Raises
    ------
    ConfigurationError
        If Spark runs in this process already, or this Java writes no archive.
    SourceError
        If the directory cannot be written.
    """
    if SparkContext._gateway is not None:
        raise ConfigurationError("Spark runs in this process already: write the archive in a new process")
    if not list(java.resolve().parents[1].glob("lib/server/classes*.jsa")):
        raise ConfigurationError(
            f"{java} has no archive of its own classes (lib/server/classes.jsa), which others build on: install a "
            "JDK that has one, and set JAVA_HOME"
        )
    path = archive_path(java)
    # Only a whole archive gets the name by which sessions find it.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        options = f"{_option('ArchiveClassesAtExit', unfinished)} {_logged('error')}"
        spark = builder.config(JVM_OPTIONS, options).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
            _end_jvm()
        if not unfinished.is_file():
            raise ConfigurationError(
                f"{java} has written no archive; what it says of it stands above. It takes no folder with files "
                "(SPARK_CONF_DIR) on its class path"
            )
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise SourceError(
            f"the archive cannot be written to {path}: {in_words(error)}; give {directory_remedy(path.parent, error)} "
            "by XDG_CACHE_HOME"
        ) from error


def _end_jvm() -> None:
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    # The JVM of a driver in Python ends with its standard input, and writes the archive.
    gateway.proc.stdin.close()
    SparkContext._gateway = SparkContext._jvm = None
    try:
        gateway.proc.wait(_SECONDS_TO_WRITE)
    except subprocess.TimeoutExpired as error:
        gateway.proc.kill()
        raise OSError(f"Java has not written it within {_SECONDS_TO_WRITE} s") from error


def _logged(level: str) -> str:
    return f"-Xlog:cds={level} -Xlog:cds+dynamic={level}"


def _option(name: str, path: Path) -> str:
    return shlex.quote(f"-XX:{name}={path}")
