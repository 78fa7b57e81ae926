"""The exchange in front of an operator, in memory and as blocks of Spark's shuffle."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from equipment.spark_tasks import map_way

from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.columnar.replay.exchange import Exchange, rows_by_partition
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.common import ExecutionConfig, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.spark.exchange.block_sender import BlockSender
from flinkcore.spark.exchange.blocks import BlockKind, read_blocks, read_events
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.time_pass import time_planes_of

BATCH = pa.record_batch({"key": [3, 1, 3, 2, 1]})


@pytest.mark.parametrize("partitions", [1, 3])
def test_both_forms_bring_the_same_rows_to_each_partition_in_the_same_order(partitions: int) -> None:
    log = pa.table({"ts": [*range(0, 400, 2), *range(1, 400, 2)], "key": [row % 17 for row in range(400)]})
    stream = (
        StreamExecutionEnvironment()
        .from_event_log(log, timestamp="ts", arrival="ts")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
    )
    plan = make_plan(StreamGraph(stream._transformation), ExecutionConfig())
    (chunk,) = plan.logs[0].log.chunks(1)
    (plane,) = time_planes_of(plan.logs, [[chunk]], 1)
    (read,) = ChunkReader(plan.logs[0], plane).read(chunk)
    events, order = read.events.in_order()
    context = StageContext.of(plan, 0, ReplayTime(plane.timeline, plane.last_arrival_ms, [0]), partitions)
    placed = events.in_timeline(plane.timeline, order)
    in_memory = [
        [placed.positions[row] for row in (range(400) if rows is None else rows)]
        for rows in rows_by_partition(context, placed, order)
    ]
    sender = BlockSender(map_way(plan, partitions).route, 0, 0)
    sent: list[list[int]] = [[] for _ in range(partitions)]
    for block in read_blocks(iter([*sender.send_events(events), *sender.finish({})])):
        if block.place.kind is BlockKind.EVENTS:
            sent[block.partition] += read_events(block, plan.logs[0].data_schema()).positions.tolist()
    assert sent == in_memory
    assert sum(map(len, sent)) == 400
    assert all(sent)


def test_every_partition_gets_all_rows_of_a_broadcast() -> None:
    dealt = Exchange(("key",), 128, 3, is_broadcast=True).deal(BATCH, None)
    assert dealt == (None, [(0, 5)] * 3)


def test_rows_that_may_go_anywhere_go_where_their_sender_says() -> None:
    dealt = Exchange((), 128, 3, takes_rows_anywhere=True).deal(BATCH, None, own_partition=1)
    assert dealt == (None, [(0, 0), (0, 5), (0, 0)])


def test_keys_may_have_a_text_before_their_names() -> None:
    exchange = Exchange(("key",), 128, 2)
    prefixed = BATCH.rename_columns(["key.key"])
    of_keys, of_prefixed = exchange.deal(BATCH, None), exchange.deal(prefixed, None, key_prefix="key.")
    assert of_keys.order is not None
    assert of_prefixed.order is not None
    assert of_keys.order.tolist() == of_prefixed.order.tolist()
    assert of_keys.ranges == of_prefixed.ranges
