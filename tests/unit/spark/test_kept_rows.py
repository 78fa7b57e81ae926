"""Rows of a DataFrame that are packed for Spark to keep, and read again."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkNotImplementedError

from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.common import ExecutionConfig, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import ConfigurationError
from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark.exchange.summary_rows import packed_block
from flinkcore.spark.logs import kept_rows
from flinkcore.spark.logs.kept_rows import KeptPartitions, PackTask
from flinkcore.spark.shipping.shared_values import Shared
from flinkcore.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.time_plane.record_blocks import RecordBlock
from flinkcore.time_plane.time_pass import TimePass, summarised_together

TABLE = pa.table(
    {
        "ts": list(range(200)),
        "at": [i // 3 * 3 for i in range(200)],
        "part": [i % 3 for i in range(200)],
        "key": [f"k{i * i % 11}" if i % 13 else None for i in range(200)],
        "tags": [["a"] * (i % 4) for i in range(200)],
    }
)


def time_pass(arrival: str | None) -> TimePass:
    stream = (
        StreamExecutionEnvironment()
        .from_event_log(TABLE, timestamp="ts", arrival=arrival, split="part")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
    )
    return TimePass(make_plan(StreamGraph(stream._transformation), ExecutionConfig()).logs[0])


@pytest.fixture
def keep(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Packs a table as a partition, a few rows at a time."""

    def packed(arrival: str | None, table: pa.Table, partition: int, batch_rows: int) -> list[pa.RecordBatch]:
        context = type("Context", (), {"partitionId": lambda self: partition})
        monkeypatch.setattr(
            kept_rows, "TaskContext", type("Contexts", (), {"get": staticmethod(lambda: context())})
        )
        task = PackTask(time_pass(arrival), tuple(TABLE.column_names), tuple(TABLE.column_names))
        return list(task(iter(table.to_batches(max_chunksize=batch_rows))))

    return packed


def split_up(kept: list[pa.RecordBatch]) -> tuple[Iterator[pa.RecordBatch], list[bytes]]:
    """Rows to read, in batches of one row, and what was told."""
    rows = pa.Table.from_batches(kept)
    told = [row["payload"] for row in rows.to_pylist() if row["is_told"]]
    blocks = rows.filter(pa.array([not each for each in rows["is_told"].to_pylist()]))
    return iter(blocks.to_batches(max_chunksize=1)), told


def partitions_of(blocks: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    for given in KeptPartitions(TABLE.schema, Shared(None)).of_task(blocks):
        yield from given.chunks


@pytest.mark.parametrize(("batch_rows", "packed_bytes"), [(1000, 1 << 20), (7, 1 << 20), (7, 1), (1, 5000)])
def test_kept_rows_are_those_of_the_partitions_however_they_are_cut(
    keep: Any, monkeypatch: pytest.MonkeyPatch, batch_rows: int, packed_bytes: int
) -> None:
    monkeypatch.setattr(kept_rows, "PACKED_BYTES", packed_bytes)
    blocks, told = split_up(keep("at", TABLE, 0, batch_rows) + keep("at", TABLE.slice(9, 40), 1, batch_rows))
    found = []
    for chunk in partitions_of(blocks):
        batches = list(chunk.read(["tags", "key", "ts"], 50))
        assert max(batch.num_rows for batch in batches) <= 50
        found.append((chunk.index, pa.Table.from_batches(batches)))
    wanted = TABLE.select(["tags", "key", "ts"])
    assert [index for index, _ in found] == [0, 1]
    assert found[0][1].to_pylist() == wanted.to_pylist()
    assert found[1][1].to_pylist() == wanted.slice(9, 40).to_pylist()
    assert len(told) == 4


def columns_of(block: RecordBlock) -> list[list[int]]:
    return [column.tolist() for column in vars(block).values()]


def test_times_are_told_where_arrivals_are_recorded_and_else_numbers_of_rows(keep: Any) -> None:
    _, (*records, told) = split_up(keep("at", TABLE, 4, 30))
    times = ChunkTimes.from_ipc(told)
    (chunk,) = time_pass("at").timed.log.chunks(1)
    *blocks, (_, expected) = summarised_together([time_pass("at")], chunk, [None])
    assert times.index == 4
    assert isinstance(expected, ChunkTimes)
    assert times.split_values == expected.split_values
    assert [columns_of(RecordBlock.unpacked(packed_block(record))) for record in records] == [
        columns_of(block) for _, block in blocks
    ]
    _, (told,) = split_up(keep(None, TABLE, 4, 30))
    assert ChunkCounts.from_ipc(told) == ChunkCounts(4, {0: 67, 1: 67, 2: 66})


def test_a_partition_without_rows_is_a_chunk_without_rows(keep: Any) -> None:
    blocks, told = split_up(keep("at", TABLE.slice(0, 0), 3, 9))
    ((index, rows),) = [(chunk.index, list(chunk.read(None, 9))) for chunk in partitions_of(blocks)]
    assert (index, rows) == (3, [])
    assert ChunkTimes.from_ipc(told[0]).rows_read == 0


class BehindConnect35:
    columns = TABLE.column_names

    def toDF(self, *names: str) -> "BehindConnect35":
        return self

    def mapInArrow(self, *arguments: Any) -> "BehindConnect35":
        return self

    def localCheckpoint(self) -> None:
        raise PySparkNotImplementedError("localCheckpoint() is not implemented.")


def test_a_session_that_cannot_keep_rows_takes_no_dataframes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "portable", lambda spark, task: task)
    with pytest.raises(ConfigurationError, match=r"dataframe\.write\.parquet"):
        kept_rows.KeptRows.of(None, BehindConnect35(), time_pass(None), ())
