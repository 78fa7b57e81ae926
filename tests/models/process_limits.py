"""How long a process may work, which a machine with other work to do does not make shorter."""

import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

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
