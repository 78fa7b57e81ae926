"""Runs jobs of PyFlink in an environment of its own: its pinned pandas and pyarrow are older than flinkcore's.

The environment is that of the Python that `FLINKCORE_BENCH_PYFLINK` names, or benchmarks/.cache/pyflink. To make it
(a gigabyte from PyPI; Python 3.10 to 3.12, Java 11 or later):

    python3.11 -m venv benchmarks/.cache/pyflink
    benchmarks/.cache/pyflink/bin/pip install apache-flink==2.3.0
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from benchmarks.cached_log import CACHE
from benchmarks.peers.flink import FlinkUnavailable, jdk_tool

VERSION = "2.3.0"
JOBS = Path(__file__).with_name("pyflink_jobs.py")
DEFAULT = CACHE / "pyflink" / "bin" / "python"


class PyFlinkUnavailable(Exception):
    """Error for a missing environment with PyFlink, or missing Java; the text says which."""


class Run(NamedTuple):
    """One run of a job: its net run time, and CPU time of the client and its JVM; the start of Python is in both."""

    events: int
    seconds: float
    wall_seconds: float
    cpu_seconds: float


class Pair(NamedTuple):
    """A run with a tenth of the events, which warms a JVM, and one with all of them."""

    tenth: Run
    whole: Run

    @property
    def seconds_per_event(self) -> float:
        """Cost of each event beyond the start of a job, which takes seconds: the slope between the two runs."""
        return (self.whole.seconds - self.tenth.seconds) / (self.whole.events - self.tenth.events)

    @property
    def cpu_seconds_per_event(self) -> float:
        return (self.whole.cpu_seconds - self.tenth.cpu_seconds) / (self.whole.events - self.tenth.events)


def python() -> str:
    """Path of the Python of an environment that has PyFlink."""
    named = os.environ.get("FLINKCORE_BENCH_PYFLINK")
    path = Path(named) if named else DEFAULT
    if not path.exists():
        raise PyFlinkUnavailable(
            f"no PyFlink: {path} is not there. Make an environment with `python3.11 -m venv "
            f"{DEFAULT.parents[1]} && {DEFAULT.parent}/pip install apache-flink=={VERSION}`, or let "
            "FLINKCORE_BENCH_PYFLINK name the Python of one"
        )
    try:
        jdk_tool("java")
    except FlinkUnavailable as error:
        raise PyFlinkUnavailable(str(error)) from error
    return str(path)


def run(job: str, mode: str, events: int, keys: int) -> Pair:
    """Run a job of pyflink_jobs.py in PyFlink's `thread` or `process` mode."""
    return pair_of([python(), "-I", str(JOBS), job, mode, str(events), str(keys)])


def pair_of(program: list[str]) -> Pair:
    """Run a program whose output is that of pyflink_jobs.py."""
    CACHE.mkdir(exist_ok=True)
    done = subprocess.run(program, cwd=CACHE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(program)} failed: {done.stderr[-2000:]}")
    return Pair(*(Run(**each) for each in json.loads(done.stdout.splitlines()[-1])))
