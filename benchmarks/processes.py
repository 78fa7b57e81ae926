"""The processes of a benchmark: how they start, and CPU time and memory of driver, JVM and workers together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.cached_log import CACHE

ROOT = Path(__file__).parents[1]
# The repository comes last, so that an installed flinkcore is measured rather than the source tree.
START = """\
import runpy, sys
sys.path.append(sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""

TICKS = os.sysconf("SC_CLK_TCK")


def program(module: str, *arguments: object) -> list[str]:
    """The command that runs a module of the benchmarks; its working directory must not be the repository."""
    return [sys.executable, "-c", START, str(ROOT), module, *map(str, arguments)]


def found_by(module: str, *arguments: object) -> Any:
    """Return the last line, in JSON, that a module of the benchmarks prints in a process of its own."""
    CACHE.mkdir(exist_ok=True)
    command = program(module, *arguments)
    done = subprocess.run(
        command, cwd=CACHE, env=users_environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _family() -> dict[Path, list[str]]:
    """This process and all below it, by their folders in /proc, with the fields of their `stat` after the name."""
    stats, parents = {}, {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                stats[process] = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[process] = Path("/proc", stats[process][1])
    family = {Path("/proc", str(os.getpid()))}
    while below := {process for process, parent in parents.items() if parent in family} - family:
        family |= below
    return {process: stats[process] for process in family}


def users_environment() -> dict[str, str]:
    """The environment of a process as users start it: Python keeps the modules that it compiles."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds() -> float:
    """CPU time of this process and of all below it, the ended ones too."""
    return sum(sum(map(int, fields[11:15])) for fields in _family().values()) / TICKS


def peak_bytes_of_workers() -> int:
    """The most memory that a Python worker of Spark below this process has had."""
    peaks = []
    for process in _family():
        try:
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
                peaks.append(int(status["VmHWM"].split()[0]) * 1024)
        except OSError:  # it has just ended
            continue
    return max(peaks)
