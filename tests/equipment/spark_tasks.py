"""A replay by the tasks that Spark would run, in this process: what they are handed and give travels as it would."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from equipment.merged_events import merging_events
from pyspark import cloudpickle

from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.spark.columnar.map_task import MapTask, MapWay
from flinkcore.spark.columnar.reduce_task import ReduceStage, ReduceTask
from flinkcore.spark.columnar.task_outputs import BATCH, BlocksOutput, read_batch
from flinkcore.spark.columnar.time_pass import CountTask, SummariseTask
from flinkcore.spark.exchange.blocks import BLOCKS_ORDER
from flinkcore.spark.exchange.packed_timeline import PackedTime
from flinkcore.spark.logs.log_input import FileInput
from flinkcore.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.time_pass import TimePass
from flinkcore.time_plane.timeline import TimePlane

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run_task(task: Task, *batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    """What a task gives for these batches, in a process of its own as far as that can be told."""
    there: Task = pickle.loads(cloudpickle.dumps(task))
    return list(there(iter(batches)))


def on_each_chunk(task: Task, log: FileInput) -> list[pa.RecordBatch]:
    numbers = range(len(log.all_chunks))
    return [batch for number in numbers for batch in run_task(task, pa.record_batch({"id": [number]}))]


def time_plane_by_tasks(plan: JobPlan, log: FileInput) -> TimePlane:
    """The first pass."""

    def payloads(task: Task) -> list[bytes]:
        return [row["payload"] for batch in on_each_chunk(task, log) for row in batch.to_pylist()]

    time_pass = TimePass(plan.logs[0])
    bases = None
    if time_pass.rate is not None:
        bases = time_pass.position_bases(map(ChunkCounts.from_ipc, payloads(CountTask(time_pass, log))))
    return time_pass.combine(map(ChunkTimes.from_ipc, payloads(SummariseTask((time_pass,), log, (bases,)))))


def results_by_tasks(
    plan: JobPlan,
    chunks: int,
    partitions: int,
    between_passes: Callable[[], None] = lambda: None,
    merges: bool = False,
) -> dict[str | None, list[dict[str, Any]]]:
    """Rows of each output (None: the results), by the partitions of the reduce tasks.

    Map tasks may merge events before the exchange, or may not.
    """
    log = FileInput(tuple(plan.logs[0].log.chunks(chunks)))
    time_plane = time_plane_by_tasks(plan, log)
    between_passes()
    slots = tuple(range(partitions))
    merging = merging_events(plan, time_plane.timeline) if merges else None
    way = MapWay(plan.logs[0], time_plane, partitions, slots, arrival_span_ms=1.0, merging=merging)
    map_task = MapTask((way,), log)
    sent = on_each_chunk(map_task, log)
    ordered = pa.Table.from_batches(sent).sort_by([(name, "ascending") for name in BLOCKS_ORDER])
    time = PackedTime.of(ReplayTime(time_plane.timeline, time_plane.last_arrival_ms, [0]))
    reduce_task = ReduceTask(plan, time, partitions, len(log.all_chunks), BlocksOutput())
    rows: dict[str | None, list[dict[str, Any]]] = {}
    for batch in run_task(ReduceStage((reduce_task,)), *ordered.combine_chunks().to_batches()):
        for row in batch.to_pylist():
            for part in read_batch(row["payload"]) if row["kind"] == BATCH else []:
                rows.setdefault(row["output"], []).extend(part.to_pylist())
    return rows
