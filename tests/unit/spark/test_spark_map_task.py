"""What map tasks send: all events, in blocks of bounded size."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from equipment.spark_tasks import map_way, source_of

from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.spark.columnar import map_task
from flinkcore.spark.columnar.map_task import MapTask
from flinkcore.spark.exchange import block_sender, blocks
from flinkcore.spark.exchange.blocks import BlockKind, read_blocks, read_events, read_side_rows
from flinkcore.spark.logs.log_input import FileInput, ReadingTimes
from flinkcore.time_plane.time_pass import time_planes_of

N_ROWS = 300
TEXTS = [f"{i} " + "x" * (i * i % 1000) for i in range(N_ROWS)]


def plan_of(log: pa.Table) -> JobPlan:
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
    return make_plan(StreamGraph(stream._transformation), ExecutionConfig())


def sent(partitions: int, *, is_broadcast: bool = False) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    log = pa.table(
        {
            "ts": [None if i % 3 == 2 else i for i in range(N_ROWS)],
            "key": [i % 7 for i in range(N_ROWS)],
            "text": TEXTS,
        }
    )
    plan = plan_of(log)
    chunks = tuple(plan.logs[0].log.chunks(1))
    way, times = map_way(plan, partitions), ReadingTimes.of(*time_planes_of(plan.logs, [chunks], 1))
    exchange = replace(way.route.exchange, is_broadcast=is_broadcast)
    task = MapTask(
        (replace(way, route=replace(way.route, exchange=exchange)),), source_of(FileInput(chunks), times)
    )
    return task(iter([pa.record_batch({"id": [0]})])), plan.logs[0].data_schema()


@pytest.mark.parametrize("partitions", [1, 3])
def test_long_texts_make_blocks_of_few_rows(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    most = 5000
    monkeypatch.setattr(block_sender, "BLOCK_BYTES", most)
    monkeypatch.setattr(map_task, "HELD_BYTES", 4 * most)
    monkeypatch.setattr(blocks, "BATCH_BYTES", 4 * most)
    batches, schema = sent(partitions)
    events, rejected = [], []
    for batch in batches:
        assert batch.nbytes < 16 * most
        for block in read_blocks(iter([batch])):
            if block.place.kind is BlockKind.EVENTS:
                part = read_events(block, schema).batch
                assert part.nbytes <= most
                events += part.column("text").to_pylist()
            elif block.place.kind is BlockKind.SIDE_ROWS:
                tag_id, (rows,) = read_side_rows(block)
                assert tag_id == "bad"
                assert rows.nbytes <= most
                rejected += rows.column("text").to_pylist()
    assert sorted(events) == sorted(text for i, text in enumerate(TEXTS) if i % 3 != 2)
    assert rejected == TEXTS[2::3]


def test_blocks_of_a_broadcast_go_on_as_they_fill_however_many_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partitions, most = 40, 20_000
    monkeypatch.setattr(block_sender, "BLOCK_BYTES", most)
    monkeypatch.setattr(blocks, "BATCH_BYTES", 4 * most)
    batches, schema = sent(partitions, is_broadcast=True)
    texts: dict[int, list[str]] = {partition: [] for partition in range(partitions)}
    for batch in batches:
        assert batch.nbytes < 6 * most
        for block in read_blocks(iter([batch])):
            if block.place.kind is BlockKind.EVENTS:
                texts[block.partition] += read_events(block, schema).batch["text"].to_pylist()
            elif block.place.kind is BlockKind.MANIFEST:
                assert json.loads(block.payload.to_pybytes())["rows"] == N_ROWS * 2 // 3
    expected = sorted(text for i, text in enumerate(TEXTS) if i % 3 != 2)
    assert [sorted(found) for found in texts.values()] == [expected] * partitions


def test_an_event_larger_than_a_block_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_sender, "BLOCK_BYTES", 1)
    batches, schema = sent(2)
    blocks = [block for block in read_blocks(batches) if block.place.kind is BlockKind.EVENTS]
    assert [read_events(block, schema).batch.num_rows for block in blocks] == [1] * (N_ROWS * 2 // 3)


# ---- partitions of a DataFrame ------------------------------------------------------------------------------------
