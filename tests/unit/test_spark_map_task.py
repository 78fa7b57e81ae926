"""What map tasks send: all events, in blocks of bounded size."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.transformations import StreamGraph
from flinkcore.errors import SourceError
from flinkcore.replay.plan import ReplayPlan, make_plan
from flinkcore.replay.time_pass import time_plane_of
from flinkcore.spark import map_task
from flinkcore.spark.blocks import SHUFFLE_ORDER, BlockKind, read_blocks, read_events, read_rows
from flinkcore.spark.log_input import DataFrameInput, FileInput, Fingerprint
from flinkcore.spark.map_task import MapTask
from flinkcore.spark.packed_timeline import PackedTimeline
from flinkcore.spark.reduce_task import ReduceTask
from flinkcore.spark.task_outputs import CountsOutput

N_ROWS = 300
TEXTS = [f"{i} " + "x" * (i * i % 1000) for i in range(N_ROWS)]


def plan_of(log: pa.Table) -> ReplayPlan:
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


def sent(partitions: int) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    log = pa.table(
        {
            "ts": [None if i % 3 == 2 else i for i in range(N_ROWS)],
            "key": [i % 7 for i in range(N_ROWS)],
            "text": TEXTS,
        }
    )
    plan = plan_of(log)
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


# ---- partitions of a DataFrame ------------------------------------------------------------------------------------


class TaskOfPartition:
    """Stands for Spark's task context."""

    def __init__(self, partition: int) -> None:
        self._partition = partition

    def partitionId(self) -> int:
        return self._partition


def table_of(keys: list[int]) -> pa.Table:
    return pa.table({"ts": list(range(len(keys))), "key": keys, "text": ["t"] * len(keys)})


KEYS = [i * i % 11 for i in range(200)]


@pytest.fixture
def as_partition(monkeypatch: pytest.MonkeyPatch) -> Any:
    def enter(partition: int) -> None:
        monkeypatch.setattr(
            "flinkcore.spark.log_input.TaskContext",
            type("Context", (), {"get": lambda: TaskOfPartition(partition)}),
        )

    return enter


def attempt(keys: list[int], batch_rows: int = 1000) -> list[pa.RecordBatch]:
    """What a map task sends when Spark computes the keys of its partition like this."""
    plan = plan_of(table_of(KEYS))
    checked = Fingerprint()
    for batch in table_of(KEYS).select(["ts"]).to_batches():
        checked.add(batch, ["ts"])
    log = DataFrameInput(plan.log.schema, ("ts",), {0: checked})
    task = MapTask(plan, time_plane_of(plan, plan.log.chunks(1), 1), log, 3, (0, 1, 2), 1.0)
    return list(task(iter(table_of(keys).to_batches(batch_rows))))


def distribution_of(batches: list[pa.RecordBatch]) -> int:
    manifests = [
        json.loads(b.payload.to_pybytes()) for b in read_blocks(iter(batches)) if b.kind is BlockKind.MANIFEST
    ]
    (checksum,) = {manifest["distribution"] for manifest in manifests}
    return int(checksum)


def test_attempts_with_the_same_keys_have_one_checksum(as_partition: Any) -> None:
    as_partition(0)
    assert distribution_of(attempt(KEYS)) == distribution_of(attempt(KEYS, batch_rows=7))


def test_attempts_with_other_keys_have_another_checksum(as_partition: Any) -> None:
    as_partition(0)
    swapped = [*KEYS[:50], KEYS[51], KEYS[50], *KEYS[52:]]
    assert KEYS[50] != KEYS[51]
    assert distribution_of(attempt(KEYS)) != distribution_of(attempt(swapped))


def counts_of(batches: list[pa.RecordBatch], chunks: int = 1) -> list[dict[str, Any]]:
    """What the reduce tasks tell of the blocks that they got."""
    plan = plan_of(table_of(KEYS))
    timeline = PackedTimeline.of(time_plane_of(plan, plan.log.chunks(1), 1).timeline)
    task = ReduceTask(plan, timeline, chunks, True, CountsOutput())
    blocks = pa.Table.from_batches(batches).sort_by([(name, "ascending") for name in SHUFFLE_ORDER])
    rows = [row for batch in task(iter(blocks.combine_chunks().to_batches())) for row in batch.to_pylist()]
    return [json.loads(row["payload"]) for row in rows]


def test_partitions_tell_which_attempt_served_them(as_partition: Any) -> None:
    as_partition(0)
    first, second = attempt(KEYS), attempt(KEYS[::-1])
    served = [
        pa.Table.from_batches(batches).filter(pc.field("partition") == partition).to_batches()
        for partition, batches in ((0, first), (1, first), (2, second))
    ]
    told = counts_of([batch for batches in served for batch in batches])
    assert told[0]["distribution"] == told[1]["distribution"] != told[2]["distribution"]


def test_a_partition_that_was_not_there_in_the_first_pass_is_refused(as_partition: Any) -> None:
    as_partition(1)
    with pytest.raises(SourceError, match=r"partition 1 .* first pass, which had 1 partitions.*persist\(\)"):
        attempt(KEYS)


def test_partitions_that_are_gone_in_the_second_pass_are_refused(as_partition: Any) -> None:
    as_partition(0)
    with pytest.raises(SourceError, match=r"has 1 partitions now and had 2 in the first pass.*persist\(\)"):
        counts_of(attempt(KEYS), chunks=2)
