"""Python programs in processes of their own, that a test interrupts as Ctrl-C does."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import flinkcore

INSTALLED = Path(flinkcore.__file__).parents[1]

RESTARTED = "import signal; signal.siginterrupt(signal.SIGINT, False)\n"
"""Waits are restarted after a signal, as libraries such as polars have it: Python sees the signal when one ends."""


class Interrupted(NamedTuple):
    """How a program ended: what it printed after its first line, its errors, and how long the end took."""

    output: str
    errors: str
    seconds: float


def interrupted(program: str, *arguments: str, first_line: str, seconds: float = 0) -> Interrupted:
    """Run a program until so long after its first line, interrupt it, and wait for its end."""
    with _started(program, arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{first_line}\n"
        time.sleep(seconds)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    return Interrupted(output, errors, time.monotonic() - began)


@contextmanager
def _started(program: str, arguments: tuple[str, ...]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", RESTARTED + textwrap.dedent(program), *arguments],
        cwd=INSTALLED,
        env=os.environ | {"PYTHONPATH": str(INSTALLED)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
