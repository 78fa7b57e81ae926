"""Programs that fork at every step of a job, kill the fork there, and check what it has left."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import flinkcore

PATHS = f"{Path(__file__).parents[1]}:{Path(flinkcore.__file__).parents[1]}"
"""Directories of the tests' own modules and of the package, as PYTHONPATH has them."""


def steps_of_killed(program: str, directory: Path) -> int:
    """Run a program, whose argument is a directory of its own, and return the number of steps that it prints.

    Raises
    ------
    AssertionError
        If the program fails, with its errors.
    """
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), str(directory)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": PATHS, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout)
