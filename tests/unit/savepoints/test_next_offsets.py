"""The offsets at which a Flink job goes on after a replay of a topic's dump."""

import pyarrow as pa
import pytest

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.errors import ConfigurationError, SchemaError

DUMP = pa.table(
    {
        "partition": [1, 0, 1, 0],
        "offset": [7, 3, 9, 4],
        "time": [10**12, 10**12 + 5, 10**12 + 10, 10**12 + 20],
        "text": ["a", "b", "c", "d"],
    }
)


def log(**settings: object) -> object:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    return env.from_event_log(DUMP, timestamp="time", arrival="time", split="partition", **settings)


def test_each_partition_goes_on_after_its_last_row() -> None:
    assert savepoints.next_offsets(log()) == {0: 5, 1: 10}


def test_rows_after_the_cut_are_left_for_flink() -> None:
    assert savepoints.next_offsets(log(until=10**12 + 10)) == {0: 4, 1: 8}


def test_offsets_are_programs_to_paste() -> None:
    offsets = savepoints.NextOffsets({0: 4, 1: 8})
    assert 'Map.entry(new TopicPartition("clicks", 1), 8L)' in offsets.to_java("clicks")
    assert 'KafkaTopicPartition("clicks", 1): 8,' in offsets.to_python("clicks")


def test_columns_of_other_types_are_refused() -> None:
    with pytest.raises(SchemaError, match="'text' is not a column of integers"):
        savepoints.next_offsets(log(), offset="text")
    with pytest.raises(SchemaError, match="'place' is not a column of integers"):
        savepoints.next_offsets(log(), partition="place")


def test_partitions_that_begin_where_only_the_broker_knows_are_in_no_program_and_no_savepoint() -> None:
    offsets = savepoints.NextOffsets({0: 4}, {1: "latest"})
    for use in (
        lambda: offsets.to_java("clicks"),
        lambda: offsets.to_python("clicks"),
        lambda: savepoints.SavepointTarget("s", sources={"source": {"clicks": offsets}}),
    ):
        with pytest.raises(ConfigurationError, match=r"partition 1, .*\(latest\)"):
            use()
    offsets[1] = 0
    assert 'KafkaTopicPartition("clicks", 1): 0,' in offsets.to_python("clicks")


def test_partitions_at_the_earliest_offset_are_left_to_flink() -> None:
    offsets = savepoints.NextOffsets({0: 4}, {1: "earliest"})
    assert "1)" not in offsets.to_java("clicks")
