"""What needs Spark says so where it is not installed, with the line to write."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

WITHOUT = "import sys; sys.modules['pyspark'] = None\n"
COMMAND = f"{WITHOUT}from flinkcore.cli import main\nsys.exit(main(sys.argv[1:]))"
LOG = ("log.parquet", "--timestamp", "ts")
COUNTS = ("--key", "user", "--window", "tumbling:1s", "--aggregate", "n=count()")


def output(code: str, *arguments: str, folder: Path) -> tuple[int, list[str]]:
    """Return the status of a program and the lines of its errors."""
    pq.write_table(pa.table({"ts": [1, 2], "user": ["a", "b"]}), folder / "log.parquet")
    (folder / "program.py").write_text(
        "from pyflink.datastream import StreamExecutionEnvironment\n"
        "StreamExecutionEnvironment.get_execution_environment()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("command", "otherwise"),
    [
        (("demo", "--engine", "spark"), "choose --engine embedded"),
        (("replay", *LOG, *COUNTS, "--master", "local[2]"), "choose --engine embedded"),
        (
            ("why", *LOG, "--key", "user=a", "--window", "tumbling:1s", "--engine", "spark"),
            "choose --engine embedded",
        ),
        (("lateness", *LOG, "--engine", "spark"), "choose --engine embedded"),
    ],
    ids=lambda part: part[0] if isinstance(part, tuple) else "",
)
def test_a_command_names_what_to_install_and_what_to_do_without(
    command: tuple[str, ...], otherwise: str, tmp_path: Path
) -> None:
    status, lines = output(COMMAND, *command, folder=tmp_path)
    assert lines[-1:] == [
        "flinkcore: flinkcore runs on Spark with pyspark, which is not installed. "
        f"Install it: pip install 'flinkcore[spark]', or {otherwise}"
    ]
    assert status != 0


@pytest.mark.parametrize(
    "command",
    [
        ("demo",),
        ("replay", *LOG, *COUNTS),
        ("why", *LOG, "--key", "user=a", "--window", "tumbling:1s"),
        ("lateness", *LOG),
    ],
    ids=lambda command: str(command[0]),
)
def test_a_command_runs_in_its_own_process_and_says_why(command: tuple[str, ...], tmp_path: Path) -> None:
    status, lines = output(COMMAND, *command, folder=tmp_path)
    assert status == 0
    assert lines[0] == "flinkcore: the job runs in this process: pyspark is not installed"


def test_a_program_on_spark_names_what_to_install(tmp_path: Path) -> None:
    status, lines = output(COMMAND, "run", "--master", "local[2]", "program.py", folder=tmp_path)
    assert status == 1
    assert lines[-1].endswith("pip install 'flinkcore[spark]', or leave --master out")


@pytest.mark.parametrize(
    "line",
    [
        "import flinkcore.spark",
        "from flinkcore.spark import configure_spark",
        "import flinkcore.spark.sessions.session",
    ],
)
def test_an_import_names_what_to_install(line: str, tmp_path: Path) -> None:
    status, lines = output(f"{WITHOUT}{line}", folder=tmp_path)
    assert status == 1
    assert lines[-1] == (
        "ModuleNotFoundError: flinkcore runs on Spark with pyspark, which is not installed. "
        "Install it: pip install 'flinkcore[spark]'"
    )
