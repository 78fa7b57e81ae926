"""Times of events that are kept between the passes over a log."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.event_log import packed_integers, unpacked_integers
from flinkcore.columnar import planned_job
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import DataError
from flinkcore.log.sources.file_chunks import FileChunk

NEAR = st.integers(-300, 70_000)
ANY = st.integers(-(2**63), 2**63 - 1)


@settings(deadline=None)
@given(st.lists(st.lists(NEAR, max_size=300) | st.lists(ANY, max_size=300), max_size=4))
def test_packed_integers_are_those_that_were_packed(drawn: list[list[int]]) -> None:
    values = np.array([value for part in drawn for value in part], np.int64)
    packed = packed_integers(values)
    found = np.empty(len(values), np.int64)
    unpacked_integers(packed, found)
    assert found.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("reach", "width"), [(0, 0), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32, 8)]
)
def test_integers_take_as_many_bytes_as_their_differences(reach: int, width: int) -> None:
    values = np.arange(1024) % 2 * reach - 2**62
    assert packed_integers(values).nbytes == 4 * (16 + 256 * width)


def test_bytes_of_other_integers_are_refused() -> None:
    packed = packed_integers(np.arange(300))
    odd = packed.copy()
    odd[8] = 3
    for given_bytes, n in (
        (packed, 200),
        (packed, 600),
        (packed[:-8], 300),
        (packed[:0], 1),
        (odd, 300),
        (packed, 0),
    ):
        with pytest.raises(DataError, match="are not those of"):
            unpacked_integers(given_bytes, np.empty(n, np.int64))


def log(folder: Path) -> str:
    random = np.random.default_rng(3)
    arrival = np.cumsum(random.integers(0, 90, 3_000))
    table = pa.table(
        {
            "ts": arrival - random.integers(0, 5_000, 3_000),
            "arrival": arrival,
            "split": random.integers(0, 3, 3_000),
            "key": random.integers(0, 5, 3_000),
        }
    )
    for number in range(2):
        pq.write_table(table.slice(number * 1_500, 1_500), folder / f"{number}.parquet", row_group_size=500)
    return str(folder)


def stream(path: str) -> DataStream:
    return (
        StreamExecutionEnvironment.get_execution_environment()
        .set_parallelism(2)
        .from_event_log(path, timestamp="ts", arrival="arrival", split="split")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
        )
    )


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    rows: list[int] = []
    read_chunk = FileChunk._read

    def counted(chunk: FileChunk, *settings: Any) -> Any:
        for batch in read_chunk(chunk, *settings):
            rows.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(FileChunk, "_read", counted)
    monkeypatch.setattr(planned_job, "CHUNK_BYTES", 1)
    return rows


@pytest.mark.parametrize(
    ("most_bytes", "read"),
    [
        (1 << 20, range(3_000, 3_001)),
        (9_000, range(3_500, 6_000)),  # times of some chunks
        (0, range(6_000, 6_001)),
    ],
)
def test_events_whose_times_have_room_are_read_once(
    tmp_path: Path, rows_read: list[int], monkeypatch: pytest.MonkeyPatch, most_bytes: int, read: range
) -> None:
    def frontier(kept_bytes: int) -> pa.Table:
        monkeypatch.setattr(planned_job, "KEPT_BYTES", kept_bytes)
        return stream(path).lateness([TumblingEventTimeWindows.of(Time.seconds(5))]).to_arrow()

    path = log(tmp_path)
    found = frontier(most_bytes)
    assert sum(rows_read) in read
    assert found.num_rows > 20
    assert found.equals(frontier(0))


def test_events_are_read_again_where_not_all_of_them_count(tmp_path: Path, rows_read: list[int]) -> None:
    path = log(tmp_path)
    stream(path).filter(pc.field("key") > 1).lateness()
    assert sum(rows_read) == 6_000
    rows_read.clear()
    windows = stream(path).key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(5)))
    windows.aggregate(n=count()).lateness()  # events with null keys would be rejected
    assert sum(rows_read) == 6_000
