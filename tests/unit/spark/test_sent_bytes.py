"""Bytes, and a timeline of them, as tasks of Spark receive them."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark")

from equipment.timelines import steps_of, timeline_of

from flinkcore.errors import SourceError
from flinkcore.spark.exchange.sent_bytes import SentBytes, mapped_copy
from flinkcore.spark.exchange.sent_timeline import SentTimeline

DATA = bytes(range(200))


class Broadcasts:
    """A context of Spark whose broadcasts come as pickled, each time that a worker asks for the value."""

    def __init__(self) -> None:
        self.values_read = 0

    def broadcast(self, value: Any) -> "Broadcasts":
        self.pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Broadcasts, ()  # Spark pickles the number of a broadcast

    @property
    def value(self) -> Any:
        self.values_read += 1
        return pickle.loads(self.pickled)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    return tmp_path


def test_few_bytes_travel_within_the_task() -> None:
    for sent in (SentBytes.of("them", DATA, Broadcasts()), SentBytes.of("them", DATA, None, inline_bytes=0)):
        assert sent.broadcasts == ()
        assert pickle.loads(pickle.dumps(sent)).buffer == DATA


def test_many_bytes_are_written_once_for_all_workers_of_an_executor(directory: Path) -> None:
    context = Broadcasts()
    sent = SentBytes.of("them", DATA, context, inline_bytes=0)
    assert sent.broadcasts == (context,)
    for _ in range(3):  # each task reads them
        assert sent.buffer == DATA
    assert context.values_read == 1
    (file,) = directory.iterdir()
    assert file.name == f"flinkcore-sent-{sent.name}"


def test_a_task_does_not_grow_with_the_bytes(directory: Path) -> None:
    few, many = (SentBytes.of("them", data, Broadcasts(), inline_bytes=0) for data in (DATA, DATA * 1_000))
    assert len(pickle.dumps(few)) == len(pickle.dumps(many))


def test_a_task_writes_a_file_again_that_is_gone(directory: Path) -> None:
    sent = SentBytes.of("them", DATA, Broadcasts(), inline_bytes=0)
    before = sent.buffer
    (file,) = directory.iterdir()
    file.unlink()
    assert sent.buffer == before == DATA


def test_other_bytes_have_other_files(directory: Path) -> None:
    for data in (DATA, DATA[::-1]):
        assert SentBytes.of("them", data, Broadcasts(), inline_bytes=0).buffer == data
    assert len(list(directory.iterdir())) == 2


def test_files_that_no_task_has_used_for_an_hour_are_removed_with_the_next_one(directory: Path) -> None:
    kept = mapped_copy("them", DATA, "old")
    mapped_copy("them", DATA, "new")
    os.utime(directory / "flinkcore-sent-old", (0, 0))
    for name in (".flinkcore-sent-of-a-dead-worker", "of-somebody-else"):
        (directory / name).touch()
        os.utime(directory / name, (0, 0))
    mapped_copy("them", DATA, "newest")
    left = sorted(path.name for path in directory.iterdir())
    assert left == ["flinkcore-sent-new", "flinkcore-sent-newest", "of-somebody-else"]
    assert kept == DATA  # it is still mapped


def test_a_directory_that_takes_no_files_is_named_with_what_to_do(tmp_path: Path) -> None:
    message = r"^these things, 200 bytes, cannot be written to .*missing on the executor: .* let spark\.local\.dir name"
    with pytest.raises(SourceError, match=message):
        mapped_copy("these things", DATA, "name", tmp_path / "missing")


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_a_timeline_is_searched_where_its_bytes_are(directory: Path, inline_bytes: int) -> None:
    timeline = timeline_of(np.arange(100) * 200, np.arange(100) * 200 - 7, ends=True)
    sent = SentTimeline.of(timeline, Broadcasts(), inline_bytes)
    for task in (sent, SentTimeline(sent.steps)):
        for found, expected in zip(steps_of(task.timeline), steps_of(timeline), strict=True):
            assert found.tolist() == expected.tolist()
    assert len(list(directory.iterdir())) == (0 if inline_bytes else 1)
