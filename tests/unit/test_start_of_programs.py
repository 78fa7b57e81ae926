"""What a small program loads: libraries of columns, and features that it does not use, would take most of its start."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from flinkcore import common, datastream
from flinkcore.datastream import connectors, window

PROGRAM = """
import sys
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["to be", "or not to be"], Types.STRING()).flat_map(str.split).map(lambda word: (word, 1))
counts = words.key_by(lambda pair: pair[0]).reduce(lambda one, other: (one[0], one[1] + other[1]))
print(dict(counts.execute_and_collect()))
print(*sorted(sys.modules))
"""

OF_OTHERS = {
    *("numpy", "pandas", "pyarrow", "pyspark"),
    *(
        "asyncio",
        "ctypes",
        "fractions",
        "html",
        "importlib.abc",
        "pathlib",
        "subprocess",
        "tempfile",
    ),
    *("urllib", "zipfile"),
}
"""Libraries that a small program does without."""

OF_FEATURES = {
    "flinkcore.cli.replay",
    "flinkcore.common.restart_strategy",
    "flinkcore.datastream.async_data_stream",
    "flinkcore.datastream.graph.columnar_windows",
    "flinkcore.datastream.connected_streams",
    "flinkcore.datastream.connectors.file_system",
    "flinkcore.datastream.connectors.source_reader_base",
    "flinkcore.datastream.formats",
    "flinkcore.datastream.interval_joins",
    "flinkcore.datastream.logs",
    "flinkcore.datastream.graph.lake_tables",
    "flinkcore.datastream.slot_sharing_group",
    "flinkcore.datastream.window.triggers",
    "flinkcore.datastream.windowed_streams",
    "flinkcore.columnar.plans",
    "flinkcore.checkpoint",
    "flinkcore.operators.interval_join_operator",
    "flinkcore.elements.sources",
    "flinkcore.operators.windowing",
    "flinkcore.spark",
    "flinkcore.table",
}
"""What this program has no use for."""


def outputs(*command: str) -> list[str]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "command",
    [["-m", "flinkcore", "run"], ["-c", "import sys, flinkcore.pyflink; exec(open(sys.argv[1]).read())"]],
    ids=["flinkcore run", "python"],
)
def test_a_small_program_loads_only_what_it_uses(command: list[str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (of_python,) = outputs("-c", "import sys, uuid; print(*sys.modules)")
    counts, loaded = outputs(*command, str(program))
    assert counts == "{'to': 2, 'be': 2, 'or': 1, 'not': 1}"
    assert (OF_OTHERS | OF_FEATURES) & (set(loaded.split()) - set(of_python.split())) == set()


def test_windows_of_fixed_lengths_load_neither_numpy_nor_time_zones() -> None:
    code = "import sys; from flinkcore.datastream.window import TumblingEventTimeWindows; print(*sys.modules)"
    (loaded,) = outputs("-c", code)
    assert {"numpy", "zoneinfo", "flinkcore.datastream.window.local_time"} & set(loaded.split()) == set()


@pytest.mark.parametrize(
    "package", [common, connectors, datastream, window], ids=lambda package: package.__name__
)
def test_names_that_are_loaded_when_they_are_asked_for_are_there(package: ModuleType) -> None:
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert [name for name in package._MODULES if getattr(package, name).__name__ != name] == []


def test_they_are_listed_before_they_are_loaded() -> None:
    code = "import sys; from importlib import import_module as load; modules = map(load, sys.argv[1:]); "
    code += "print(*(name for module in modules for name in {*module.__all__} - {*dir(module)}))"
    packages = [package.__name__ for package in (common, connectors, datastream, window)]
    of_spark = ["flinkcore.spark"] if find_spec("pyspark") else []
    assert outputs("-c", code, *packages, *of_spark) == [""]


def test_what_a_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(
        AttributeError, match=r"module .flinkcore\.datastream\.window. has no attribute .nothing."
    ):
        window.nothing  # noqa: B018
