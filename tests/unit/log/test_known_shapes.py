"""Logs with the columns of Kafka's records need no settings: split, order and time are recognised."""

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.kafka_messages import kafka_table

import flinkcore as fc
from flinkcore.cli import main
from flinkcore.errors import ConfigurationError, SchemaError


def events(log: Any, **settings: Any) -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = env.from_event_log(log, **settings)
    return stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())


def shuffled(table: pa.Table) -> pa.Table:
    return table.take([7 * row % len(table) for row in range(len(table))])


def as_redpanda(table: pa.Table) -> pa.Table:
    fields = ["partition", "offset", "timestamp", "key"]
    records = pa.StructArray.from_arrays([table[name].combine_chunks() for name in fields], fields)
    return pa.table({"redpanda": records, "user": table["key"]})


def as_tableflow(table: pa.Table) -> pa.Table:
    names = {f"$${name}": table[name] for name in ("topic", "partition", "offset", "timestamp")}
    return pa.table({"user": table["key"], **names})


def as_kafka(table: pa.Table) -> pa.Table:
    return table


@pytest.mark.parametrize("shape", [as_kafka, as_redpanda, as_tableflow])
def test_partitions_are_splits_and_offsets_their_order(shape: Any, tmp_path: Path) -> None:
    table = shape(shuffled(kafka_table([b"{}"] * 20, 3)))
    key = "key" if shape is as_kafka else "user"
    pq.write_table(table, tmp_path / "part-0.parquet")
    for log in (table, tmp_path):
        stream = events(log)
        result = stream.execute()
        rows = result.to_arrow()[key].to_pylist()
        assert rows == [b"k%d" % n for n in range(20)]
        assert result.report.late == 0
        splits = {"clicks/0", "clicks/1", "clicks/2"} if shape is not as_redpanda else {0, 1, 2}
        assert set(result.report.split_watermarks) == splits
        assert "in the order of" in stream.explain()
        assert not [name for name in result.to_arrow().column_names if name.startswith("__")]


def test_times_of_windows_are_those_of_the_records() -> None:
    size = fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(10))
    windows = events(as_redpanda(kafka_table([b""] * 20))).window_all(size)
    rows = windows.aggregate(n=fc.count()).to_arrow().to_pylist()
    assert [(row["window_start"], row["n"]) for row in rows] == [
        (datetime.fromtimestamp(10 * n, timezone.utc), 10) for n in range(2)
    ]


def test_topics_have_partitions_of_their_own() -> None:
    both = pa.concat_tables([kafka_table([b""] * 4, 2), kafka_table([b""] * 4, 2, "views")])
    splits = events(both).execute().report.split_watermarks
    assert sorted(splits) == ["clicks/0", "clicks/1", "views/0", "views/1"]


@pytest.mark.parametrize("by", [["topic", "partition"], ["partition"], ["topic"], ["partition", "topic"]])
def test_directories_merge_no_topics(tmp_path: Path, by: list[str]) -> None:
    both = pa.concat_tables([kafka_table([b""] * 40, 2), kafka_table([b""] * 40, 2, "views")])
    pq.write_to_dataset(both, tmp_path, by)
    found = events(tmp_path).execute()
    assert sorted(found.report.split_watermarks) == ["clicks/0", "clicks/1", "views/0", "views/1"]
    rows = found.to_arrow().select(["topic", "partition", "offset"]).to_pylist()
    of_one = [row["offset"] for row in rows if (row["topic"], row["partition"]) == ("views", 1)]
    assert of_one == list(range(20))
    assert found.report.late == 0


def test_settings_that_are_given_count() -> None:
    table = shuffled(kafka_table([json.dumps({"at": 500 * n}).encode() for n in range(20)], 1))
    decode = {"value": fc.json_values("at BIGINT")}
    result = events(table, timestamp=pc.field("value", "at"), decode=decode).execute()
    assert "event time 1970-01-01 00:00:00.000Z to 1970-01-01 00:00:09.500Z" in str(result.report)
    assert [each["at"] for each in result.to_arrow()["value"].to_pylist()] == [500 * n for n in range(20)]
    whole = events(table, split=None).execute()
    assert whole.to_arrow()["offset"].to_pylist() == table["offset"].to_pylist()
    assert set(whole.report.split_watermarks) == {None}


def test_a_table_of_delta_needs_no_settings(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "clicks", as_kafka(kafka_table([b"{}"] * 4, 2)))
    env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = env.from_delta(str(tmp_path / "clicks"))
    events = stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
    assert len(events.execute().to_arrow()) == 4


def test_other_logs_need_a_timestamp() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"timestamp= is missing\. Name .*: at, user\. .*: Spark's DataFrame of Kafka",
    ):
        events(pa.table({"at": [1], "user": ["a"]})).to_arrow()


def test_a_command_needs_no_settings_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(as_tableflow(shuffled(kafka_table([b""] * 20))), tmp_path / "a.parquet")
    arguments = ["replay", str(tmp_path / "a.parquet"), "--engine", "embedded", "--key", "$$topic", "--quiet"]
    arguments += ["--window", "tumbling:10s", "--aggregate", "n=count()", "--output", str(tmp_path / "out")]
    assert main(arguments) == 0, capsys.readouterr().err
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == [10, 10]


def test_messages_name_no_hidden_column_and_no_name_twice() -> None:
    decode = {"value": fc.json_values("user STRING, ts BIGINT")}
    log = kafka_table([b'{"user": "a", "ts": 1}'])
    columns = "key, value, topic, partition, offset, timestamp, timestampType"
    with pytest.raises(SchemaError, match=f"timestamp= names column 'at', which .* have: {columns}$"):
        events(log, timestamp="at").to_arrow()
    keyed = events(log, timestamp="value.ts", decode=decode).key_by("value.usr")
    with pytest.raises(SchemaError, match=r"Did you mean 'value\.user' or 'value\.ts'\?$"):
        keyed.window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(1))).aggregate(
            n=fc.count()
        ).to_arrow()


def test_the_plan_does_not_contradict_the_splits_that_were_recognised(tmp_path: Path) -> None:
    table = kafka_table([b"{}"] * 4, 2)
    pq.write_table(table, tmp_path / "1.parquet")
    assert "one split, unless its columns are those of Kafka" in events(table).explain()
    assert "one split, or one for each partition in its paths or columns" in events(tmp_path).explain()
