"""A replay by the tasks that Spark would run, in this process: what they are handed and give travels as it would."""

import json
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from equipment.merged_events import merging_events
from equipment.timelines import repacked
from pyspark import cloudpickle
from pyspark.sql import Row

from flinkcore.checkpoint import OperatorPart, PendingCheckpoint
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.replay.exchange import Exchange
from flinkcore.errors import FlinkcoreError
from flinkcore.spark.columnar.map_task import MapTask, MapWay, MergingEvents
from flinkcore.spark.columnar.reduce_task import ReduceStage, ReduceTask
from flinkcore.spark.columnar.task_outputs import (
    BATCH,
    CHECKPOINT,
    COUNTS,
    BlocksOutput,
    read_batch,
    read_part,
)
from flinkcore.spark.columnar.task_summaries import CollectedRows, TaskSummaries
from flinkcore.spark.columnar.time_pass import CountTask, RowsBefore, SummariseTask
from flinkcore.spark.exchange.block_sender import BlockRoute
from flinkcore.spark.exchange.blocks import BLOCKS_ORDER
from flinkcore.spark.exchange.sent_timeline import SentTime, SentTimeline
from flinkcore.spark.logs.log_input import AboutChunks, ChunkGroups, FileInput, ReadingTimes
from flinkcore.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.time_plane.time_pass import TimePass
from flinkcore.time_plane.timeline import Timeline, TimePlane

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run_task(task: Task, *batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    """What a task gives for these batches, in a process of its own as far as that can be told."""
    there: Task = pickle.loads(cloudpickle.dumps(task))
    return list(there(iter(batches)))


def source_of(log: FileInput, about: AboutChunks | None = None) -> ChunkGroups:
    """What gives tasks the chunks of a log; a task takes its number from a row."""
    return ChunkGroups(log.groups(about))


def in_each_task(task: Task, log: FileInput) -> list[pa.RecordBatch]:
    numbers = range(len(log.tasks))
    return [batch for number in numbers for batch in run_task(task, pa.record_batch({"id": [number]}))]


def time_plane_by_tasks(plan: JobPlan, log: FileInput) -> TimePlane:
    """The first pass."""

    def rows(task: Task) -> list[Any]:
        return [Row(**row) for batch in in_each_task(task, log) for row in batch.to_pylist()]

    time_pass = TimePass(plan.logs[0])
    bases = None
    if time_pass.rate is not None:
        counts = [ChunkCounts.from_ipc(row.payload) for row in rows(CountTask(time_pass, source_of(log)))]
        bases = time_pass.position_bases(counts)
    summarise = SummariseTask((time_pass,), source_of(log, RowsBefore((bases,))))
    found = TaskSummaries(CollectedRows(rows(summarise)))
    times = time_pass.log_times(map(ChunkTimes.from_ipc, found.times()))
    return time_pass.time_plane(times, found.records(time_pass), None)


def map_way(plan: JobPlan, partitions: int, merging: MergingEvents | None = None) -> MapWay:
    """The way of the only log to the only operator."""
    exchange = Exchange.of(plan.stages[0], 0, partitions)
    route = BlockRoute(exchange, 0, 0, 0, tuple(range(partitions)), arrival_span_ms=1.0)
    return MapWay(plan.logs[0], route, merging=merging)


@dataclass
class PartitionOutput:
    """What a reduce task gave: rows of each output in their order, its counts, and its part of the checkpoint.

    A task that ended with an error has that instead of the latter two.
    """

    rows: dict[str | None, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[str, Any] = field(default_factory=dict)
    part: OperatorPart | None = None
    error: str | None = None


def outputs_by_tasks(
    plan: JobPlan,
    log: FileInput,
    time_plane: TimePlane,
    partitions: int,
    *,
    merges: bool = False,
    timeline: Timeline | None = None,
    pending: PendingCheckpoint | None = None,
) -> list[PartitionOutput]:
    """What the partitions give; by default with the timeline of the log.

    Map tasks may merge events before the exchange, or may not.
    """
    timeline = repacked(time_plane.timeline if timeline is None else timeline)
    merging = merging_events(plan, timeline) if merges else None
    source = source_of(log, ReadingTimes.of(time_plane))
    sent = in_each_task(MapTask((map_way(plan, partitions, merging),), source), log)
    blocks = pa.Table.from_batches(sent).sort_by([(name, "ascending") for name in BLOCKS_ORDER])
    time = SentTime(SentTimeline.of(timeline, None), time_plane.last_arrival_ms)
    task = ReduceTask(plan, time, partitions, len(log.all_chunks), BlocksOutput(), pending=pending)
    outputs = []
    for partition in range(partitions):
        own = blocks.filter(pc.field("partition") == partition).combine_chunks().to_batches()
        outputs.append(_output_of(ReduceStage((task,)), own))
    return outputs


def _output_of(stage: ReduceStage, blocks: list[pa.RecordBatch]) -> PartitionOutput:
    output = PartitionOutput()
    there: Task = pickle.loads(cloudpickle.dumps(stage))
    try:
        for batch in there(iter(blocks)):
            for row in batch.to_pylist():
                if row["kind"] == BATCH:
                    for part in read_batch(row["payload"]):
                        output.rows[row["output"]] += part.to_pylist()
                elif row["kind"] == COUNTS:
                    output.counts = json.loads(row["payload"])
                elif row["kind"] == CHECKPOINT:
                    output.part = read_part(row["payload"])
    except FlinkcoreError as error:
        output.error = str(error)
    return output


def results_by_tasks(
    plan: JobPlan,
    chunks: int,
    partitions: int,
    between_passes: Callable[[], None] = lambda: None,
    merges: bool = False,
) -> dict[str | None, list[dict[str, Any]]]:
    """Rows of each output (None: the results), by the partitions of the reduce tasks."""
    log = FileInput(tuple(plan.logs[0].log.chunks(chunks)))
    time_plane = time_plane_by_tasks(plan, log)
    between_passes()
    rows: dict[str | None, list[dict[str, Any]]] = {}
    for output in outputs_by_tasks(plan, log, time_plane, partitions, merges=merges):
        assert output.error is None
        for tag_id, own in output.rows.items():
            rows.setdefault(tag_id, []).extend(own)
    return rows
