"""What map tasks send: all events, in blocks of bounded size."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.transformations import StreamGraph
from flinkcore.replay.plan import make_plan
from flinkcore.replay.time_pass import time_plane_of
from flinkcore.spark import map_task
from flinkcore.spark.blocks import BlockKind, read_blocks, read_events, read_rows
from flinkcore.spark.log_input import FileInput
from flinkcore.spark.map_task import MapTask

N_ROWS = 300
TEXTS = [f"{i} " + "x" * (i * i % 1000) for i in range(N_ROWS)]


def sent(partitions: int) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    log = pa.table(
        {
            "ts": [None if i % 3 == 2 else i for i in range(N_ROWS)],
            "key": [i % 7 for i in range(N_ROWS)],
            "text": TEXTS,
        }
    )
    stream = (
        StreamExecutionEnvironment()
        .from_event_log(log, timestamp="ts", on_bad_row=OutputTag("bad"))
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
        )
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(texts=collect("text"))
    )
    plan = make_plan(StreamGraph(stream._transformation), ExecutionConfig())
    chunks = tuple(plan.log.chunks(1))
    task = MapTask(
        plan, time_plane_of(plan, chunks, 1), FileInput(chunks), partitions, tuple(range(partitions)), 1.0
    )
    return task(iter([pa.record_batch({"id": [0]})])), plan.data_schema()


@pytest.mark.parametrize("partitions", [1, 3])
def test_long_texts_make_blocks_of_few_rows(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    most = 5000
    monkeypatch.setattr(map_task, "BLOCK_BYTES", most)
    monkeypatch.setattr(map_task, "HELD_BYTES", 4 * most)
    batches, schema = sent(partitions)
    events, rejected = [], []
    for batch in batches:
        assert batch.nbytes < 16 * most
        for block in read_blocks(iter([batch])):
            if block.kind is BlockKind.EVENTS:
                part = read_events(block, schema).batch
                assert part.nbytes <= most
                events += part.column("text").to_pylist()
            elif block.kind is BlockKind.REJECTED:
                (rows,) = read_rows(block)
                assert rows.nbytes <= most
                rejected += rows.column("text").to_pylist()
    assert sorted(events) == sorted(text for i, text in enumerate(TEXTS) if i % 3 != 2)
    assert rejected == TEXTS[2::3]


def test_an_event_larger_than_a_block_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_task, "BLOCK_BYTES", 1)
    batches, schema = sent(2)
    blocks = [block for block in read_blocks(batches) if block.kind is BlockKind.EVENTS]
    assert [read_events(block, schema).batch.num_rows for block in blocks] == [1] * (N_ROWS * 2 // 3)
