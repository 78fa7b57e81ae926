"""Small files that follow each other in a log are read together, and once, by a job in one process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.event_logs import event_log
from equipment.small_batches import limit

from flinkcore.common import OutputTag, Time, WatermarkStrategy
from flinkcore.common.split_origin import FILE, PARTITION
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.errors import DataError, SourceError
from flinkcore.log.event_log import EventLog
from flinkcore.log.formats.columnar_formats import ParquetFormat
from flinkcore.log.sources.packed_files import PackedFiles, Packing

FILES = 12
ROWS = 5


def written(folder: Path, number: int, **columns: pa.Array) -> Path:
    """A file of five rows, one for each ms from 5 times its number on."""
    first = ROWS * number
    rows = {
        "at": pa.array(range(first, first + ROWS)),
        "user": pa.array([f"u{row % 3}" for row in range(first, first + ROWS)]),
        "value": pa.array(range(first, first + ROWS)),
    }
    path = folder / f"{number:02}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows | columns), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(FILES):
        written(tmp_path, number)
    return tmp_path


def counted(folder: Path, env: StreamExecutionEnvironment | None = None, **settings: Any) -> DataStream:
    env = StreamExecutionEnvironment() if env is None else env
    log = env.set_parallelism(2).from_event_log(folder, timestamp="at", arrival="at", **settings)
    events = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    windows = events.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(7)))
    return windows.aggregate(n=count(), total=sum_("value"))


def rows_of(stream: DataStream) -> list[Any]:
    return sorted(map(str, stream.execute().to_arrow().to_pylist()))


def packs(
    log: EventLog, most_bytes: int = 1 << 20, target: int = 1, most_files: int | None = None
) -> list[int]:
    """The number of files of each chunk."""
    chunks = log.chunks(target, Packing(most_bytes, most_files=most_files))
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    return [len(chunk.files) if isinstance(chunk, PackedFiles) else 1 for chunk in chunks]


def test_small_files_share_a_chunk_up_to_its_size(folder: Path) -> None:
    log = event_log(str(folder), timestamp="at", arrival="at")
    size = log.size_bytes // FILES + 1
    assert packs(log) == [FILES]
    assert packs(log, 5 * size) == [5, 5, 2]
    assert packs(log, size // 2) == [1] * FILES
    assert 4 <= len(packs(log, target=4)) <= 6
    assert packs(log, most_files=5) == [5, 5, 2]
    assert packs(log, most_files=1) == [1] * FILES


@pytest.mark.parametrize("settings", [{"split": FILE}, {"until_ms": 30}], ids=str)
def test_files_that_are_splits_or_cut_are_chunks_of_their_own(folder: Path, settings: Any) -> None:
    assert packs(event_log(str(folder), timestamp="at", arrival="at", **settings)) == [1] * FILES


def test_files_of_different_partitions_are_apart(tmp_path: Path) -> None:
    for number in range(6):
        written(tmp_path / f"partition={number // 3}", number)
    log = event_log(str(tmp_path), timestamp="at", arrival="at", split=PARTITION)
    assert packs(log) == [3, 3]


@pytest.mark.parametrize("kept_bytes", [0, 300, 1 << 20])
@pytest.mark.parametrize("packed_bytes", [0, 5_000, 1 << 20])
def test_results_do_not_depend_on_how_files_are_read(
    folder: Path, packed_bytes: int, kept_bytes: int
) -> None:
    pa_file = pq.read_table(folder / "03.parquet").drop_columns(["value"])
    pq.write_table(pa_file, folder / "03.parquet")  # lacks a column
    pq.write_table(pa_file.slice(0, 0), folder / "05.parquet")  # has no row
    narrow = pq.read_table(folder / "07.parquet").cast(
        pa.schema({"at": pa.int32(), "user": pa.string(), "value": pa.int16()})
    )
    pq.write_table(narrow, folder / "07.parquet")
    env = StreamExecutionEnvironment()
    limit(env, packed_bytes=packed_bytes, kept_bytes=kept_bytes)
    alone = StreamExecutionEnvironment()
    limit(alone, packed_bytes=0)
    assert rows_of(counted(folder, env)) == rows_of(counted(folder, alone))


def times_read(stream: DataStream) -> int:
    """How many times a file has been read for its rows."""
    read = ParquetFormat.batches
    found: list[str] = []

    def counting(self: ParquetFormat, file: Any, *given: Any) -> Iterator[pa.RecordBatch]:
        found.append(file.path)
        return read(self, file, *given)

    with patch.object(ParquetFormat, "batches", counting):
        stream.execute().to_arrow()
    return len(found)


@pytest.mark.parametrize(
    ("kept_bytes", "expected"), [(1 << 20, FILES), (0, 2 * FILES)], ids=["room", "no room"]
)
def test_files_are_read_once_if_their_rows_have_room(folder: Path, kept_bytes: int, expected: int) -> None:
    env = StreamExecutionEnvironment()
    limit(env, kept_bytes=kept_bytes)
    assert times_read(counted(folder, env)) == expected


def test_some_files_are_read_once_if_there_is_room_for_a_part(folder: Path) -> None:
    env = StreamExecutionEnvironment()
    limit(env, packed_bytes=5_000, kept_bytes=1_000)
    assert FILES < times_read(counted(folder, env)) < 2 * FILES


def test_an_error_names_the_file_of_a_row_among_many(folder: Path) -> None:
    written(folder, 4, at=pa.array([20, 21, None, 23, 24]))
    with pytest.raises(DataError, match=r"row 2 \(from 0\) of .*/04\.parquet: null timestamp") as failed:
        counted(folder).execute().to_arrow()
    assert (failed.value.file, failed.value.row) == (str(folder / "04.parquet"), 2)


def test_a_null_key_names_the_file_of_its_row(folder: Path) -> None:
    written(folder, 4, user=pa.array(["a", "b", None, "d", "e"]))
    with pytest.raises(DataError, match=r"/04\.parquet: key column 'user' is null at position 22") as failed:
        counted(folder).execute().to_arrow()
    assert failed.value.file == str(folder / "04.parquet")


def test_a_null_key_after_a_filter_names_the_file_of_its_row(folder: Path) -> None:
    written(folder, 4, user=pa.array(["a", "b", None, "d", "e"]))
    log = StreamExecutionEnvironment().from_event_log(folder, timestamp="at", arrival="at")
    events = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    odd = events.filter(pc.bit_wise_and(pc.field("value"), 1) == 0)
    with pytest.raises(DataError, match=r"/04\.parquet: key column 'user' is null"):
        odd.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(7))).aggregate(
            n=count()
        ).execute().to_arrow()


def test_the_reason_of_a_null_column_names_the_file_that_lacks_it(folder: Path) -> None:
    table = pq.read_table(folder / "06.parquet").drop_columns(["user"])
    pq.write_table(table, folder / "06.parquet")
    with pytest.raises(DataError, match=r"/06\.parquet: key column 'user' .*the file lacks column 'user'"):
        counted(folder).execute().to_arrow()


def test_rejected_rows_name_their_files(folder: Path) -> None:
    written(folder, 4, at=pa.array([20, 21, None, 23, 24]))
    written(folder, 9, user=pa.array([None, "b", "c", "d", "e"]))
    tag = OutputTag("bad")
    result = counted(folder, on_bad_row=tag).execute()
    result.to_arrow()
    rejected = result.get_side_output(tag).to_arrow().to_pylist()
    found = {row["reason"]: (Path(row["record"]["file"]).name, row["record"]["row"]) for row in rejected}
    assert found == {"null timestamp": ("04.parquet", 2), "null key 'user'": ("09.parquet", None)}


def test_a_damaged_file_among_many_is_named(folder: Path) -> None:
    path = folder / "08.parquet"
    damaged = bytearray(path.read_bytes())
    damaged[10:60] = b"\xff" * 50
    path.write_bytes(damaged)
    with pytest.raises(SourceError, match=r"08\.parquet cannot be read"):
        counted(folder).execute().to_arrow()


def test_warnings_of_a_file_among_many_are_given_once(folder: Path) -> None:
    log = event_log(str(folder), timestamp="at", arrival="at")
    log.schema  # noqa: B018, found now
    written(folder, 4, more=pa.array(range(ROWS)))
    memory = log.first_reading(["at"], 1 << 20)
    (chunk,) = log.chunks(1, Packing(1 << 20, memory))
    for _ in range(2):
        warnings: list[str] = []
        assert sum(batch.num_rows for batch in chunk.read(["at"], 100, warnings=warnings)) == FILES * ROWS
        assert [text for text in warnings if "04.parquet has columns that the log does not have" in text]
        assert len(warnings) == 1


def test_rows_that_are_kept_are_given_up_as_they_are_read_last(folder: Path) -> None:
    log = event_log(str(folder), timestamp="at", arrival="at")
    memory = log.first_reading(["at", "value"], 1 << 20)
    (chunk,) = log.chunks(1, Packing(1 << 20, memory))
    first = pa.Table.from_batches(list(chunk.read(["at"], 7)))
    room = memory._room
    memory.is_last = True
    second = pa.Table.from_batches(list(chunk.read(["value", "at"], 4)))
    assert second["at"].to_pylist() == first["at"].to_pylist() == list(range(FILES * ROWS))
    assert memory._room > room
    assert memory._room == 1 << 20
