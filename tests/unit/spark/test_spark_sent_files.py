"""What a session sends to its executors."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from fuzz.local_spark import local_spark_environment, without_jvm

from flinkcore.datastream.graph.python_dependencies import PythonArchive
from flinkcore.errors import ConfigurationError
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar.deal_state_task import DealStateTask
from flinkcore.spark.columnar.forward_task import ForwardTask
from flinkcore.spark.columnar.map_task import MapTask
from flinkcore.spark.columnar.reduce_task import ReduceTask
from flinkcore.spark.columnar.time_pass import SummariseTask
from flinkcore.spark.elements.element_task import ElementTask
from flinkcore.spark.shipping import sent_files
from flinkcore.spark.shipping.sent_files import SentFiles
from flinkcore.spark.shipping.wheel import installed_wheel, own_build
from flinkcore.spark.shipping.worker_environment import interpreter_abi


class Session:
    """Takes note of what it is told to send."""

    session_id = "1"

    def __init__(self) -> None:
        self.sent: list[str] = []

    def addArtifact(self, path: str, archive: bool) -> None:
        assert archive
        self.sent.append(path)


def test_a_file_that_is_as_it_once_was_counts_again_and_is_sent_once(tmp_path: Path) -> None:
    module, files, session = tmp_path / "my functions #1.py", SentFiles(), Session()
    names = []
    for text in ("a", "b", "a"):
        module.write_text(text)
        files.add_python_file(session, module)
        names.append(files.python_files[module])
    assert names[0] == names[2] != names[1]
    assert [path.rpartition("#")[2] for path in session.sent] == names[:2]
    assert all(path.count("#") == 1 and " " not in path for path in session.sent)


def test_an_archive_goes_by_its_content_under_a_name_by_which_spark_unpacks_it(tmp_path: Path) -> None:
    files, session = SentFiles(), Session()
    names = []
    for name in ("my data #1.whl", "data.tar.gz"):
        for text in ("a", "b", "a"):
            with ZipFile(tmp_path / name, "w") as archive:
                archive.writestr("text", text + name)
            files.add_python_archive(session, PythonArchive(tmp_path / name, "target"))
            names.append(files.python_archives["target"].name)
    assert names[0] == names[2] != names[1]
    sent = [path.rpartition("/")[2].split("#") for path in session.sent]
    assert sent == [[f"{name}.zip", name] for name in names[:2]] + [
        [f"{name}.tar.gz", name] for name in names[3:5]
    ]


def test_threads_that_start_the_first_job_at_once_look_and_send_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def report(spark: Any, task_modules: list[str]) -> list[dict[str, Any]]:
        looks.append((spark, task_modules))
        time.sleep(0.1)
        return [{"build": None, "abi": interpreter_abi(), "package": None, "place": "there"}]

    monkeypatch.setattr(sent_files, "executor_reports", report)
    files, session, found = SentFiles(task_modules={"b", "a"}), Session(), []
    threads = [Thread(target=lambda: found.append(files.for_tasks(session))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert looks == [(session, ["a", "b"])]
    assert len(session.sent) == 1
    assert [[wheel.build for wheel in each.wheels] for each in found] == [[installed_wheel().build]] * 4
    assert found[0].builds == [own_build(), installed_wheel().build]


@pytest.mark.parametrize(
    ("run", "task_modules"),
    [
        (
            lambda env: env.from_event_log(pa.table({"ts": [1]}), timestamp="ts").execute().to_arrow(),
            {each.__module__ for each in (SummariseTask, DealStateTask, MapTask, ReduceTask, ForwardTask)},
        ),
        (
            lambda env: list(env.from_collection([1]).map(str).execute_and_collect()),
            {ElementTask.__module__},
        ),
    ],
)
def test_the_preflight_knows_the_modules_of_the_tasks_of_the_first_job(
    run: Callable[[SparkExecutionEnvironment], object],
    task_modules: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known: list[list[str]] = []
    monkeypatch.setattr(sent_files, "_SENT", {})
    report = patch.object(sent_files, "executor_reports", lambda _, modules: known.append(modules) or [])
    with without_jvm(), report:
        run(local_spark_environment(1))
    assert known == [sorted(task_modules)]


def test_a_preflight_that_failed_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [{"build": None, "abi": "cpython-27-other other", "package": None, "place": "there"}]
    monkeypatch.setattr(sent_files, "executor_reports", lambda *_: reports)
    files, session = SentFiles(), Session()
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="the Python worker there needs flinkcore"):
            files.for_tasks(session)
    reports.clear()
    assert files.for_tasks(session).wheels == []


def test_a_session_that_lets_nobody_send_files_is_one_error_with_ways_out(tmp_path: Path) -> None:
    class Refusing(Session):
        def addArtifact(self, path: str, archive: bool) -> None:
            raise PermissionError("artifacts are not for everybody")

    (tmp_path / "module.py").write_text("")
    with pytest.raises(
        ConfigurationError,
        match=r"module.py cannot be sent .*: artifacts are not for everybody. Give the executors",
    ):
        SentFiles().add_python_file(Refusing(), tmp_path / "module.py")
