"""Partitions and shards that the paths of a log name are its splits, unless another split is asked for."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.topic_dumps import builder, collected

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import FILE, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.errors import DataError, SourceError
from flinkcore.log.event_log import EventLog
from flinkcore.log.files.topic_paths import partitions_of


def _write(folder: Path, name: str, times: range) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"at": f"2024-01-01T00:{at // 60:02}:{at % 60:02}Z", "user": at % 3} for at in times]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _job(log: Any, **settings: Any) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    return (
        env.from_event_log(log, timestamp="at", **settings)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
        )
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(events=count())
    )


def _rows(result: Any) -> list[tuple[Any, ...]]:
    table = result.to_arrow().select(["user", "window_start", "events"])
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize(
    ("paths", "partitions"),
    [
        (["t/partition=0/a.json", "t/partition=12/b.json"], [0, 12]),
        (["t/Partition=0/a.json"], [0]),
        (["t/shard_id=shardId-000000000001/a"], ["shardId-000000000001"]),
        (["t/shard=1/a", "t/shard=shardId-2/a"], ["1", "shardId-2"]),
        (["t/partition=0/date=2001-01-01/a", "t/partition=1/date=2001-01-01/a"], [0, 1]),
        (["t/date=2001-01-01/partition=1/a", "t/date=2001-01-02/partition=1/a"], [1, 1]),
        (["t/2001/01/31/partition=1/a", "t/2001/02/01/partition=1/a"], [1, 1]),
        (["clicks/partition=0/a", "orders/partition=0/a"], ["clicks/0", "orders/0"]),
        (["t/topic=a/partition=0/x", "t/topic=b/partition=0/x"], ["a/0", "b/0"]),
        (["t/partition=3/topic=a/x", "t/partition=3/Topic=b/x"], ["a/3", "b/3"]),
        (["t/topic=a/partition=0/x", "t/topic=a/partition=1/x"], [0, 1]),
        (["d/clicks+0+0000000000.avro", "d/clicks+1+0000000000.avro"], [0, 1]),
        (["2001/01/clicks+0+0.json.gz", "2001/02/clicks+0+70.json.gz"], [0, 0]),
        (["d/a+0+0.json", "d/b+0+0.json"], ["a/0", "b/0"]),
        (["t/partition=5/clicks+5+0.json", "t/clicks+4+0.json"], [5, 4]),
    ],
)
def test_paths_name_their_partitions(paths: list[str], partitions: list[Any]) -> None:
    assert partitions_of(paths) == partitions


@pytest.mark.parametrize(
    "paths",
    [
        ["t/a.json"],
        ["t/partition=0/a.json", "t/a.json"],
        ["t/partition=20010131/a.json"],
        ["t/partition=eu/a.json"],
        ["t/partition=/a.json"],
        ["t/date=2001-01-01/a.json"],
        ["a+b.json", "a+1.json"],
        ["partition=0"],
        [],
    ],
)
def test_paths_without_a_partition_in_each_name_none(paths: list[str]) -> None:
    assert partitions_of(paths) is None


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("partition=7/clicks+3+0.json", "is of partition 3 by its name, and of 7 by a directory"),
        ("topic=views/clicks+3+0.json", "is of topic clicks by its name, and of views by a directory"),
    ],
)
def test_directories_and_names_that_contradict_each_other_are_refused(
    tmp_path: Path, path: str, says: str
) -> None:
    _write(tmp_path, path, range(3))
    with pytest.raises(SourceError, match=says):
        _job(tmp_path).execute()
    with pytest.raises(SourceError, match=says):
        collected(builder("clicks").build(), clicks=tmp_path)
    assert _job(tmp_path, split=None).execute().report.windowed == 3


@pytest.fixture
def by_directory(tmp_path: Path) -> Path:
    for partition in range(3):
        _write(tmp_path, f"clicks/partition={partition}/part.json", range(partition, 600, 3))
    return tmp_path / "clicks"


def test_each_directory_of_a_partition_is_a_split(by_directory: Path) -> None:
    result = _job(by_directory).execute()
    assert _rows(result) == _rows(_job(by_directory, split="partition").execute())
    assert result.report.late == 0
    assert set(result.report.split_watermarks) == {0, 1, 2}


def test_a_list_of_directories_is_split_alike(by_directory: Path) -> None:
    directories = sorted(by_directory.iterdir())
    result = _job(directories).execute()
    assert _rows(result) == _rows(_job(by_directory).execute())
    assert set(result.report.split_watermarks) == {0, 1, 2}


@pytest.mark.parametrize(
    ("paths", "columns"),
    [
        (["clicks/day=1", "clicks/day=2/"], {"day": [1, 2], "hour": [3, 4]}),
        (["clicks/day=1/*", "clicks/day=2"], {"day": [1, 2], "hour": [3, 4]}),
        (["clicks/day=1/hour=3/a.json", "clicks/day=2/hour=4/a.json"], {"day": [1, 2], "hour": [3, 4]}),
        (["clicks", "clicks/day=2"], {"day": [1, 2], "hour": [3, 4]}),
        (["clicks/day=1"], {"hour": [3]}),
        (["clicks/day=1/hour=3", "others"], {}),
    ],
)
def test_several_directories_give_the_columns_of_their_common_parent(
    tmp_path: Path, paths: list[str], columns: dict[str, list[int]]
) -> None:
    for name in ("clicks/day=1/hour=3/a.json", "clicks/day=2/hour=4/a.json", "others/a.json"):
        _write(tmp_path, name, range(1))
    log = EventLog.of([f"{tmp_path}/{path}" for path in paths], LogSettings(timestamp="at"))
    assert log.schema.names == ["at", "user", *columns]
    rows = [
        row for chunk in log.chunks(1) for batch in chunk.read(list(columns), 10) for row in batch.to_pylist()
    ]
    assert not columns or rows == [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]


def test_files_of_kafka_connect_are_split_by_partition_and_not_by_file(tmp_path: Path) -> None:
    for partition in range(2):
        for hour in range(3):
            times = range(hour * 200 + partition, hour * 200 + 200, 2)
            _write(tmp_path, f"year=2024/hour={hour}/clicks+{partition}+{hour * 100:010}.json", times)
    result = _job(tmp_path).execute()
    assert set(result.report.split_watermarks) == {0, 1}
    assert result.report.late == 0
    assert result.report.windowed == 600


def test_topics_have_partitions_of_their_own(tmp_path: Path) -> None:
    _write(tmp_path, "clicks/partition=0/a.json", range(300))
    _write(tmp_path, "views/partition=0/a.json", range(300))
    result = _job(tmp_path).execute()
    assert [str(split).rsplit("/", 2)[1:] for split in result.report.split_watermarks] == [
        ["clicks", "0"],
        ["views", "0"],
    ]
    assert result.report.late == 0


def test_other_splits_are_those_asked_for(by_directory: Path) -> None:
    one = _job(by_directory, split=None).execute()
    assert set(one.report.split_watermarks) == {None}
    assert one.report.late > 0
    by_file = _job(by_directory, split=FILE).execute()
    assert all(str(split).endswith("part.json") for split in by_file.report.split_watermarks)


def test_position_orders_the_rows_of_each_partition(tmp_path: Path) -> None:
    for partition in range(2):
        times = range(599 - partition, 0, -2)  # backwards
        _write(tmp_path, f"partition={partition}/part.json", times)
    result = _job(tmp_path, position="at").execute()
    assert result.report.late == 0
    assert set(result.report.split_watermarks) == {0, 1}


def test_explain_and_report_say_that_paths_split_the_log(by_directory: Path) -> None:
    line = "splits: each of the 3 partitions in the paths of its files is a split (split=None: the log is one split)"
    stream = _job(by_directory)
    assert line in stream.explain()
    assert line in str(stream.execute().report).splitlines()
    for split in (None, "partition", FILE):
        other = _job(by_directory, split=split)
        assert "paths" not in other.explain()
        assert "paths" not in str(other.execute().report)


def test_a_table_in_memory_is_one_split() -> None:
    table = pa.table({"at": [1_700_000_000_000 + at for at in range(10)], "user": [1] * 10})
    stream = _job(table)
    assert "one split" in stream.explain()
    assert set(stream.execute().report.split_watermarks) == {None}


# ---- offsets of Kafka Connect


def _connect(folder: Path, name: str, first: int, rows: int) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"at": 1000 * (first + n), "user": 0, "n": first + n}) + "\n" for n in range(rows)]
    path.write_text("".join(lines))


def _events(log: Any, **settings: Any) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    events = env.from_event_log(log, timestamp="at", **settings)
    return events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).execute()


def test_files_of_kafka_connect_are_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    _connect(tmp_path, "hour=10/clicks+0+0000000100.json", 100, 50)
    _connect(tmp_path, "hour=11/clicks+0+0000000000.json", 0, 100)
    _connect(tmp_path, "hour=09/clicks+1+0000000007.json", 7, 5)
    result = _events(tmp_path)
    rows = result.to_arrow()["n"].to_pylist()
    assert [n for n in rows if n >= 12 or n < 7] == [*range(7), *range(12, 150)]
    assert any(
        "in the order of the offsets in their names" in fact for fact in str(result.report).splitlines()
    )


def test_files_that_begin_at_one_offset_are_reported(tmp_path: Path) -> None:
    _connect(tmp_path, "hour=10/clicks+0+0000000100.json", 100, 50)
    _connect(tmp_path, "hour=11/clicks+0+0000000100.json", 100, 50)
    with pytest.warns(
        UserWarning, match=r"hour=10/.*0100\.json has 50 rows from offset 100 on, and .*hour=11/"
    ) as said:
        assert _events(tmp_path).to_arrow().num_rows == 100
    assert len(said) == 1


def test_files_that_overlap_in_a_directory_are_reported(tmp_path: Path) -> None:
    _connect(tmp_path, "partition=0/clicks+0+0000000000.json", 0, 43)
    _connect(tmp_path, "partition=0/clicks+0+0000000042.json", 42, 8)
    _connect(tmp_path, "partition=0/clicks+0+0000000050.json", 50, 8)
    with pytest.warns(
        UserWarning, match=r"0000\.json has 43 rows from offset 0 on, .*0042\.json begins with offset 42"
    ):
        _events(tmp_path).to_arrow()


def test_files_of_hours_whose_records_take_turns_do_not_overlap(tmp_path: Path) -> None:
    _connect(tmp_path, "hour=10/clicks+0+0000000000.json", 0, 100)
    _connect(tmp_path, "hour=11/clicks+0+0000000050.json", 50, 100)
    _connect(tmp_path, "hour=10/clicks+0+0000000180.json", 180, 5)
    assert _events(tmp_path).to_arrow().num_rows == 205


def test_an_error_says_the_offset_of_a_row(tmp_path: Path) -> None:
    _connect(tmp_path, "clicks+0+0000000042.json", 42, 3)
    with (tmp_path / "clicks+0+0000000042.json").open("a") as file:
        file.write('{"user": 0}\n')
    with pytest.raises(
        DataError, match=r"row 3 .*0042\.json \(offset 45, if the file has all from 42 on\): null"
    ):
        _events(tmp_path).to_arrow()
