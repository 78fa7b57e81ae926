"""Each public name has one home, and private modules are not imported by accident."""

import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import flinkcore
from flinkcore import pyflink
from tests.equipment.public_packages import PUBLIC_PACKAGES

PACKAGE = Path(flinkcore.__file__).parent
PYFLINK_NAMES = json.loads(
    (Path(__file__).parents[1] / "golden" / "pyflink_names.json").read_text(encoding="utf-8")
)
FORMER = {
    *("pyflink.datastream.time_characteristic", "pyflink.table", "pyflink.table.data_view"),
    *("pyflink.table.types", "pyflink.table.udf", "pyflink.table.window"),
    *("pyflink.table.expression", "pyflink.table.expressions"),
}
"""Modules of PyFlink that the record of version 2.3 does not have, or has not in whole."""

PROGRAM = """
import flinkcore as fc
import pyarrow as pa

log = pa.table({"user": ["a", "b", "a"], "ts": [1_000, 2_000, 61_000]})
env = fc.StreamExecutionEnvironment.get_execution_environment()
stream = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(
    fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_seconds(5))
)
windows = stream.key_by("user").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_minutes(1)))
result = windows.aggregate(n=fc.count()).execute()
assert isinstance(result, fc.JobResult) and isinstance(result.report, fc.ReplayReport)
print(sorted(zip(*result.to_arrow().select(["user", "n"]).to_pydict().values())))
"""


def test_one_import_is_enough_for_a_first_job() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[('a', 1), ('a', 1), ('b', 1)]"


IMPORTED = re.compile(r"^from flinkcore(?!\.examples)[\w.]* import (.+?)(?:  #.*)?$", re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_one_import_is_enough_for_what_the_first_pages_show(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    assert "import flinkcore as fc" in text or IMPORTED.search(text)
    names = {name.strip() for names in IMPORTED.findall(text) for name in names.split(",")}
    names |= set(re.findall(r"\bfc\.(\w+)", text))
    for name in names:
        if name == "spark" or hasattr(flinkcore, name):
            continue
        pytest.importorskip("pyspark")
        assert name in import_module("flinkcore.spark").__all__


def test_packages_need_no_import_of_their_own() -> None:
    program = """
import flinkcore as fc
print(fc.errors.DataError.__name__, fc.common.Types.INT(), fc.testing.StreamRecord(1).value)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "DataError"


@pytest.mark.parametrize("name", flinkcore.__all__)
def test_a_name_of_the_package_is_there(name: str) -> None:
    assert getattr(flinkcore, name) is not None
    assert name in dir(flinkcore)


def test_importing_the_package_imports_nothing_that_is_large() -> None:
    program = "import sys, flinkcore; print(sorted({'pyarrow', 'numpy', 'flinkcore.datastream'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted(PACKAGE.rglob("__init__.py"))
        if path.parent != PACKAGE and path.relative_to(PACKAGE).parts[0] not in PUBLIC_PACKAGES
    ],
    ids=lambda path: str(path.parent.relative_to(PACKAGE)),
)
def test_a_private_package_says_that_it_is_private(path: Path) -> None:
    name = ".".join(["flinkcore", *path.parent.relative_to(PACKAGE).parts])
    assert "Private" in (import_module(name).__doc__ or "")


def test_pyflinks_modules_are_those_that_flinkcore_has() -> None:
    found = {name for name in PYFLINK_NAMES if _is_there(name.replace("pyflink", "flinkcore", 1))} - {
        "pyflink"
    }
    listed = {f"pyflink.{package}" for package in pyflink.MODULES}
    listed |= {
        f"pyflink.{package}.{name}" for package, names in pyflink.MODULES.items() for name in names.split()
    }
    assert listed == found | FORMER


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


@pytest.mark.parametrize(
    "name",
    ["common.settings", "common.row", "datastream.graph.transformations", "log", "columnar.plans", "errors"],
)
def test_a_module_that_pyflink_does_not_have_is_not_imported_by_its_name(name: str) -> None:
    program = f"import flinkcore.pyflink, pyflink.{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ModuleNotFoundError: flinkcore does not have the module pyflink." in done.stderr


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("stddev", "flinkcore.datastream.aggregates"),
        ("TumblingProcessingTimeWindows", "flinkcore.datastream.window"),
        ("KeyedProcessFunction", "flinkcore.datastream"),
        ("Types", "flinkcore.common"),
    ],
)
def test_a_name_that_another_module_has_is_found_there(name: str, module: str) -> None:
    with pytest.raises(AttributeError, match=f"has no {name}: write from .* import {name}") as caught:
        getattr(flinkcore, name)
    written = str(caught.value).partition("write from ")[2].partition(" import")[0]
    assert getattr(import_module(written), name) is getattr(import_module(module), name)
