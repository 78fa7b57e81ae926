"""Chunks of a log whose times overlap: read side by side, a few at once, in the memory that they may take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from equipment.small_batches import read_in_batches_of, read_within

from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.columnar.replay.chunks_by_arrival import ChunksByArrival, most_overlapping
from flinkcore.common import MAX_TIMESTAMP, Row, Types, WatermarkStrategy
from flinkcore.datastream import FILE, KeyedProcessFunction, StreamExecutionEnvironment
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.table_chunks import TableChunk
from flinkcore.time_plane.time_pass import time_planes_of

ROWS, FILES = 240, 12


def rows_of(file: int) -> pa.Table:
    """Every n-th row of a log: all files overlap."""
    rows = range(file, ROWS, FILES)
    return pa.table({"ts": rows, "at": rows, "row": rows, "text": [f"row {row}" for row in rows]})


class Pass(KeyedProcessFunction):
    """Gives each event as it comes, and the watermark then."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        yield Row(value.row, value.text, ctx.timer_service().current_watermark())


def in_order(stream: Any) -> pa.Table:
    events = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    given = pa.schema({"row": pa.int64(), "text": pa.string(), "watermark": pa.int64()})
    return events.with_columns(all=pc.scalar(1)).key_by("all").process(Pass(), given).execute().to_arrow()


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("open_chunks", "held_bytes", "batch_rows"),
    [(16, 1 << 20, 1 << 17), (1, 1 << 20, 5), (3, 500, 3), (5, 0, 1), (16, 3_000, 7)],
)
def test_files_that_overlap_give_their_events_in_order_within_any_limits(
    format: str, open_chunks: int, held_bytes: int, batch_rows: int, tmp_path: Path
) -> None:
    for file in range(FILES):
        if format == "csv":
            pacsv.write_csv(rows_of(file), tmp_path / f"{file:02}.csv")
        else:
            pq.write_table(rows_of(file), tmp_path / f"{file:02}.parquet", row_group_size=9)
    env = StreamExecutionEnvironment().set_parallelism(1)
    read_in_batches_of(batch_rows, env)
    read_within(open_chunks, held_bytes, env)
    found = in_order(env.from_event_log(tmp_path, timestamp="ts", arrival="at", split=FILE))
    assert found["row"].to_pylist() == list(range(ROWS))
    assert found["text"].to_pylist() == [f"row {row}" for row in range(ROWS)]


def test_elements_of_files_that_overlap_come_in_order_within_any_limits(tmp_path: Path) -> None:
    for file in range(FILES):
        pq.write_table(rows_of(file), tmp_path / f"{file:02}.parquet")
    for open_chunks, held_bytes in ((16, 1 << 20), (2, 0)):
        env = StreamExecutionEnvironment().set_parallelism(1)
        read_in_batches_of(4, env)
        read_within(open_chunks, held_bytes, env)
        log = env.from_event_log(tmp_path, timestamp="ts", arrival="at", split=FILE)
        events = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        elements = events.elements().map(lambda row: row.row, Types.LONG()).execute_and_collect()
        assert list(elements) == list(range(ROWS))


@dataclass
class Opened:
    """How many chunks are open, and were open at most."""

    now: int = 0
    most: int = 0


@dataclass(frozen=True)
class CountedChunk(TableChunk):
    """A chunk that counts how many of its kind are open."""

    opened: Any = None

    def _read(self, columns: Any, batch_rows: int, *settings: Any) -> Iterator[pa.RecordBatch]:
        self.opened.now += 1
        self.opened.most = max(self.opened.most, self.opened.now)
        try:
            yield from super()._read(columns, batch_rows, *settings)
        finally:
            self.opened.now -= 1


def chunks_of(tables: Sequence[pa.Table], opened: Opened) -> list[Chunk]:
    return [
        CountedChunk(index, f"chunk {index}", len(table), None, 0, table, opened=opened)
        for index, table in enumerate(tables)
    ]


def reading_of(
    chunks: Sequence[Chunk], open_chunks: int, batch_rows: int = 4, in_log_order: bool = False
) -> ChunksByArrival:
    plan = plan_of(batch_rows).logs[0]
    plan = replace(plan, open_chunks=open_chunks)
    (plane,) = time_planes_of([plan], [chunks], 1)
    return ChunksByArrival([ChunkReader(plan, plane)], chunks, in_log_order)


def plan_of(batch_rows: int) -> JobPlan:
    env = StreamExecutionEnvironment()
    read_in_batches_of(batch_rows, env)
    table = rows_of(0).append_column("split", pa.array(["a"] * len(rows_of(0))))
    log = env.from_event_log(table, timestamp="ts", arrival="at", split="split")
    events = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    given = pa.schema({"row": pa.int64(), "text": pa.string(), "watermark": pa.int64()})
    stream = events.key_by("row").process(Pass(), given)
    return make_plan(StreamGraph(stream._transformation), env.get_config())


def with_split(table: pa.Table, split: str) -> pa.Table:
    return table.append_column("split", pa.array([split] * len(table)))


@pytest.mark.parametrize("most", [1, 2, 5, 16])
def test_no_more_chunks_are_open_than_may_be(most: int) -> None:
    opened = Opened()
    chunks = chunks_of([with_split(rows_of(file), f"s{file}") for file in range(FILES)], opened)
    reading = reading_of(chunks, most)
    opened.most = 0
    rows = [row for (read,) in reading.batches for row in read.events.batch["row"].to_pylist()]
    assert sorted(rows) == list(range(ROWS))
    assert opened.most == min(most, FILES)
    assert opened.now == 0


def test_chunks_that_follow_each_other_are_open_one_at_a_time() -> None:
    opened = Opened()
    all_rows = pa.concat_tables(map(rows_of, range(FILES))).sort_by("at")
    chunks = chunks_of([with_split(all_rows.slice(at, 20), f"s{at}") for at in range(0, ROWS, 20)], opened)
    # The log need not have them in their order of time.
    chunks = [replace(chunk, index=index) for index, chunk in enumerate(reversed(chunks))]
    reading = reading_of(chunks, 16)
    opened.most = 0
    assert [row for (read,) in reading.batches for row in read.events.batch["row"].to_pylist()] == list(
        range(ROWS)
    )
    assert opened.most == 1


def test_the_chunk_that_lags_most_is_read_and_bounds_what_is_still_to_come() -> None:
    tables = [with_split(rows_of(file), f"s{file}") for file in range(FILES)]
    reading = reading_of(chunks_of(tables, Opened()), 16)
    left = set(range(ROWS))
    seen, held = [], 0
    for (read,) in reading.batches:
        rows = read.events.batch["row"].to_pylist()
        left -= set(rows)
        seen += rows
        assert reading.floor_ms <= min(left, default=MAX_TIMESTAMP)
        held = max(held, sum(row >= reading.floor_ms for row in seen))
    assert not left
    assert held <= FILES * 4  # a batch of each


def test_chunks_may_be_read_in_the_order_of_the_log() -> None:
    tables = [with_split(rows_of(file), f"s{file}") for file in range(FILES)]
    reading = reading_of(chunks_of(tables, Opened()), 16, in_log_order=True)
    found = [row for (read,) in reading.batches for row in read.events.batch["row"].to_pylist()]
    assert found == [row for table in tables for row in table["row"].to_pylist()]


def test_a_reading_that_ends_early_closes_what_is_open() -> None:
    opened = Opened()
    reading = reading_of(chunks_of([with_split(rows_of(file), f"s{file}") for file in range(3)], opened), 16)
    for _ in range(3):
        next(reading.batches)
    assert opened.now == 3
    reading.close()
    assert opened.now == 0


def test_chunks_that_overlap_are_counted_when_they_are_most() -> None:
    first_ms = np.array([0, 5, 6, 20, 30, 100])
    last_ms = np.array([9, 7, 30, 21, 40, 100])
    assert most_overlapping(first_ms, last_ms).tolist() == [3, 3, 3, 2, 2, 1]
    assert most_overlapping(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []


def batches_read(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> dict[bool, list[int]]:
    """Return the rows of the batches that the time pass reads (False), and then those of all columns (True)."""
    read: dict[bool, list[int]] = {}
    read_chunk = TableChunk._read

    def noted(chunk: TableChunk, columns: Any, *settings: Any) -> Iterator[pa.RecordBatch]:
        for batch in read_chunk(chunk, columns, *settings):
            read.setdefault("text" in batch.schema.names, []).append(batch.num_rows)
            yield batch

    monkeypatch.setattr(TableChunk, "_read", noted)
    env = StreamExecutionEnvironment().set_parallelism(1)
    events = env.from_event_log(table, timestamp="ts", arrival="at", split=None)
    events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).to_arrow()
    return read


def test_times_of_a_table_are_read_in_batches_of_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 300_000
    table = pa.table(
        {"ts": range(rows), "at": range(rows), "text": ["a row of forty letters, or nearly so..."] * rows}
    )
    read = batches_read(table, monkeypatch)
    assert read[False] == read[True] == [131_072, 131_072, 37_856]


def test_times_of_a_table_with_dictionaries_are_read_in_smaller_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = 150_000
    numbers = pa.array(range(rows))
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["a text of many letters" * 8])
    wide = dict.fromkeys(("ts", "at", "a", "b", "c", "d"), numbers)
    read = batches_read(pa.table({**wide, "text": texts}), monkeypatch)
    assert max(read[False]) < max(read[True])
