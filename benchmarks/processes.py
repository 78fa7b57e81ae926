"""The processes of a benchmark: their environment, and the CPU time and memory of driver, JVM and workers together."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _family() -> dict[Path, list[str]]:
    """This process and all below it, by their folders in /proc, with the fields of their `stat` behind the name."""
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
