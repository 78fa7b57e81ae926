"""The offsets of a KafkaSource are read from savepoints and written into them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.written_savepoints import i32, i64, utf

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.cli import main
from flinkcore.errors import ArgumentTypeError, ConfigurationError
from flinkcore.savepoints.kafka_source import (
    KafkaSplit,
    offsets_by_topic,
    splits_of,
    written_coordinator,
    written_readers,
)

LEAST = -(1 << 63)
DUMP = pa.table(
    {
        "partition": [0, 1, 0],
        "offset": [7, 3, 8],
        "time": [978_480_000_000, 978_480_000_100, 978_480_000_200],
    }
)


def sized(data: bytes) -> bytes:
    return i32(len(data)) + data


def split(topic: str, partition: int, offset: int, stop: int = LEAST) -> bytes:
    return utf(topic) + i32(partition) + i64(offset) + i64(stop)


def element(*arguments: Any) -> bytes:
    return i32(0) + sized(split(*arguments))


def coordinator(version: int, *partitions: tuple[int, int], finished: bool = True) -> bytes:
    """Return the state of a coordinator as connectors write it: partitions of `clicks` with their status."""
    content = i32(len(partitions)) + (i32(0) if version == 3 else b"")
    for partition, status in partitions:
        content += (
            sized(split("clicks", partition, -2)) if version == 3 else utf("clicks") + i32(partition)
        ) + (i32(status) if version > 1 else b"")
    return i32(1) + i32(version) + sized(content + (bytes([finished]) if version > 1 else b""))


def hourly(log: Any) -> Any:
    bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_minutes(30))
    windows = log.assign_timestamps_and_watermarks(bound).key_by("partition")
    return windows.window(fc.TumblingEventTimeWindows.of(fc.Duration.of_hours(1))).aggregate(n=fc.count())


@pytest.fixture
def log() -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    return env.from_event_log(DUMP, timestamp="time", arrival="time", split="partition", position="offset")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_offsets_are_those_of_the_readers(version: int) -> None:
    elements = [element("clicks", 1, 10), element("clicks", 0, 42, 99)]
    found = splits_of(elements, coordinator(version, (1, 0), (0, 0)), "file")
    assert found == [KafkaSplit("clicks", 0, 42), KafkaSplit("clicks", 1, 10)]
    assert offsets_by_topic(found) == {"clicks": {0: 42, 1: 10}}


def test_partitions_without_a_reader_are_listed_without_an_offset() -> None:
    found = splits_of([element("clicks", 1, -1)], coordinator(3, (1, 0), (2, 1)), "file")
    assert found is not None
    assert [(each.partition, each.start) for each in found] == [(1, "latest"), (2, "earliest")]
    offsets = offsets_by_topic(found)
    assert offsets == {"clicks": {}}
    with pytest.raises(ConfigurationError, match=r"the topic 'click'; it reads \['clicks'\]"):
        offsets["click"]
    with pytest.raises(
        ConfigurationError, match=r"partition 1, which begins at .* \(latest\)\. Add its next"
    ):
        offsets["clicks"].unread()
    offsets["clicks"][1] = 4
    assert DUMP.filter(offsets["clicks"].unread())["partition"].to_pylist() == [0, 0]
    found = splits_of([], coordinator(2, (2, 1)), "file")
    assert found is not None
    assert [each.start for each in found] == ["not known yet"]


@pytest.mark.parametrize(
    ("elements", "state"),
    [
        ([element("clicks", 1, 10) + b"\0"], None),
        ([element("clicks", 1, 10)[:-1]], None),
        ([i32(1) + sized(split("clicks", 1, 10))], None),
        ([element("clicks", -1, 10)], None),
        ([element("clicks", 1, -7)], None),
        ([element("clicks", 1, 10, -8)], None),
        ([element("", 1, 10)], None),
        ([b"anything"], None),
        ([element("clicks", 1, 10)], b""),
        ([element("clicks", 1, 10)], coordinator(1, (1, 0)) + b"\0"),
        ([element("clicks", 1, 10)], i32(1) + i32(9) + i32(0)),
        ([element("clicks", 1, 10)], coordinator(2, (1, 7))),
        ([], None),
    ],
)
def test_states_of_other_sources_are_not_taken_for_offsets(
    elements: list[bytes], state: bytes | None
) -> None:
    assert splits_of(elements, state, "file") is None


def test_states_are_written_as_connectors_write_them() -> None:
    topics = {"clicks": {0: 42, 1: 7}, "orders": {3: 1 << 40}}
    assert written_readers(topics) == [
        element("clicks", 0, 42),
        element("clicks", 1, 7),
        element("orders", 3, 1 << 40),
    ]
    assert written_coordinator({"clicks": {0: 42, 1: 7}}) == coordinator(1, (0, 0), (1, 0))


def test_a_savepoint_has_the_offsets_after_the_replay(
    tmp_path: Path, log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = {"clicks-source": {"clicks": savepoints.next_offsets(log), "orders": {3: 5}}}
    target = savepoints.SavepointTarget(
        tmp_path / "s", sources=sources, max_parallelism=128, compression=True
    )
    hourly(log).execute(stop_with_savepoint=target).to_arrow()
    operator = savepoints.open(tmp_path / "s").operator("clicks-source")
    assert operator.kafka_offsets() == {"clicks": {0: 9, 1: 4}, "orders": {3: 5}}
    assert operator.max_parallelism == 128
    assert main(["savepoint", "show", str(tmp_path / "s")]) == 0
    shown = capsys.readouterr().out
    assert "topic 'clicks' of a KafkaSource, next offsets by partition: 0: 9, 1: 4\n" in shown
    assert "only Java" not in shown
    other = next(each for each in savepoints.open(tmp_path / "s").operators if each is not operator)
    assert other.kafka_splits() == []
    with pytest.raises(ConfigurationError, match="no state of a KafkaSource"):
        other.kafka_offsets()
    # A replay begins with the savepoint, too: the state of the source is not one of an operator.
    rest = hourly(log.filter(operator.kafka_offsets()["clicks"].unread()))
    assert rest.execute(restore_from=tmp_path / "s").to_arrow().num_rows == 2


def test_rows_that_have_been_read_are_left_out() -> None:
    offsets = savepoints.NextOffsets({0: 8})
    assert DUMP.filter(offsets.unread())["offset"].to_pylist() == [3, 8]
    assert DUMP.filter(savepoints.NextOffsets().unread()).num_rows == 3
    many = savepoints.NextOffsets({**dict.fromkeys(range(1, 5000), 1 << 40), 0: 8})
    assert DUMP.filter(many.unread())["offset"].to_pylist() == [8]


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        ([("s", {"clicks": {0: 1}})], "offsets by topic"),
        ({"s": {}}, "offsets by topic"),
        ({"s": {"clicks": {}}}, "offsets by partition"),
        ({"s": {"clicks": {0: -1}}}, "whole numbers"),
        ({"s": {"clicks": {0: 1 << 63}}}, "whole numbers"),
        ({"s": {"clicks": {"0": 1}}}, "whole numbers"),
    ],
)
def test_what_is_not_an_offset_is_refused(sources: Any, reason: str) -> None:
    with pytest.raises((ArgumentTypeError, ConfigurationError), match=reason):
        savepoints.SavepointTarget("s", sources=sources)


def test_a_source_does_not_have_the_uid_of_an_operator(tmp_path: Path, log: Any) -> None:
    target = savepoints.SavepointTarget(tmp_path / "s", sources={"hours": {"clicks": {0: 1}}})
    with pytest.raises(
        ConfigurationError, match="'hours' is the uid of a source and of an operator with state"
    ):
        hourly(log).uid("hours").execute(stop_with_savepoint=target).to_arrow()
    with pytest.raises(ConfigurationError, match="uid of a source and of another operator"):
        savepoints.SavepointTarget("s", [savepoints.FlinkOperator("a")], sources={"a": {"clicks": {0: 1}}})
