"""A timeline as tasks of Spark receive it."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from equipment.timelines import steps_of, timeline_of

from flinkcore.errors import SourceError
from flinkcore.spark.exchange.sent_timeline import SentTimeline, mapped_copy
from flinkcore.time_plane.timeline import Timeline

TIMELINE = timeline_of(np.arange(100) * 200, np.arange(100) * 200 - 7, ends=True)


class Broadcasts:
    """A context of Spark whose broadcasts come as pickled, each time that a worker asks for the value."""

    def __init__(self) -> None:
        self.values_read = 0

    def broadcast(self, value: Any) -> "Broadcasts":
        self.pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        return self

    @property
    def value(self) -> Any:
        self.values_read += 1
        return pickle.loads(self.pickled)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    return tmp_path


def columns(timeline: Timeline) -> list[list[int]]:
    return [column.tolist() for column in steps_of(timeline)]


def test_a_short_timeline_travels_within_the_task() -> None:
    for sent in (SentTimeline.of(TIMELINE, Broadcasts()), SentTimeline.of(TIMELINE, None, inline_bytes=0)):
        assert sent.broadcasts == ()
        assert columns(pickle.loads(pickle.dumps(sent)).timeline) == columns(TIMELINE)


def test_a_long_timeline_is_written_once_for_all_workers_of_an_executor(directory: Path) -> None:
    context = Broadcasts()
    sent = SentTimeline.of(TIMELINE, context, inline_bytes=0)
    assert sent.broadcasts == (context,)
    for _ in range(3):  # each task unpickles its own
        task = SentTimeline(sent.content, sent.name)
        assert columns(task.timeline) == columns(TIMELINE)
    assert context.values_read == 1
    (file,) = directory.iterdir()
    assert file.name == f"flinkcore-timeline-{sent.name}"


def test_a_task_writes_a_file_again_that_is_gone(directory: Path) -> None:
    sent = SentTimeline.of(TIMELINE, Broadcasts(), inline_bytes=0)
    before = SentTimeline(sent.content, sent.name).timeline
    (file,) = directory.iterdir()
    file.unlink()
    assert columns(SentTimeline(sent.content, sent.name).timeline) == columns(before) == columns(TIMELINE)


def test_timelines_with_other_steps_have_other_files(directory: Path) -> None:
    other = timeline_of([1, 2], [3, 4])
    for timeline in (TIMELINE, other):
        assert columns(SentTimeline.of(timeline, Broadcasts(), inline_bytes=0).timeline) == columns(timeline)
    assert len(list(directory.iterdir())) == 2


def test_files_that_no_task_has_used_for_an_hour_are_removed_with_the_next_one(directory: Path) -> None:
    packed = bytes(TIMELINE.steps.buffer)
    kept = mapped_copy(packed, "old")
    mapped_copy(packed, "new")
    os.utime(directory / "flinkcore-timeline-old", (0, 0))
    for name in (".flinkcore-timeline-of-a-dead-worker", "of-somebody-else"):
        (directory / name).touch()
        os.utime(directory / name, (0, 0))
    mapped_copy(packed, "newest")
    left = sorted(path.name for path in directory.iterdir())
    assert left == ["flinkcore-timeline-new", "flinkcore-timeline-newest", "of-somebody-else"]
    assert columns(Timeline(kept)) == columns(TIMELINE)  # it is still mapped


def test_a_directory_that_takes_no_files_is_named_with_what_to_do(tmp_path: Path) -> None:
    message = r"cannot be written to .*missing on the executor: .* let spark\.local\.dir name directories"
    with pytest.raises(SourceError, match=message):
        mapped_copy(bytes(TIMELINE.steps.buffer), "name", tmp_path / "missing")
