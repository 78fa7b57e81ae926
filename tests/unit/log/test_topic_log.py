"""Dumps of topics are read by partition and offset, whatever their layout."""

import gzip
import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.topic_dumps import builder, collected, lines, records

from flinkcore.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from flinkcore.errors import DataError, SchemaError, SourceError
from flinkcore.log.files.topic_paths import PlaceInTopic, place_in_topic


def clicks(path: Path, start: Any = None, stop: Any = None, **settings: Any) -> list[Any]:
    source = builder("clicks")
    if start is not None:
        source.set_starting_offsets(start)
    if stop is not None:
        source.set_bounded(stop)
    return collected(source.build(), clicks=path)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("topics/clicks/partition=0/clicks+0+0000000042.json.gz", ("clicks", 0, 42)),
        ("t/shard_id=shardId-000000000001/a", (None, "shardId-000000000001", None)),
        ("t/partition=1/partition=2/a", (None, 2, None)),
        ("my.clicks_v2+11+7", ("my.clicks_v2", 11, 7)),
        ("dump/topic=clicks/partition=3/part-0.parquet", ("clicks", 3, None)),
        ("dump/partition=20010131/a.txt", (None, None, None)),
        ("dump/clicks.txt", (None, None, None)),
    ],
)
def test_a_path_names_topic_partition_and_offset(path: str, place: tuple[Any, ...]) -> None:
    assert place_in_topic(path) == PlaceInTopic(*place)


def test_files_of_kafka_connect_are_read_by_offset_and_partitions_take_turns(tmp_path: Path) -> None:
    folder = tmp_path / "topics" / "clicks"
    lines(folder / "partition=0" / "clicks+0+0000000012.json", ["c", "d"])
    lines(folder / "partition=0" / "clicks+0+0000000010.json", ["a", "b"])
    lines(folder / "partition=1" / "clicks+1+0000000000.json", ["x", "y"])
    assert clicks(folder) == ["a", "x", "b", "y", "c", "d"]
    start = KafkaOffsetsInitializer.offsets(
        {KafkaTopicPartition("clicks", 0): 11, KafkaTopicPartition("clicks", 1): 1}
    )
    assert clicks(folder, start) == ["b", "y", "c", "d"]


def test_the_directory_of_all_topics_gives_each_its_files(tmp_path: Path) -> None:
    lines(tmp_path / "clicks" / "partition=0" / "clicks+0+0.json", ["a"])
    lines(tmp_path / "orders" / "partition=0" / "orders+0+0.json", ["b"])
    assert clicks(tmp_path) == ["a"]
    with pytest.raises(SourceError, match="files of the topics clicks, orders, and none of 'views'"):
        collected(builder("views").build(), views=tmp_path)


def test_a_file_is_a_partition_where_no_path_names_one(tmp_path: Path) -> None:
    lines(tmp_path / "a.txt", ["a", "b", "c"])
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"x\r\ny"))
    assert clicks(tmp_path) == ["a", "x", "b", "y", "c"]
    both = collected(builder("clicks").build(), clicks=[tmp_path / "b.txt.gz", tmp_path / "a.txt"])
    assert both == ["x", "a", "y", "b", "c"]


def test_a_file_without_a_partition_among_others_is_refused(tmp_path: Path) -> None:
    lines(tmp_path / "partition=0" / "a.txt", ["a"])
    odd = lines(tmp_path / "partition=x" / "b.txt", ["b"])
    with pytest.raises(SourceError, match=f"{odd} names no partition"):
        clicks(tmp_path)


def test_long_files_are_cut_at_lines(tmp_path: Path) -> None:
    values = [f"{number:07d}" * (1 + number % 5) for number in range(200_000)]
    assert clicks(lines(tmp_path / "clicks.txt", values)) == values


def test_records_arrive_by_their_timestamps_and_never_before_an_earlier_offset(tmp_path: Path) -> None:
    dump = records(
        tmp_path / "clicks.parquet",
        [(0, 2, 400, "c"), (1, 7, 250, "x"), (0, 0, 300, "a"), (1, 8, 350, "y"), (0, 1, 100, "b")],
    )
    assert clicks(dump) == ["x", "a", "b", "y", "c"]


def test_partitions_of_several_topics_are_named_as_in_other_logs(tmp_path: Path) -> None:
    records(tmp_path / "a.parquet", [(3, 0, 1, "a")], topic="clicks")
    records(tmp_path / "b.parquet", [(3, 7, 2, None)], topic="views")
    with pytest.raises(DataError) as raised:
        collected(builder("clicks", "views").build(), clicks=tmp_path, views=tmp_path)
    assert (raised.value.split, raised.value.position) == ("views/3", 7)


def test_records_of_other_topics_are_passed_over(tmp_path: Path) -> None:
    first = records(tmp_path / "a.parquet", [(0, 0, 1, "a"), (0, 1, 3, "c")], topic="clicks")
    records(tmp_path / "b.parquet", [(0, 0, 2, "b")], topic="orders")
    assert clicks(tmp_path) == ["a", "c"]
    assert collected(builder("clicks", "orders").build(), clicks=tmp_path, orders=tmp_path) == ["a", "b", "c"]
    with pytest.raises(SourceError, match="has other topics: 'clicks', 'orders'"):
        collected(builder("views").build(), views=tmp_path)
    assert collected(builder("views").build(), views=first) == ["a", "c"]


@pytest.mark.parametrize(("one", "other"), [("1", "2"), ("007", "7"), ("clicks", "1")])
def test_topics_may_be_numbers(tmp_path: Path, one: str, other: str) -> None:
    for topic, value in ((one, "a"), (other, "b")):
        directory = tmp_path / f"topic={topic}" / "partition=0"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"value": [value], "offset": [3]}), directory / "0.parquet")
    assert collected(builder(one).build(), **{one: tmp_path}) == ["a"]
    both = collected(builder(one, other).build(), **{one: tmp_path, other: tmp_path})
    assert sorted(both) == ["a", "b"]


def test_a_column_of_topics_may_have_numbers(tmp_path: Path) -> None:
    table = pa.table({"value": ["a", "b"], "topic": [1, 2], "partition": [0, 0], "offset": [0, 0]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert collected(builder("2").build(), **{"2": tmp_path}) == ["b"]
    assert collected(builder("1", "2").build(), **{"1": tmp_path, "2": tmp_path}) == ["a", "b"]


def test_a_record_that_is_there_twice_is_read_once_with_a_warning(tmp_path: Path) -> None:
    records(tmp_path / "a.parquet", [(0, 0, 1, "a"), (0, 1, 2, "b")])
    records(tmp_path / "b.parquet", [(0, 1, 2, "b"), (0, 2, 3, "c")])
    with pytest.warns(UserWarning, match="1 records of topic 'clicks' are in the dump more than once"):
        assert clicks(tmp_path) == ["a", "b", "c"]


def test_columns_that_a_dump_lacks_are_those_of_files_and_lines(tmp_path: Path) -> None:
    for name, values in (("a", ["a", "b"]), ("b", ["x"])):
        pq.write_table(pa.table({"value": values}), tmp_path / f"{name}.parquet")
    assert clicks(tmp_path) == ["a", "x", "b"]
    source = builder().set_partitions({KafkaTopicPartition("clicks", 1)}).build()
    assert collected(source, clicks=tmp_path) == ["x"]


def test_a_table_of_a_lake_is_a_dump_at_its_current_version(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = pq.read_table(records(tmp_path / "a.parquet", [(0, 0, 5, "a"), (1, 0, 6, "x")], topic="clicks"))
    lake = str(tmp_path / "lake")
    deltalake.write_deltalake(lake, table, partition_by=["partition"])
    assert clicks(tmp_path / "lake") == ["a", "x"]
    more = records(tmp_path / "b.parquet", [(0, 1, 7, "b"), (0, 2, 4, "c")], topic="clicks")
    deltalake.write_deltalake(lake, pq.read_table(more), mode="append")
    assert clicks(tmp_path / "lake") == ["a", "x", "b", "c"]
    deltalake.DeltaTable(lake).delete("partition = 1")
    assert clicks(tmp_path / "lake") == ["a", "b", "c"]
    deltalake.DeltaTable(lake).delete()
    assert clicks(tmp_path / "lake") == []


def test_a_byte_order_mark_and_blank_lines_are_no_part_of_records(tmp_path: Path) -> None:
    (tmp_path / "clicks.json").write_bytes(b'\xef\xbb\xbf{"n": 1}\r\n\r\n{"n": 2}\n \n\n')
    assert clicks(tmp_path / "clicks.json") == ['{"n": 1}', '{"n": 2}']
    (tmp_path / "clicks.txt").write_bytes(b"\xef\xbb\xbfa\n\nb\n")
    assert clicks(tmp_path / "clicks.txt") == ["a", "", "b"]  # an empty text is a value
    (tmp_path / "mark.txt").write_bytes(b"\xef\xbb\xbf")
    assert clicks(tmp_path / "mark.txt") == []


@pytest.mark.parametrize("name", ["clicks.csv", "clicks.tsv", "clicks+0+0.csv.gz"])
def test_a_first_line_of_csv_that_may_be_a_header_is_reported(tmp_path: Path, name: str) -> None:
    def write(text: str) -> None:
        content = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    write("user,spent_cents\nada,3\n")
    with pytest.warns(
        UserWarning, match=rf"the first line of .*{re.escape(name)} is a record.*'user,spent_cents'"
    ):
        assert clicks(tmp_path) == ["user,spent_cents", "ada,3"]
    write("ada,3\nbob,4\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clicks(tmp_path) == ["ada,3", "bob,4"]


def test_files_that_are_no_lines_of_text_are_named(tmp_path: Path) -> None:
    damaged = tmp_path / "clicks.txt.gz"
    damaged.write_bytes(gzip.compress(b"a\n" * 1000)[:-12])
    with pytest.raises(SourceError, match=r"clicks\.txt\.gz cannot be read"):
        clicks(damaged)
    for content in ("a\n".encode("utf-16"), gzip.compress(b"a\n")):
        (tmp_path / "clicks.txt").write_bytes(content)
        with pytest.raises(SourceError, match=r"clicks\.txt cannot be read: it is"):
            clicks(tmp_path / "clicks.txt")


TIMED = [(0, 10, 100, "a"), (0, 11, 300, "b"), (0, 12, 200, "c"), (0, 13, 400, "d"), (1, 0, 150, "x")]
OFFSETS = KafkaOffsetsInitializer
CLICKS_0, CLICKS_1 = KafkaTopicPartition("clicks", 0), KafkaTopicPartition("clicks", 1)


@pytest.mark.parametrize(
    ("start", "read"),
    [
        (OFFSETS.earliest(), "axbcd"),
        (OFFSETS.timestamp(0), "axbcd"),
        (OFFSETS.timestamp(200), "bcd"),  # and all after it, whatever their timestamps
        (OFFSETS.timestamp(150), "xbcd"),
        (OFFSETS.timestamp(401), ""),
        (OFFSETS.committed_offsets(KafkaOffsetResetStrategy.EARLIEST), "axbcd"),
        (OFFSETS.offsets({CLICKS_0: 12}), "xcd"),
        (OFFSETS.offsets({CLICKS_0: 14, CLICKS_1: 0}, KafkaOffsetResetStrategy.NONE), "x"),
        (OFFSETS.offsets({CLICKS_0: 3}), "axbcd"),
    ],
    ids=str,
)
def test_reading_starts_where_the_source_says(tmp_path: Path, start: OFFSETS, read: str) -> None:
    assert "".join(clicks(records(tmp_path / "clicks.parquet", TIMED), start)) == read


@pytest.mark.parametrize(
    ("stop", "read"),
    [
        (OFFSETS.latest(), "axbcd"),
        (OFFSETS.earliest(), ""),
        (OFFSETS.timestamp(200), "ax"),
        (OFFSETS.timestamp(1000), "axbcd"),
        (OFFSETS.offsets({CLICKS_0: 12}, KafkaOffsetResetStrategy.LATEST), "axb"),
        (OFFSETS.offsets({CLICKS_0: 12}), "ab"),
        (OFFSETS.offsets({CLICKS_0: 99, CLICKS_1: 0}), "abcd"),
        (OFFSETS.committed_offsets(KafkaOffsetResetStrategy.LATEST), "axbcd"),
    ],
    ids=str,
)
def test_reading_stops_before_what_the_source_says(tmp_path: Path, stop: OFFSETS, read: str) -> None:
    assert "".join(clicks(records(tmp_path / "clicks.parquet", TIMED), stop=stop)) == read


@pytest.mark.parametrize(
    "start", [OFFSETS.latest(), OFFSETS.committed_offsets(KafkaOffsetResetStrategy.LATEST)], ids=str
)
def test_a_dump_counts_as_what_arrived_after_the_latest_offsets(tmp_path: Path, start: OFFSETS) -> None:
    with pytest.warns(
        UserWarning, match="starts at the latest offsets: the dump counts as what arrived after"
    ):
        assert "".join(clicks(records(tmp_path / "clicks.parquet", TIMED), start)) == "axbcd"


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (OFFSETS.committed_offsets(), "no committed offset of clicks-0 in the dump"),
        (OFFSETS.offsets({CLICKS_0: 12}, KafkaOffsetResetStrategy.NONE), "no offset of clicks-1 in the dump"),
        (
            OFFSETS.offsets({CLICKS_0: 3}, KafkaOffsetResetStrategy.NONE),
            "no record at the offset 3 of clicks-0",
        ),
        (OFFSETS.offsets({CLICKS_0: 15}), "the offset 15 of clicks-0, and the dump has the offsets 10 to 13"),
    ],
    ids=str,
)
def test_offsets_that_a_dump_does_not_have_are_refused(tmp_path: Path, start: OFFSETS, error: str) -> None:
    with pytest.raises(SourceError, match=error):
        clicks(records(tmp_path / "clicks.parquet", TIMED), start)


def test_times_are_not_offsets_where_records_have_no_timestamps(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the records of topic 'clicks' have no timestamps in the dump"):
        clicks(lines(tmp_path / "clicks.txt", ["a"]), OFFSETS.timestamp(5))


def test_partitions_are_read_alone_and_must_be_there(tmp_path: Path) -> None:
    dump = records(tmp_path / "clicks.parquet", TIMED)
    assert collected(builder().set_partitions({CLICKS_1}).build(), clicks=dump) == ["x"]
    missing = builder().set_partitions({CLICKS_1, KafkaTopicPartition("clicks", 4)}).build()
    with pytest.raises(SourceError, match=r"no records of the partitions clicks-4, .* they have clicks-1"):
        collected(missing, clicks=dump)


@pytest.mark.parametrize(
    ("columns", "error", "kind"),
    [
        ({"user": ["a"]}, "no column 'value' with the records' values; it has user", SchemaError),
        ({"value": [1]}, "column 'value' of the dump of topic 'clicks' is int64", SchemaError),
        ({"value": ["a"], "offset": ["b"]}, "column 'offset' .* is string, not integers", SchemaError),
        ({"value": ["a"], "topic": [0.5]}, "column 'topic' .* is double, not text", SchemaError),
        ({"value": ["a"], "timestamp": [True]}, "'timestamp'", SchemaError),
        ({"value": ["a"], "timestamp": [1_700_000_000]}, "1700000000 look like seconds", SchemaError),
        ({"value": ["a"], "offset": [-1]}, r"row 0 .* has -1 in column 'offset'", DataError),
        (
            {"value": ["a"], "partition": pa.array([None], pa.int32())},
            "null in column 'partition'",
            DataError,
        ),
        ({"value": ["a", "b"], "timestamp": ["2001-01-31", "noon"]}, r"row 1 .*'noon'", DataError),
    ],
)
def test_columns_without_records_are_refused(
    tmp_path: Path, columns: dict[str, Any], error: str, kind: type[Exception]
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "clicks.parquet")
    with pytest.raises(kind, match=error):
        clicks(tmp_path)


def test_a_value_that_cannot_be_read_is_named_by_its_record(tmp_path: Path) -> None:
    from flinkcore.common import Types
    from flinkcore.datastream.formats.json import JsonRowDeserializationSchema

    row = Types.ROW_NAMED(["n"], [Types.INT()])
    schema = JsonRowDeserializationSchema.builder().type_info(row)
    dump = records(tmp_path / "clicks.parquet", [(3, 7, 1, '{"n": 1}'), (3, 8, 2, "{"), (3, 9, 3, None)])
    source = builder("clicks").set_value_only_deserializer(schema.build())
    with pytest.raises(DataError, match="offset 8 of partition 3 of topic 'clicks'") as raised:
        collected(source.build(), clicks=dump)
    assert (raised.value.split, raised.value.position) == (3, 8)
    source.set_value_only_deserializer(schema.ignore_parse_errors().build())
    assert [row.n for row in collected(source.build(), clicks=dump)] == [1]


def test_a_tombstone_is_an_error_unless_the_schema_ignores_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"offset 1 of partition 0 .* its value is null, a tombstone"):
        clicks(records(tmp_path / "clicks.parquet", [(0, 0, 1, "a"), (0, 1, 2, None)]))


def test_a_dump_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere"):
        clicks(tmp_path / "nowhere")


def test_lines_and_columns_do_not_mix(tmp_path: Path) -> None:
    lines(tmp_path / "a.json", ["a"])
    records(tmp_path / "b.parquet", [(0, 0, 1, "a")])
    with pytest.raises(SourceError, match="files of lines and others"):
        clicks(tmp_path)


def test_a_source_that_is_replaced_keeps_its_own_settings() -> None:
    source = builder("clicks").set_property("fetch.min.bytes", "1").set_client_id_prefix("me").build()
    assert source.properties == {
        "bootstrap.servers": "broker:9092",
        "group.id": "group",
        "fetch.min.bytes": "1",
        "client.id.prefix": "me",
    }
    assert isinstance(source, KafkaSource)
