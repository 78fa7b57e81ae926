"""Runs of messages keep order, values and classes, and are merged as they are read."""

import heapq
import itertools
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from equipment.message_jobs import collected_by_messages

from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common import Row
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.pipeline_executor import CheckpointSettings, ElementJob
from flinkcore.elements.job_sources import JobSources
from flinkcore.errors import InternalError, UserCodeError
from flinkcore.spark.elements import messages as messages_module
from flinkcore.spark.elements.element_task import ElementTask
from flinkcore.spark.elements.messages import (
    LIMITS,
    Message,
    MessageWriter,
    RunLimits,
    RunRow,
    merged,
    pieces,
    read_runs,
    run_batch,
)
from flinkcore.spark.elements.shipped_job import ShippedJob


def writer_with_room(limits: RunLimits = LIMITS) -> MessageWriter:
    """A writer whose rows are taken at the end."""

    def give(rows: list[RunRow]) -> None:
        raise AssertionError("it holds few bytes")

    return MessageWriter(give, limits)


def values(rows: list[RunRow]) -> list[Any]:
    return [value for row in rows for _, _, value, _ in row.messages()]


def test_values_are_as_they_were_when_they_were_sent() -> None:
    writer, held = writer_with_room(), [1]
    same = ("a", Row(n=1))
    for number in range(3):
        writer.send(7, 0, held, number)
        writer.send(7, 1, same)
        held.append(number)
    (row,) = writer.take()
    assert row.target == 7
    messages = list(row.messages())
    assert messages[0][0] == row.first_key
    assert [(kind, value, timestamp) for _, kind, value, timestamp in messages] == [
        (0, [1], 0), (1, same, None), (0, [1, 0], 1), (1, same, None), (0, [1, 0, 1], 2), (1, same, None),
    ]  # fmt: skip
    assert writer.take() == []


def test_runs_end_when_they_are_long() -> None:
    writer = writer_with_room(RunLimits(run_bytes=2000))
    for number in range(100):
        writer.send(number % 2, 0, "x" * 100)
    rows = writer.take()
    assert len(rows) > 4
    assert sum(len(list(row.messages())) for row in rows) == 100


def test_a_writer_gives_its_rows_as_soon_as_it_holds_enough_also_amid_a_call_without_end() -> None:
    given: list[list[RunRow]] = []
    writer = MessageWriter(given.append, RunLimits(run_bytes=2000, held_bytes=5000))
    numbers = itertools.count()
    while len(given) < 10:
        writer.send(next(numbers) % 7, 0, "x" * 100)  # as many targets as share what is held
    for rows in given:
        assert 4000 < sum(len(row.payload) for row in rows) < 5000 + 7 * 300
    assert sorted(row.first_key for rows in given for row in rows) == [
        row.first_key for rows in given for row in sorted(rows, key=lambda row: row.first_key)
    ]
    n_messages = sum(len(list(row.messages())) for rows in given for row in rows)
    assert n_messages == next(numbers)
    assert writer.take() == []


def test_an_element_that_no_row_can_hold_is_named() -> None:
    writer = writer_with_room(RunLimits(run_bytes=300, most_run_bytes=1000))
    writer.send(0, 0, "x" * 500)
    with pytest.raises(UserCodeError, match=r"element 'yyy.*has more than 700 bytes.*in pieces"):
        writer.send(0, 0, "y" * 1000)


def test_rows_of_the_shuffle_are_read_as_they_were_written() -> None:
    writer = writer_with_room()
    for target in (3, -1, 3):
        writer.send(target, 0, target)
    rows = writer.take()
    batch = run_batch(rows, [5, 6])
    assert batch.column("slot").to_pylist() == [5, 6]
    assert list(read_runs(iter([batch]))) == rows


def test_classes_that_cannot_be_imported_go_along_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Local:
        def __init__(self, number: int) -> None:
            self.number = number

    writer = writer_with_room()
    for number in range(50):
        writer.send(0, 0, Local(number))
    writer.send(0, 0, Local)
    (row,) = writer.take()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Local(1))
    one = writer_with_room()
    one.send(0, 0, Local(1))
    assert len(row.payload) < len(one.take()[0].payload) + 50 * 150
    monkeypatch.setattr(messages_module, "_CLASSES", {})
    *objects, kind = values([row])
    assert [each.number for each in objects] == list(range(50))
    assert kind is Local
    assert all(type(each) is Local for each in objects)


def test_functions_are_sent_by_value_and_what_nobody_can_send_is_named() -> None:
    writer = writer_with_room()
    writer.send(0, 0, "before")
    writer.send(0, 0, lambda value: value + 1)
    with pytest.raises(
        UserCodeError, match=r"the element <generator.*cannot be sent to another task: TypeError"
    ):
        writer.send(0, 0, (each for each in ()))
    writer.send(0, 0, "behind")
    before, function, behind = values(writer.take())
    assert (before, function(1), behind) == ("before", 2, "behind")


class Unreadable:
    """Can be pickled, and not unpickled."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_a_value_that_cannot_be_unpickled_is_told_with_what_to_do() -> None:
    writer = writer_with_room()
    writer.send(0, 0, "before")
    writer.send(0, 0, Unreadable())
    (row,) = writer.take()
    messages = row.messages()
    assert next(messages)[2] == "before"
    with pytest.raises(
        UserCodeError, match=r"cannot be unpickled where it is read: ValueError: invalid literal.*addArtifact"
    ):
        next(messages)


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_several_senders_are_merged(seed: int) -> None:
    chosen = random.Random(seed)
    limits = RunLimits(run_bytes=chosen.choice([1, 200, 100_000]))
    keys = list(range(300))
    chosen.shuffle(keys)
    rows: list[RunRow] = []
    for sender in range(3):
        writer = writer_with_room(limits)
        for key in sorted(keys[sender::3]):
            writer.move_to(key.to_bytes(8, "big"))
            for _ in range(chosen.randrange(3)):
                writer.send(0, 0, key)
        rows += writer.take()
    expected = list(heapq.merge(*([row_value(m) for m in row.messages()] for row in rows)))
    rows.sort(key=lambda row: row.first_key)
    assert [row_value(message) for message in merged(iter(rows))] == expected


def row_value(message: Any) -> tuple[bytes, int]:
    return message[0], message[2]


def test_runs_are_opened_only_when_their_turn_comes() -> None:
    writer = writer_with_room()
    rows = []
    for number in range(4):
        writer.move_to(bytes([number]))
        writer.send(0, 0, number)
        rows += writer.take()
    taken = []

    def noted() -> Iterator[RunRow]:
        for number, row in enumerate(rows):
            taken.append(number)
            yield row

    messages = merged(noted())
    next(messages)
    assert taken == [0, 1]


def test_runs_that_are_not_in_order_are_an_error() -> None:
    writer = writer_with_room()
    rows = []
    for number in (0, 2, 1):
        writer.move_to(bytes([number]))
        writer.send(0, 0, number)
        rows += writer.take()
    with pytest.raises(InternalError, match="runs of messages to task 0 are not in order"):
        list(merged(iter(rows)))


def test_reading_values_leaves_their_class_as_the_program_has_it() -> None:
    class Local:
        setting = "first"

        def told(self) -> str:
            return self.setting

    told = Local.told
    writers = [writer_with_room(), writer_with_room()]
    for writer in writers:
        writer.send(7, 0, Local())
    rows = [row for writer in writers for row in writer.take()]
    Local.setting = "second"
    found = values(rows)
    assert [type(value) for value in found] == [Local, Local]
    assert [value.told() for value in found] == ["second", "second"]
    assert Local.told is told


def test_batches_hold_limited_bytes() -> None:
    rows = [
        RunRow(1, bytes([number]), bytes(size)) for number, size in enumerate([40, 60, 1, 300, 50, 50, 50])
    ]
    assert [[len(row.payload) for row in some] for some in pieces(rows, 100)] == [
        [40, 60],
        [1],
        [300],
        [50, 50],
        [50],
    ]
    assert list(pieces([])) == []


def test_a_task_sends_amid_a_call_without_end() -> None:
    env = StreamExecutionEnvironment()
    stream = env.from_collection([0]).flat_map(itertools.count)
    configuration = env.get_config()
    job = ElementJob("job", (), stream._transformation, env.get_stream_time_characteristic())
    planned = ShippedJob(job, configuration, 0)
    ((task, source),) = (
        JobSources(planned.vertices, configuration, job.time_characteristic, WorkingDirectory())
        .of_tasks()
        .items()
    )
    sent = ElementTask(planned, task, limits=RunLimits(run_bytes=2000, held_bytes=5000)).read(source)
    taken = [row for rows in itertools.islice(sent, 10) for row in rows]
    sent.close()  # type: ignore[attr-defined]
    assert values(taken) == list(range(len(values(taken))))
    assert sum(len(row.payload) for row in taken) < 10 * 7000


def test_a_task_that_stops_without_the_word_of_all_that_send_to_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = StreamExecutionEnvironment().set_parallelism(2)
    stream = env.from_collection(list(range(9))).rebalance().map(lambda v: v).key_by(lambda v: v).map(str)
    settings = CheckpointSettings(stop_with_checkpoint=tmp_path / "c")
    assert sorted(collected_by_messages(stream, env, settings)) == [str(number) for number in range(9)]
    receive = ElementTask._receive

    def without_last(task: ElementTask, messages: Iterator[Message]) -> None:
        receive(task, iter(list(messages)[:-1]))

    monkeypatch.setattr(ElementTask, "_receive", without_last)
    with pytest.raises(InternalError, match=r"not all messages to task 1 .* have come"):
        collected_by_messages(stream, env, settings)
