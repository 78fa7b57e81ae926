"""Programs of PyFlink as they are, run by `flinkcore run`."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent

import pytest

import flinkcore
from flinkcore.cli import main
from flinkcore.datastream import StreamExecutionEnvironment

DOUBLED = """
    import sys

    from helper import doubled
    from pyflink.common import Types, WatermarkStrategy
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.datastream.functions import MapFunction

    class Doubled(MapFunction):
        def map(self, value):
            from pyflink.common.types import Row

            return Row(doubled(value))

    if __name__ == "__main__":
        env = StreamExecutionEnvironment.get_execution_environment()
        print(sys.argv[1:], env.get_parallelism(), env.get_config().get_auto_watermark_interval())
        env.from_collection([1, 2, int(sys.argv[-1])]).map(Doubled()).print()
        env.execute("doubled")
"""
HELPER = """
    from pyflink.common import Types

    def doubled(value):
        if value == 9:
            raise ValueError("nine")
        return 2 * value
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "program.py").write_text(dedent(DOUBLED))
    (tmp_path / "helper.py").write_text(dedent(HELPER))
    finders = sys.meta_path[:]
    yield tmp_path
    sys.meta_path[:] = finders
    for name in list(sys.modules):
        if name in ("helper", "flinkcore.pyflink") or name.partition(".")[0] == "pyflink":
            del sys.modules[name]


def test_a_program_runs_as_it_is_with_its_arguments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(folder / "program.py")
    before = sys.argv, sys.path[:]
    settings = ["-p", "2", "-D", "pipeline.auto-watermark-interval=7"]
    assert main(["run", *settings, program, "--offset", "-4", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "['--offset', '-4', '3'] 2 7",
        "1> <Row(2)>",
        "2> <Row(4)>",
        "1> <Row(6)>",
    ]
    assert (sys.argv, sys.path) == before
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == -1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--master", "local[2]"], "--master"),
        (["--master=local[2]", "x"], "--master=local[2]"),
        (["-p", "4"], "-p"),
        (["x", "-p4", "--parallelism=2"], "-p4 and --parallelism=2"),
        (["-Dparallelism.default=2"], "-Dparallelism.default=2"),
        (["--clock", "system"], "--clock"),
        (["--py-files", "helper.py"], "--py-files"),
        (["--", "--master", "local[2]"], None),
        (["--input", "x", "--master-data", "-", "-x"], None),
        (["--help"], None),
    ],
    ids=str,
)
def test_options_of_the_command_that_the_program_gets_are_warned_of(
    given: list[str], named: str | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "shown.py").write_text("import sys; print(sys.argv[1:])")
    assert main(["run", str(folder / "shown.py"), *given]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{[argument for argument in given if argument != '--']}\n"
    if named is None:
        assert printed.err == ""
    else:
        assert printed.err.startswith(
            f"flinkcore: warning: the program gets {named}, and flinkcore run does not"
        )
        assert printed.err.endswith("or write -- after it if the program takes these.\n")


def test_the_time_of_jobs_is_that_of_the_machine_if_the_command_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "from pyflink.datastream import StreamExecutionEnvironment as Env"
    (folder / "program.py").write_text(f"{program}\nprint(Env.get_execution_environment().get_clock())\n")
    assert main(["run", "--clock", "system", str(folder / "program.py")]) == 0
    assert capsys.readouterr().out == "system\n"


def test_a_program_starts_without_what_other_commands_need(folder: Path) -> None:
    (folder / "program.py").write_text("import sys\nassert 'flinkcore.columnar' not in sys.modules")
    command = [sys.executable, "-m", "flinkcore", "run", str(folder / "program.py")]
    subprocess.run(
        command, check=True, env=os.environ | {"PYTHONPATH": str(Path(flinkcore.__file__).parents[1])}
    )


def test_an_error_shows_the_lines_of_the_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "program.py").rename(folder / "my_runpy.py")
    assert main(["run", str(folder / "my_runpy.py"), "9"]) == 1
    traceback = capsys.readouterr().err
    assert traceback.endswith("Doubled.map failed at the element 9 without a timestamp: ValueError: nine\n")
    files = [line.split(",")[0].strip() for line in traceback.splitlines() if line.startswith("  File")]
    helper, program = (f'File "{folder / name}"' for name in ("helper.py", "my_runpy.py"))
    assert files == [program, helper, program]


def test_a_defect_of_flinkcore_shows_its_lines_too(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flinkcore.datastream.data_stream.DataStream.print", lambda stream: 1 / 0)
    monkeypatch.setattr(
        "flinkcore.cli.program_traceback._is_of_flinkcore", lambda file: not file.startswith(str(folder))
    )
    assert main(["run", str(folder / "program.py"), "3"]) == 1
    assert str(Path(__file__)) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "status"), [("raise SystemExit(3)", 3), ("import sys; sys.exit()", None)], ids=["3", "none"]
)
def test_a_program_ends_with_its_own_status(folder: Path, program: str, status: int | None) -> None:
    (folder / "program.py").write_text(program)
    with pytest.raises(SystemExit) as end:
        main(["run", str(folder / "program.py")])
    assert end.value.code == status


@pytest.mark.parametrize(
    ("end", "is_told"),
    [
        ("", True),
        ("raise SystemExit", True),
        ("raise SystemExit(3)", False),
        ("env.execute()", False),
        ("list(numbers.execute_and_collect())", False),
        ("env.execute(); numbers.print()", True),
    ],
)
def test_a_program_whose_last_steps_nothing_runs_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], end: str, is_told: bool
) -> None:
    (folder / "program.py").write_text(
        "from pyflink.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "numbers = env.from_collection([1, 2]).map(lambda number: number)\n"
        f"{end}\n"
    )
    with nullcontext() if "Exit" not in end else pytest.raises(SystemExit):
        assert main(["run", str(folder / "program.py")]) == 0
    told = (
        "flinkcore: the program has ended, and nothing has run its last sinks and functions: end it with env."
    )
    assert capsys.readouterr().err.startswith(told) is is_told


def test_a_result_that_nothing_is_asked_of_is_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "program.py").write_text(
        "import pyarrow as pa\n"
        "from pyflink.datastream import StreamExecutionEnvironment\n"
        "log = pa.table({'ts': [1]})\n"
        "stream = StreamExecutionEnvironment.get_execution_environment().from_event_log(log, timestamp='ts')\n"
        "stream.execute()\n"
        "stream.execute().to_arrow()\n"
        "stream.execute().discard()\n"
        "assert stream.execute().report.events_read == 1\n"
        "untaken = stream.execute()\n"
    )
    assert main(["run", str(folder / "program.py")]) == 0
    gc.collect()
    told = (
        "flinkcore: nothing asked for the rows of stream.execute(), so its job did not run: call to_arrow()"
    )
    assert [record.getMessage().startswith(told) for record in caplog.records] == [True, True]


def test_a_plain_program_is_told_in_one_line_what_did_not_run(tmp_path: Path) -> None:
    program = (
        "import pyarrow as pa\n"
        "from flinkcore.datastream import StreamExecutionEnvironment\n"
        "events = StreamExecutionEnvironment().from_event_log(pa.table({'ts': [1]}), timestamp='ts')\n"
        "result = events.execute()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stderr.startswith("flinkcore: nothing asked for the rows of stream.execute(), so its job ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere.py"], "flinkcore: there is no program nowhere.py"),
        (
            ["-D", "parallelism.default", "{}"],
            "flinkcore: -D takes KEY=VALUE, such as -D parallelism.default=2, not ",
        ),
        (
            ["-D", "parallelism.default=many", "{}"],
            "flinkcore: parallelism.default must be an integer from 1 to 32768, or -1 for the default, not 'many'",
        ),
        (["-p", "0", "{}"], "flinkcore: parallelism.default must be an integer from 1"),
        (["--py-files", "nowhere", "{}"], "flinkcore: there is no Python file "),
    ],
    ids=["program", "setting", "value", "parallelism", "files"],
)
def test_what_cannot_be_run_is_said_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    program = str(folder / "program.py")
    assert main(["run", *(argument.format(program) for argument in arguments)]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(error)
    assert not printed.out


def test_an_unknown_setting_of_the_command_is_told_of_once(
    folder: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    environment = (
        "from pyflink.datastream import StreamExecutionEnvironment as E\nE.get_execution_environment()\n"
    )
    (folder / "program.py").write_text(environment + "E.get_execution_environment()\n")
    assert main(["run", "-D", "paralelism.default=2", str(folder / "program.py")]) == 0
    printed = "flinkcore: there is no setting paralelism.default, which is ignored: did you mean parallelism.default?\n"
    assert capsys.readouterr().err == printed
    assert not recwarn.list


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("import pyflink.datastream.connectors.pulsar", "dump the topic into files"),
        ("from pyflink.table import TableSchema", "tables are queried by SQL text"),
        (
            "import pyflink.nothing",
            "flinkcore does not have the module pyflink.nothing",
        ),
    ],
)
def test_what_is_not_there_is_an_error_that_says_what_to_use(
    folder: Path, capsys: pytest.CaptureFixture[str], statement: str, error: str
) -> None:
    (folder / "program.py").write_text(f"{statement}\n")
    assert main(["run", str(folder / "program.py")]) == 1
    assert error in capsys.readouterr().err


def test_names_of_tables_are_imported_from_the_modules_that_pyflink_keeps_them_in(folder: Path) -> None:
    (folder / "program.py").write_text(
        "from pyflink.table.data_view import ListView\n"
        "from pyflink.table.environment_settings import EnvironmentSettings\n"
        "from pyflink.table.explain_detail import ExplainDetail\n"
        "from pyflink.table.result_kind import ResultKind\n"
        "from pyflink.table.schema import Schema\n"
        "from pyflink.table.statement_set import StatementSet\n"
        "from pyflink.table.table import Table\n"
        "from pyflink.table.table_config import TableConfig\n"
        "from pyflink.table.table_descriptor import TableDescriptor\n"
        "from pyflink.table.table_environment import StreamTableEnvironment\n"
        "from pyflink.table.table_result import TableResult\n"
    )
    assert main(["run", str(folder / "program.py")]) == 0


def test_pyflink_that_has_been_imported_is_not_mixed_with_flinkcore(folder: Path) -> None:
    sys.modules["pyflink"] = type(sys)("pyflink")
    with pytest.raises(ImportError, match=r"Import flinkcore\.pyflink before pyflink"):
        __import__("flinkcore.pyflink")
