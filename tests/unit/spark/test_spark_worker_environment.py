"""What a Python worker of Spark, which is used again, imports."""

import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkFiles

import flinkcore.spark
from flinkcore.common import ExecutionConfig
from flinkcore.common.configuration import Configuration
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.pipeline_executor import ElementJob
from flinkcore.errors import UserCodeError
from flinkcore.spark.elements.shipped_job import ShippedJob, shipped_job
from flinkcore.spark.shipping.tasks import unpickled
from flinkcore.spark.shipping.worker_environment import (
    MODULES,
    ShippedArchive,
    provide_modules,
    working_directory,
)

NAMES = ("modules_of_a_user", "more_modules_of_a_user")


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where Spark unpacks what it was sent; paths and modules are as before behind it."""
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in NAMES:
        sys.modules.pop(name, None)


def archive(unpacked: Path, name: str, **modules: str) -> str:
    folder = unpacked / f"{MODULES}{name}"
    folder.mkdir()
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    return folder.name


def state() -> Any:
    return importlib.import_module("modules_of_a_user").state


def test_modules_that_were_sent_again_take_the_place_of_their_earlier_state(unpacked: Path) -> None:
    first = archive(unpacked, "1", modules_of_a_user="state = 1")
    second = archive(unpacked, "2", modules_of_a_user="state = 2")
    for name, expected in ((first, 1), (second, 2), (second, 2), (first, 1)):
        provide_modules([name])
        assert state() == expected
    assert [Path(folder).name for folder in sys.path if MODULES in folder] == [first]


def test_modules_that_were_sent_take_the_place_of_those_that_the_worker_had(
    unpacked: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    installed = tmp_path_factory.mktemp("installed")
    (installed / "modules_of_a_user.py").write_text("state = 0")
    sys.path.insert(0, str(installed))
    assert state() == 0
    provide_modules([archive(unpacked, "1", modules_of_a_user="state = 1")])
    assert state() == 1


def test_what_another_session_has_sent_is_not_found(unpacked: Path) -> None:
    provide_modules([archive(unpacked, "1", modules_of_a_user="state = 1")])
    assert state() == 1
    provide_modules([])
    with pytest.raises(ModuleNotFoundError):
        state()


def test_modules_of_which_several_were_sent_are_those_that_were_sent_last(unpacked: Path) -> None:
    first = archive(unpacked, "1", modules_of_a_user="state = 1", more_modules_of_a_user="state = 10")
    second = archive(unpacked, "2", modules_of_a_user="state = 2")
    provide_modules([second, first])
    assert state() == 2
    assert importlib.import_module("more_modules_of_a_user").state == 10


def test_modules_of_python_itself_and_compiled_ones_stay_imported(unpacked: Path) -> None:
    import numpy

    import flinkcore._native.exchange

    provide_modules([archive(unpacked, "1", json="", numpy="", flinkcore="")])
    assert sys.modules["numpy"] is numpy
    assert sys.modules["flinkcore"] is flinkcore
    assert importlib.import_module("json").dumps


def test_functions_of_a_missing_module_are_told_of_in_every_kind_of_job(unpacked: Path) -> None:
    provide_modules([archive(unpacked, "1", modules_of_a_user="def function(value):\n    return value")])
    function = importlib.import_module("modules_of_a_user").function
    pickled = pickle.dumps(function)
    assert unpickled(pickled) is function
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1]).map(function)
    planned = ElementJob("job", (), stream._transformation)
    job = ShippedJob(planned, ExecutionConfig(Configuration()), 0).pickled()
    provide_modules([])
    for unpickle, missing in ((unpickled, pickled), (shipped_job, job)):
        with pytest.raises(UserCodeError, match=r"need the module 'modules_of_a_user'.*env.add_python_file"):
            unpickle(missing)


class Odd(Exception):
    def __init__(self, row: int, *, column: str) -> None:
        super().__init__(f"row {row} of {column}")


def test_objects_of_functions_that_cannot_be_unpickled_are_told_of() -> None:
    with pytest.raises(
        UserCodeError, match=r"cannot be unpickled by the Python worker .*'column'.*in open\(\)"
    ):
        unpickled(pickle.dumps(Odd(3, column="a")))


def test_a_worker_is_in_the_directory_of_archives_for_as_long_as_a_task(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unpacked)
    # As executors of a cluster are told.
    monkeypatch.setattr(SparkFiles, "_root_directory", ".")
    (unpacked / "modules").mkdir()
    (unpacked / "modules" / "modules_of_a_user.py").write_text("state = 1")
    sys.path.insert(0, "modules")
    for number in (1, 2):
        (unpacked / f"archive-{number}").mkdir()
        (unpacked / f"archive-{number}" / "text").write_text(str(number))
    for number in (1, 2, 1):
        archives = [ShippedArchive("a/b", f"archive-{number}"), ShippedArchive("c", "archive-2")]
        with working_directory(archives):
            assert [Path(folder, "text").read_text() for folder in ("a/b", "c")] == [str(number), "2"]
            assert SparkFiles.get("archive-1") == str(unpacked / "archive-1")
            assert state() == 1
        assert Path.cwd() == unpacked
    with working_directory([]):
        assert Path.cwd() == unpacked
    assert SparkFiles.getRootDirectory() == "."


IMPORTS_AHEAD = """
import sys
from flinkcore.spark.shipping.worker_environment import import_for_tasks, present_build

TASKS = ["flinkcore.spark.exchange.narrow", "flinkcore.spark.exchange.blocks"]
for build in ("another", present_build()):
    import_for_tasks(build, TASKS)
    print({*TASKS, "pyarrow"} <= set(sys.modules))
"""


def test_a_worker_imports_what_tasks_need_ahead_of_them_if_it_has_the_drivers_build() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS_AHEAD], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


TASKS_ALONE = """
import sys
import flinkcore.spark.columnar.map_task, flinkcore.spark.columnar.task_outputs, flinkcore.spark.columnar.time_pass
import flinkcore.spark.shipping.tasks

drivers = ("flinkcore.spark.environment", "flinkcore.spark.elements", "flinkcore.columnar.local", "flinkcore.cli")
print(sorted(name for name in sys.modules if name.startswith(drivers)))
import flinkcore.spark
print(flinkcore.spark.SparkExecutionEnvironment.__module__)
"""


def test_tasks_of_a_replay_import_nothing_that_drivers_alone_need() -> None:
    done = subprocess.run([sys.executable, "-c", TASKS_ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "flinkcore.spark.environment"]


def test_the_package_has_the_names_that_it_promises_and_no_others() -> None:
    assert all(callable(getattr(flinkcore.spark, name)) for name in flinkcore.spark.__all__)
    assert set(flinkcore.spark.__all__) <= set(dir(flinkcore.spark))
    with pytest.raises(AttributeError, match="no attribute 'sparkExecutionEnvironment'"):
        flinkcore.spark.sparkExecutionEnvironment  # noqa: B018


def test_what_tasks_import_is_not_collected_after_each_task() -> None:
    worker = """
import gc, pickle, weakref
from flinkcore.spark.shipping.tasks import ShippedTask

def imports_more(batches):
    import xmlrpc.client
    return batches

def imports_nothing(batches):
    return batches

class Batch:
    def __init__(self):
        self.of_itself = self
        weakref.finalize(self, freed.append, True)

def leaves_garbage(batches):
    import xmlrpc.server
    Batch()
    return batches

left_out = [gc.get_freeze_count()]
for function in (imports_nothing, imports_nothing, imports_more):
    assert list(ShippedTask(pickle.dumps(function))(iter([1, 2]))) == [1, 2]
    left_out.append(gc.get_freeze_count())
    gc.collect()
before, first, second, third = left_out
assert before < first / 10 and second <= first < third, left_out
assert len(gc.get_objects()) < third / 10
freed = []
assert list(ShippedTask(pickle.dumps(leaves_garbage))(iter([1, 2]))) == [1, 2]
gc.collect()
assert freed
"""
    subprocess.run([sys.executable, "-c", worker], check=True)
