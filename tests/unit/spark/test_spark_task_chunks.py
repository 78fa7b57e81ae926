"""Chunks that tasks get: their own, with facts about these alone."""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from equipment.spark_tasks import in_each_task, map_way, outputs_by_tasks, source_of, time_plane_by_tasks

from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect, count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.spark.columnar.map_task import MapTask
from flinkcore.spark.exchange.blocks import BlockKind, read_blocks
from flinkcore.spark.logs.log_input import ChunkGroups, FileInput, ReadingTimes
from flinkcore.spark.logs.task_packing import UNPACKED, TaskPacking
from flinkcore.spark.shipping import shared_values
from flinkcore.spark.shipping.shared_values import Shared
from flinkcore.spark.shipping.tasks import pickled_for_tasks, unpickled

FILES = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(FILES):
        write_file(tmp_path, number)
    return tmp_path


def write_file(folder: Path, number: int) -> None:
    ts = [number * 10 + row * 3 % 10 if row % 9 else None for row in range(20)]
    table = pa.table(
        {"ts": ts, "key": [row % 3 for row in range(20)], "text": [f"{number}.{row}" for row in range(20)]}
    )
    pq.write_table(table, folder / f"{number:04}.parquet")


def plan_of(folder: Path, **settings: Any) -> JobPlan:
    stream = (
        StreamExecutionEnvironment()
        .from_event_log(str(folder), timestamp="ts", on_bad_row=OutputTag("bad"), **settings)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
        )
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
        .aggregate(n=count(), texts=collect("text"))
    )
    return make_plan(StreamGraph(stream._transformation), ExecutionConfig())


def packed_log(plan: JobPlan, *, task_files: int, joins: bool = False) -> FileInput:
    """The log with so many files a task, of which `joins` makes one chunk."""
    packing = TaskPacking(most_bytes=task_files * (1 << 30) + (1 << 20), open_bytes=1 << 30)
    packing = UNPACKED if task_files == 1 else packing
    log = FileInput.of(plan.logs[0].log, packing, 1 << 20 if joins else 0)
    assert len(log.all_chunks) == (-(-FILES // task_files) if joins else FILES)
    return log


@pytest.mark.parametrize("settings", [{"arrival": "ts"}, {"split": "key"}, {}], ids=str)
@pytest.mark.parametrize("task_files", [2, 5, FILES])
@pytest.mark.parametrize("joins", [False, True], ids=["a chunk a file", "a chunk a task"])
def test_rows_and_counts_do_not_depend_on_the_packing(
    folder: Path, settings: dict[str, Any], task_files: int, joins: bool
) -> None:
    plan = plan_of(folder, **settings, **({} if "arrival" in settings else {"rate": 1000}))
    found = []
    for files in (1, task_files):
        log = packed_log(plan, task_files=files, joins=joins)
        assert len(log.tasks) == -(-FILES // files)
        time_plane = time_plane_by_tasks(plan, log)
        outputs = outputs_by_tasks(plan, log, time_plane, 3)
        assert [output.error for output in outputs] == [None] * 3
        read = [read for output in outputs for read in output.counts["read"]]
        assert sum(each["chunks"] for each in read) == len(log.all_chunks)
        assert sum(each["counts"]["read"] for each in read) == 20 * FILES
        # Rejected rows come to the partition that the task has for such rows.
        rejected = sorted(row["text"] for output in outputs for row in output.rows["bad"])
        found.append(([dict(output.rows, bad=None) for output in outputs], rejected))
    assert found[0] == found[1]
    assert len(found[0][1]) == FILES * 3


def manifests_of(plan: JobPlan, log: FileInput, partitions: int) -> int:
    source = source_of(log, ReadingTimes.of(time_plane_by_tasks(plan, log)))
    sent = in_each_task(MapTask((map_way(plan, partitions),), source), log)
    return sum(block.place.kind is BlockKind.MANIFEST for block in read_blocks(iter(sent)))


def test_a_large_file_is_cut_however_many_small_ones_lie_beside_it(folder: Path) -> None:
    table = pa.table({"ts": range(4_000), "key": [0] * 4_000, "text": [f"{row:08}" for row in range(4_000)]})
    pq.write_table(table, folder / "large.parquet", row_group_size=100)
    log = plan_of(folder, arrival="ts").logs[0].log
    most = (folder / "large.parquet").stat().st_size // 10
    chunks = FileInput.of(log, TaskPacking(most_bytes=most, open_bytes=0), packed_bytes=0).all_chunks
    large = [chunk for chunk in chunks if "large.parquet" in chunk.label]
    assert len(chunks) == FILES + len(large)
    assert len(large) >= 8
    assert sum(chunk.rows or 0 for chunk in large) == 4_000


def test_a_task_sends_one_manifest_to_a_partition_however_many_files_it_reads(folder: Path) -> None:
    plan = plan_of(folder, arrival="ts")
    assert manifests_of(plan, packed_log(plan, task_files=4), 5) == 3 * 5
    assert manifests_of(plan, packed_log(plan, task_files=1), 5) == FILES * 5


def test_a_task_does_not_grow_with_the_files_and_splits_of_the_log(folder: Path) -> None:
    sizes = []
    for files in (FILES, 4 * FILES):
        for number in range(files):
            write_file(folder, number)
        plan = plan_of(folder, arrival="ts", split="text")
        log = FileInput(tuple(plan.logs[0].log.chunks(1)), inline_bytes=0)
        given = log.for_tasks(Session(), ReadingTimes.of(time_plane_by_tasks(plan, log)))
        task = MapTask((map_way(plan, 2),), given.source)
        sizes.append((len(pickled_for_tasks(task)), max(map(len, given.dataframe.payloads))))
    assert sizes[1][0] <= sizes[0][0] + 16
    # Numbers of splits and files have more digits.
    assert sizes[1][1] <= sizes[0][1] + 200


class Session:
    """A session that keeps the rows of DataFrames."""

    def range(self, start: int, end: int, step: int, partitions: int) -> Any:
        return SimpleNamespace(partitions=partitions, repartitionById=None)

    def createDataFrame(self, rows: Any, schema: Any) -> Any:
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([])
        payloads = table.column("chunks").to_pylist()
        return SimpleNamespace(
            payloads=payloads,
            repartitionById=lambda partitions, column: SimpleNamespace(
                payloads=payloads, table=table, partitions=partitions
            ),
        )


def test_few_chunks_go_with_the_task_and_many_come_as_rows(folder: Path) -> None:
    plan = plan_of(folder, arrival="ts")
    chunks = tuple(plan.logs[0].log.chunks(1))
    inline = FileInput(chunks).for_tasks(Session())
    assert inline.dataframe.partitions == FILES
    rows = FileInput(chunks, inline_bytes=0).for_tasks(Session())
    assert rows.dataframe.partitions == FILES
    assert rows.source == ChunkGroups(())
    for task in range(FILES):
        own = rows.dataframe.table.slice(task, 1).to_batches()
        for source, batches in ((rows.source, own), (inline.source, [pa.record_batch({"id": [task]})])):
            (given,) = source.of_task(iter(batches))
            assert given.task == task
            assert [chunk.label for chunk in given.chunks] == [chunks[task].label]


def test_rows_of_a_table_go_with_the_task_however_many_they_are() -> None:
    table = pa.table({"ts": list(range(1000)), "key": [1] * 1000, "text": ["x"] * 1000})
    plan = make_plan(
        StreamGraph(
            StreamExecutionEnvironment()
            .from_event_log(table, timestamp="ts")
            .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
            .key_by("key")
            .window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
            .aggregate(n=count())
            ._transformation
        ),
        ExecutionConfig(),
    )
    log = FileInput(tuple(plan.logs[0].log.chunks(4)), inline_bytes=0)
    given = log.for_tasks(Session())
    assert isinstance(given.source, ChunkGroups)
    assert len(given.source.inline) == 4


def test_a_worker_unpickles_what_tasks_share_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared_values._VALUES.clear()
    times: list[bytes] = []
    unpickled = shared_values.unpickled
    monkeypatch.setattr(shared_values, "unpickled", lambda data: (times.append(data), unpickled(data))[1])
    one, other = Shared([1, 2]), Shared([3])
    tasks = [pickle.dumps((one, number)) for number in range(3)]
    found = [pickle.loads(task) for task in tasks]
    assert [(shared.value, number) for shared, number in found] == [([1, 2], 0), ([1, 2], 1), ([1, 2], 2)]
    assert pickle.loads(pickle.dumps(other)).value == [3]
    assert len(times) == 2


def test_a_worker_forgets_what_it_has_not_used_for_long() -> None:
    shared_values._VALUES.clear()
    for number in range(9):
        assert pickle.loads(pickle.dumps(Shared(number))).value == number
    assert [shared.value for shared in shared_values._VALUES.values()] == [5, 6, 7, 8]


def test_a_task_knows_the_columns_of_a_log_and_not_its_files(folder: Path) -> None:
    log = plan_of(folder, arrival="ts").logs[0].log
    there = unpickled(pickled_for_tasks(log))
    assert there.schema == log.schema
    assert there.source.files == ()
