"""Warnings point at the line of the user's program, not at a file of flinkcore."""

import ast
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import flinkcore
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.common import Duration, Row, Types, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.connectors.file_system import FileSource
from flinkcore.datastream.formats.json import JsonReaderFormat

PACKAGE = Path(flinkcore.__file__).parent


def line_of(marker: str) -> int:
    """Return the number of the line of this file that ends with a comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith(f"# {marker}"))
    return number


@pytest.fixture
def package_module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Return what makes a module that lies in the package."""

    def make(source: str) -> ModuleType:
        module = ModuleType("flinkcore.columnar.some_module")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(source, str(PACKAGE / "columnar" / "some_module.py"), "exec"), vars(module))
        return module

    return make


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def arrivals_that_go_back(env: StreamExecutionEnvironment) -> DataStream:
    events = pa.table({"ts": range(10**12, 10**12 + 200), "arrived": [10**12 + 10**6, *[10**12] * 199]})
    stream = env.from_event_log(events, timestamp="ts", arrival="arrived")
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))
    )


@pytest.mark.filterwarnings("always")
def test_a_warning_of_a_job_over_a_log_has_the_line_that_runs_it(env: StreamExecutionEnvironment) -> None:
    stream = arrivals_that_go_back(env)
    with pytest.warns(UserWarning, match="arrivals go back") as warned:
        stream.to_arrow()  # runs the job
    assert {(each.filename, each.lineno) for each in warned} == {(__file__, line_of("runs the job"))}


@pytest.mark.filterwarnings("always")
def test_a_warning_of_a_job_in_a_thread_of_its_own_has_the_line_that_waits_for_it(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "a.json").touch()
    form = JsonReaderFormat.for_row_type(Types.ROW_NAMED(["a"], [Types.INT()]))
    source = FileSource.for_record_stream_format(form, str(tmp_path)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "files")
    stream = stream.map(lambda row: Row(*row), Types.ROW_NAMED(["a"], [Types.INT()]))
    with pytest.warns(UserWarning, match=r"a\.json is empty") as warned, stream.execute_and_collect() as rows:
        assert list(rows) == []  # takes results
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.filterwarnings("always")
def test_the_standard_library_and_generated_code_between_are_not_the_users(
    package_module: Callable[[str], ModuleType],
) -> None:
    module = package_module(
        "import functools\n"
        "from contextlib import contextmanager\n"
        "from dataclasses import dataclass\n"
        "from flinkcore._internal.python.user_warnings import warn_user\n"
        "@contextmanager\n"
        "def block():\n"
        "    yield\n"
        "    warn_user('at the end of the block', RuntimeWarning)\n"
        "@dataclass\n"
        "class Setting:\n"
        "    value: int\n"
        "    def __post_init__(self):\n"
        "        with block():\n"
        "            pass\n"
        "def call(value):\n"
        "    return functools.reduce(lambda _, each: Setting(each), [value], None)\n"
    )
    with pytest.warns(RuntimeWarning, match="at the end of the block") as warned:
        module.call(1)  # calls the package
    assert [(each.filename, each.lineno) for each in warned] == [(__file__, line_of("calls the package"))]


@pytest.mark.filterwarnings("always")
def test_a_thread_without_code_of_the_user_warns_at_the_line_of_the_main_thread(
    package_module: Callable[[str], ModuleType],
) -> None:
    module = package_module(
        "from threading import Thread\n"
        "from flinkcore._internal.python.user_warnings import warn_user\n"
        "def call():\n"
        "    thread = Thread(target=warn_user, args=('in a thread',))\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    with pytest.warns(UserWarning, match="in a thread") as warned:
        module.call()  # waits for the thread
    assert [(each.filename, each.lineno) for each in warned] == [(__file__, line_of("waits for the thread"))]


def test_a_line_warns_once_unless_a_filter_says_otherwise() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        for _ in range(2):
            warn_user("the same")
    assert len(warned) == 1


def calls_of_warn(source: str) -> list[int]:
    """Return the lines of a module that warn by themselves."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in ("warn", "warn_explicit"))
        or (isinstance(node, ast.ImportFrom) and node.module == "warnings")
    ]


def test_the_module_that_starts_the_command_is_not_the_users_program() -> None:
    code = compile("warn_user('look here')", str(PACKAGE / "__main__.py"), "exec")
    with pytest.warns(UserWarning, match="look here") as caught:
        exec(code, {"__name__": "__main__", "warn_user": warn_user})
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("source", ["import warnings\nwarnings.warn('x')", "from warnings import warn"])
def test_a_call_of_warn_is_found(source: str) -> None:
    assert calls_of_warn(source)


def test_everything_warns_through_warn_user() -> None:
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := calls_of_warn(path.read_text(encoding="utf-8")))
    }
    assert list(found) == ["_internal/python/user_warnings.py"]
