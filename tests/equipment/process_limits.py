"""How long a process may work, which a machine with other work to do does not make shorter, and its memory."""

import os
import resource
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

WAITS = 20
"""A process that does not work, but waits for something, may do so many times as long."""


def answers_within(process: subprocess.Popen[Any], cpu_seconds: float) -> bool:
    """Wait for output, or the end, of a process; False if it has worked for so long without either."""
    used, began = cpu_seconds_of(process.pid), time.monotonic()
    while not select.select([process.stdout], [], [], 0.5)[0]:
        worked, waited = cpu_seconds_of(process.pid) - used, time.monotonic() - began
        if worked > cpu_seconds or waited > WAITS * cpu_seconds:
            return False
    return True


def cpu_seconds_of(pid: int) -> float:
    """Time that a process has had a processor for, in user and in system mode."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def limit_memory() -> str:
    """Source of a function ``limit_memory(more_bytes)`` by which a process limits its address space.

    A test that asks for it is skipped where the system has no such limit, or AddressSanitizer needs all addresses.
    """
    if sys.platform != "linux":
        pytest.skip("limits the addresses of a process, as only Linux does")
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("AddressSanitizer needs unlimited memory")
    return _LIMIT_MEMORY


_LIMIT_MEMORY = """
import resource

def limit_memory(more_bytes):
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more_bytes, resource.RLIM_INFINITY))
"""


def peak_memory_bytes() -> int:
    """The most memory that this process has had at any time."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
