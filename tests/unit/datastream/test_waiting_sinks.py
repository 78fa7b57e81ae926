"""The message of a script that ends with sinks that no job has run."""

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import sys
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.functions import SinkFunction
env = StreamExecutionEnvironment.get_execution_environment()
stream = env.from_collection([1, 2])
"""
LOG = """
import pyarrow as pa
log = env.from_event_log(pa.table({"ts": [1, 2]}), timestamp="ts", arrival="ts")
"""


def errors_of(tmp_path: Path, program: str, *options: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(BEGIN + program)
    command = [sys.executable, *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, input="").stderr


@pytest.mark.parametrize(
    ("program", "number"),
    [
        ("stream.print()", "1 sink was"),
        ("stream.print()\nstream.map(str).print()", "2 sinks were"),
        (LOG + "log.print()", "1 sink was"),
        ("stream.print()\nenv.execute()\nstream.print()", "1 sink was"),
        ("stream.print()\nsys.exit(0)", "1 sink was"),
        ("stream.print()\ndel stream, env", "1 sink was"),
        (
            "other = StreamExecutionEnvironment()\nother.from_collection([1]).print()\nstream.print()",
            "2 sinks were",
        ),
    ],
)
def test_a_script_that_ends_with_sinks_that_were_never_run_says_so(
    tmp_path: Path, program: str, number: str
) -> None:
    errors = errors_of(tmp_path, program)
    assert errors.startswith(f"flinkcore: {number} never run")
    assert errors.endswith("written nothing. Add env.execute() at the end of the program\n")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    "program",
    [
        "stream.map(str)",
        "stream.print()\nenv.execute()",
        "stream.print()\nlist(stream.execute_and_collect())",
        "stream.print()\nenv.execute_async().get_job_execution_result().result()",
        "stream.print()\nenv.get_execution_plan()",
        "stream.print()\nenv.close()",
        LOG + "log.print()\nlog.explain()",
        LOG + "log.execute().to_arrow()",
    ],
)
def test_a_script_whose_sinks_were_run_or_described_says_nothing(tmp_path: Path, program: str) -> None:
    assert errors_of(tmp_path, program) == ""


def test_an_exception_says_enough(tmp_path: Path) -> None:
    errors = errors_of(tmp_path, "stream.print()\n1 / 0")
    assert errors.endswith("ZeroDivisionError: division by zero\n")
    assert "never run" not in errors


def test_an_interactive_session_and_a_test_say_nothing(tmp_path: Path) -> None:
    assert "never run" not in errors_of(tmp_path, "stream.print()", "-i")
    assert "never run" not in errors_of(tmp_path, "import _pytest\nstream.print()")


def test_a_program_of_the_command_says_it_once(tmp_path: Path) -> None:
    errors = errors_of(tmp_path, "stream.print()", "-m", "flinkcore", "run")
    assert errors.count("\n") == 1
    assert "nothing has run its last sinks and functions" in errors
