"""What map tasks send: all events, in blocks of bounded size."""

import json
from collections.abc import Iterator
from decimal import Decimal
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
from flinkcore.replay.plans.job_plan import JobPlan, make_plan
from flinkcore.replay.time_plane.time_pass import TimePass, time_planes_of
from flinkcore.spark.columnar import map_task
from flinkcore.spark.columnar.map_task import LogPlace, MapTask
from flinkcore.spark.columnar.reduce_task import ReduceTask
from flinkcore.spark.columnar.task_outputs import CountsOutput
from flinkcore.spark.columnar.time_pass import SummariseTask
from flinkcore.spark.exchange import blocks
from flinkcore.spark.exchange.blocks import SHUFFLE_ORDER, BlockKind, read_blocks, read_events, read_rows
from flinkcore.spark.exchange.packed_timeline import PackedTime, PackedTimeline
from flinkcore.spark.logs.fingerprint import Fingerprint
from flinkcore.spark.logs.log_input import DataFrameInput, FileInput

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
    (plan,) = plan_of(log).logs
    chunks = tuple(plan.log.chunks(1))
    task = MapTask(
        plan,
        time_planes_of([plan], [chunks], 1)[0],
        FileInput(chunks),
        partitions,
        tuple(range(partitions)),
        arrival_span_ms=1.0,
        place=LogPlace(is_broadcast=is_broadcast),
    )
    return task(iter([pa.record_batch({"id": [0]})])), plan.data_schema()


@pytest.mark.parametrize("partitions", [1, 3])
def test_long_texts_make_blocks_of_few_rows(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    most = 5000
    monkeypatch.setattr(map_task, "BLOCK_BYTES", most)
    monkeypatch.setattr(map_task, "HELD_BYTES", 4 * most)
    monkeypatch.setattr(blocks, "BATCH_BYTES", 4 * most)
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


def test_blocks_of_a_broadcast_go_on_as_they_fill_however_many_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partitions, most = 40, 20_000
    monkeypatch.setattr(map_task, "BLOCK_BYTES", most)
    monkeypatch.setattr(blocks, "BATCH_BYTES", 4 * most)
    batches, schema = sent(partitions, is_broadcast=True)
    texts: dict[int, list[str]] = {partition: [] for partition in range(partitions)}
    for batch in batches:
        assert batch.nbytes < 6 * most
        for block in read_blocks(iter([batch])):
            if block.kind is BlockKind.EVENTS:
                texts[block.partition] += read_events(block, schema).batch["text"].to_pylist()
            elif block.kind is BlockKind.MANIFEST:
                assert json.loads(block.payload.to_pybytes())["rows"] == N_ROWS * 2 // 3
    expected = sorted(text for i, text in enumerate(TEXTS) if i % 3 != 2)
    assert [sorted(found) for found in texts.values()] == [expected] * partitions


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
            "flinkcore.spark.logs.log_input.TaskContext",
            type("Context", (), {"get": lambda: TaskOfPartition(partition)}),
        )

    return enter


def attempt(keys: list[int], batch_rows: int = 1000) -> list[pa.RecordBatch]:
    """What a map task sends when Spark computes the keys of its partition like this, and not as in the first pass."""
    (plan,) = plan_of(table_of(KEYS)).logs
    checked = tuple(plan.deciding_columns())
    first = Fingerprint()
    for batch in table_of(KEYS).to_batches():
        first.add(batch, checked)
    log = DataFrameInput(plan.log.schema, checked, {0: first})
    task = MapTask(plan, time_planes_of([plan], [plan.log.chunks(1)], 1)[0], log, 3, (0, 1, 2), 1.0)
    return list(task(iter(table_of(keys).to_batches(batch_rows))))


def test_an_attempt_with_the_keys_of_the_first_pass_sends_all_events(as_partition: Any) -> None:
    as_partition(0)
    for batch_rows in (1000, 7):
        manifests = [
            json.loads(block.payload.to_pybytes())
            for block in read_blocks(iter(attempt(KEYS, batch_rows)))
            if block.kind is BlockKind.MANIFEST
        ]
        assert sum(manifest["rows"] for manifest in manifests) == len(KEYS)


def test_every_attempt_with_other_keys_than_in_the_first_pass_is_refused(as_partition: Any) -> None:
    as_partition(0)
    swapped = [*KEYS[:50], KEYS[51], KEYS[50], *KEYS[52:]]
    assert KEYS[50] != KEYS[51]
    with pytest.raises(SourceError, match=r"200 now, 200 then; column 'key' differs\).*checkpoint\(\)"):
        attempt(swapped)


def counts_of(batches: list[pa.RecordBatch], chunks: int = 1) -> list[dict[str, Any]]:
    """What the reduce tasks tell of the blocks that they got."""
    plan = plan_of(table_of(KEYS))
    (plane,) = time_planes_of(plan.logs, [plan.logs[0].log.chunks(1)], 1)
    timeline = PackedTimeline.of(plane.timeline)
    task = ReduceTask(plan, PackedTime(timeline, plane.last_arrival_ms), 3, chunks, True, CountsOutput())
    blocks = pa.Table.from_batches(batches).sort_by([(name, "ascending") for name in SHUFFLE_ORDER])
    rows = [row for batch in task(iter(blocks.combine_chunks().to_batches())) for row in batch.to_pylist()]
    return [json.loads(row["payload"]) for row in rows]


def test_a_partition_that_was_not_there_in_the_first_pass_is_refused(as_partition: Any) -> None:
    as_partition(1)
    with pytest.raises(SourceError, match=r"partition 1 .* before, when it had 1 partitions.*persist\(\)"):
        attempt(KEYS)


def test_partitions_that_are_gone_in_the_second_pass_are_refused(as_partition: Any) -> None:
    as_partition(0)
    with pytest.raises(SourceError, match=r"has 1 partitions now and had 2 in the first pass.*persist\(\)"):
        counts_of(attempt(KEYS), chunks=2)


def log_with(deciding: pa.Array) -> pa.Table:
    return table_of(KEYS[: len(deciding)]).append_column("deciding", deciding)


def deciding_columns(*steps: Any) -> list[str]:
    """Of a job over a log with further columns, whose steps follow the timestamps."""
    log = log_with(pa.array([{"a": 1}])).append_column("other", pa.array([1]))
    stream = (
        StreamExecutionEnvironment()
        .from_event_log(log, timestamp="ts")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    )
    for step in steps:
        stream = step(stream)
    stream = (
        stream.key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=collect("text"))
    )
    return make_plan(StreamGraph(stream._transformation), ExecutionConfig()).logs[0].deciding_columns()


def test_times_and_what_keys_and_filters_are_made_of_decide() -> None:
    assert deciding_columns() == ["ts", "key"]
    assert deciding_columns(lambda stream: stream.filter(pc.field("other") > 0)) == ["ts", "key", "other"]
    made = pc.field("deciding", "a")
    assert deciding_columns(lambda stream: stream.with_columns(key=made)) == ["ts", "deciding"]


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ([1, None, 3], [1, -1, 3]),
        (["a", "bc", None], ["ab", "c", None]),
        ([b"a", None, b""], [b"a", b"", b""]),
        ([True, None, False], [True, False, False]),
        ([1.5, 2.5, None], [1.5, 2.5, 0.0]),
        ([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}], [{"a": 1, "b": "x"}, None, {"a": 2, "b": "y"}]),
        ([{"a": 1}, None, {"a": 2}], [{"a": 1}, {"a": None}, {"a": 2}]),
        ([["x", "y"], [], None], [["x"], ["y"], None]),
        ([[1], [], None], [[1], None, None]),
        ([[{"a": [1, 2]}], [], []], [[{"a": [1, 3]}], [], []]),
        ([Decimal("1.10"), None, Decimal("2.00")], [Decimal("1.10"), None, Decimal("2.01")]),
    ],
    ids=lambda values: str(values),
)
def test_fingerprints_tell_values_of_any_type_however_they_are_cut(
    values: list[Any], others: list[Any]
) -> None:
    column = pa.array(values * 2)

    def of(column: pa.Array, rows: int) -> Fingerprint:
        fingerprint = Fingerprint()
        for start in range(0, len(column), rows):
            fingerprint.add(pa.record_batch({"deciding": column.slice(start, rows)}), ["deciding"])
        return fingerprint

    assert of(column, 6) == of(column, 1) == of(column, 4)
    assert of(column, 6) != of(pa.array(others * 2, column.type), 6)
    assert of(column, 6) != of(pa.array(values + others, column.type), 4)


def test_fingerprints_tell_values_of_maps() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    one, same, other = Fingerprint(), Fingerprint(), Fingerprint()
    for fingerprint, last in ((one, 2), (same, 2), (other, 3)):
        fingerprint.add(pa.record_batch({"m": pa.array([[("a", 1)], [("b", last)], None], kind)}), ["m"])
    assert one == same != other


def test_a_partition_that_was_not_there_when_rows_were_counted_is_refused(as_partition: Any) -> None:
    as_partition(1)
    time_pass = TimePass(plan_of(table_of(KEYS)).logs[0])
    task = SummariseTask(time_pass, DataFrameInput(time_pass.timed.log.schema, ()), {0: {None: 0}})
    with pytest.raises(SourceError, match=r"partition 1 .* before, when it had 1 partitions.*persist\(\)"):
        list(task(iter(table_of(KEYS).to_batches())))
