"""A small program from its start to its end: with imports of flinkcore, and unedited by `flinkcore run`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import users_environment

WORD_COUNT = """\
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
lines = env.from_collection(["to be or", "not to be"], Types.STRING())
words = lines.flat_map(lambda line: line.split()).map(lambda word: (word, 1))
words.key_by(lambda pair: pair[0]).reduce(lambda one, other: (one[0], one[1] + other[1])).print()
env.execute()
"""


@pytest.mark.benchmark(group="a small program")
@pytest.mark.parametrize("started", ["python alone", "flinkcore", "flinkcore run"])
def test_start(benchmark: Any, tmp_path: Path, started: str) -> None:
    program = tmp_path / "word_count.py"
    program.write_text("" if started == "python alone" else WORD_COUNT)
    command = [sys.executable, str(program)]
    if started == "flinkcore":
        program.write_text(WORD_COUNT.replace("pyflink", "flinkcore"))
    if started == "flinkcore run":
        command = [str(Path(sys.executable).with_name("flinkcore")), "run", str(program)]

    def run() -> None:
        done = subprocess.run(command, env=users_environment(), stdout=subprocess.PIPE, text=True, check=True)
        assert started == "python alone" or "('to', 2)" in done.stdout

    benchmark.pedantic(run, rounds=20, warmup_rounds=2)
