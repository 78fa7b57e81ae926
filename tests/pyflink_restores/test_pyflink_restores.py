"""A PyFlink program goes live: `flinkcore run` replays its first part, and real PyFlink continues from the savepoint.

Needs a Python with apache-flink, and Java: FLINKCORE_PYFLINK names the interpreter; see .ci/with_pyflink.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PYTHON = os.environ.get("FLINKCORE_PYFLINK", "")
PROGRAM = Path(__file__).parent / "clicks.py"
MODES = ["process", "thread"]
LEAST_RESULTS = 100

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="FLINKCORE_PYFLINK does not name a Python that has apache-flink: see .ci/with_pyflink"
)


def lines_of(output: str) -> list[str]:
    """Return the results that `print` has shown, without the number of the subtask."""
    return sorted(re.sub(r"^\d+> ", "", line) for line in output.splitlines())


def in_pyflink(mode: str, part: str, parallelism: int = 1, **settings: str) -> list[str]:
    packages = subprocess.run(
        [PYTHON, "-c", "import site; print(site.getsitepackages()[0])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    given = {
        "parallelism.default": str(parallelism),
        "rest.port": "0",
        "python.executable": PYTHON,
        **settings,
    }
    environment = {
        **os.environ,
        "PYTHONPATH": packages,  # in thread mode Python runs within Java
        "SETTINGS": " ".join(f"{name}={value}" for name, value in given.items()),
    }
    done = subprocess.run(
        [PYTHON, str(PROGRAM), mode, part], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return lines_of(done.stdout)


@cache
def whole(mode: str) -> list[str]:
    return in_pyflink(mode, "all")


@pytest.mark.parametrize("master", [None, "local[2]"], ids=["embedded", "spark"])
@pytest.mark.parametrize(("backend", "parallelism"), [("hashmap", 1), ("rocksdb", 2)])
@pytest.mark.parametrize("mode", MODES)
def test_pyflink_goes_on_from_the_savepoint_of_a_replay(
    mode: str, backend: str, parallelism: int, master: str | None, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "flinkcore",
        "run",
        "-p",
        "2",
        "--stop-with-savepoint",
        str(tmp_path / "live"),
    ]
    command += ["--master", master] if master else []
    replayed = subprocess.run(
        [*command, str(PROGRAM), mode, "first"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    settings = {
        "execution.state-recovery.path": (tmp_path / "live").as_uri(),
        "state.backend.type": backend,
    }
    rest = in_pyflink(mode, "rest", parallelism, **settings)
    assert len(rest) > LEAST_RESULTS
    assert sorted([*lines_of(replayed), *rest]) == whole(mode)
