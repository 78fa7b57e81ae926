"""Many small replays in one run of Spark: every map task and reduce task of all of them, and one exchange.

A Spark task costs more than such a replay does, so that each runs many of flinkcore's tasks. Each of these gets what it
would get as a Spark task of its own: a chunk of its log, or its partition's rows of the shuffle in order.
"""

import json
import pickle
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from equipment.merged_events import merging_events, merging_lots_of
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructField, StructType

from flinkcore.checkpoint import Checkpoint, OperatorPart, OperatorSnapshot, PendingCheckpoint
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.errors import FlinkcoreError
from flinkcore.spark.columnar.map_task import MapTask, MapWay
from flinkcore.spark.columnar.reduce_task import ReduceStage, ReduceTask
from flinkcore.spark.columnar.task_outputs import (
    BATCH,
    CHECKPOINT,
    COUNTS,
    TASK_ROWS,
    BlocksOutput,
    read_batch,
    read_part,
)
from flinkcore.spark.exchange.blocks import BLOCKS, BLOCKS_ORDER
from flinkcore.spark.exchange.packed_timeline import PackedTime
from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.logs.log_input import FileInput
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.time_pass import time_planes_of
from flinkcore.time_plane.timeline import Timeline, TimePlane

SPARK_TASKS = 8
ERROR = "error"


@dataclass(frozen=True)
class SmallReplay:
    """A replay of one chunk that stops with a checkpoint, so that its end fires nothing.

    Parameters
    ----------
    plan : JobPlan
    log : FileInput
    time_plane : TimePlane
    partitions : int
    directory : Path
        Of the checkpoint.
    merges : bool
        Whether the map task merges all events that can be, a few at a time.
    """

    plan: JobPlan
    log: FileInput
    time_plane: TimePlane
    partitions: int
    directory: Path
    merges: bool

    @classmethod
    def of(cls, plan: JobPlan, partitions: int, directory: Path, merges: bool = False) -> "SmallReplay":
        log = FileInput(tuple(plan.logs[0].log.chunks(1)))
        time_plane = time_planes_of(plan.logs, [log.all_chunks], 1)[0]
        return cls(plan, log, time_plane, partitions, directory, merges)

    def begin(self) -> PendingCheckpoint:
        """Begin the checkpoint with which the replay stops."""
        return PendingCheckpoint.begin(self.directory, self.plan.max_parallelism)

    def snapshots(self) -> list[OperatorSnapshot]:
        """What each partition held, read back from the checkpoint."""
        key_groups = self.plan.max_parallelism
        return Checkpoint.open(self.directory).restore(
            self.plan.stages[0].uid, (0, key_groups - 1), key_groups
        )

    def tasks(self, slots: tuple[int, ...], pending: PendingCheckpoint) -> tuple[MapTask, ReduceStage]:
        plan, time_plane = self.plan, self.time_plane
        timeline = without_end(time_plane.timeline)
        time = PackedTime.of(ReplayTime(timeline, time_plane.last_arrival_ms, [0]))
        merging = merging_events(plan, timeline) if self.merges else None
        way = MapWay(plan.logs[0], time_plane, self.partitions, slots, arrival_span_ms=1.0, merging=merging)
        return (
            MapTask((way,), self.log),
            ReduceStage((ReduceTask(plan, time, self.partitions, 1, BlocksOutput(), pending=pending),)),
        )


def without_end(timeline: Timeline) -> Timeline:
    """The timeline of a log that goes on."""
    if timeline.clock_ms[-1] < 2**63 - 1:
        return timeline
    return Timeline(
        *(getattr(timeline, name)[:-1] for name in ("clock_ms", "watermark_ms", "split", "position"))
    )


@dataclass
class PartitionOutput:
    """What a reduce task gave: rows of each output in their order, its counts, and what it held as it stopped.

    A task that ended with an error has that instead of the latter two.
    """

    rows: dict[str | None, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[str, Any] = field(default_factory=dict)
    snapshot: OperatorSnapshot = field(default_factory=OperatorSnapshot)
    error: str | None = None


@dataclass(frozen=True)
class ManyMapTasks:
    """Runs the map tasks whose numbers it gets; partitions are numbered over all replays."""

    tasks: list[bytes]
    first_partitions: list[int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        the_chunk = pa.record_batch({"id": [0]})
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task = pickle.loads(self.tasks[number])
                with nullcontext() if task.ways[0].merging is None else merging_lots_of(3):
                    mapped = list(task(iter([the_chunk])))
                for rows in mapped:
                    yield in_partitions_from(self.first_partitions[number], rows)


@dataclass(frozen=True)
class ManyReduceTasks:
    """Runs the reduce tasks whose partitions it gets."""

    tasks: list[bytes]
    first_partitions: list[int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for partition, rows in groupby(
            single_rows(batches), key=lambda row: row.column("partition")[0].as_py()
        ):
            number = int(np.searchsorted(self.first_partitions, partition, side="right")) - 1
            own = (in_partitions_from(-self.first_partitions[number], row) for row in rows)
            for output in until_an_error(pickle.loads(self.tasks[number])(own)):
                yield output.add_column(0, "of", pa.array([partition] * output.num_rows, pa.int64()))


def until_an_error(outputs: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task gives, and the error that it ends with."""
    try:
        yield from outputs
    except FlinkcoreError as error:
        yield pa.record_batch({"kind": [ERROR], "output": [str(error)], "payload": [b""]})


def single_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in range(batch.num_rows):
            yield batch.slice(row, 1)


def in_partitions_from(first: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    at = rows.schema.get_field_index("partition")
    moved = pa.array(rows.column(at).to_numpy() + first, pa.int32())
    return rows.set_column(at, "partition", moved)


def run_all(spark: Any, replays: list[SmallReplay]) -> list[list[PartitionOutput]]:
    """What the partitions of each replay gave."""
    numbers = spark.range(0, len(replays), 1, SPARK_TASKS)
    slots = partition_slots(SPARK_TASKS, chooses_partitions(numbers))
    bounds = np.cumsum([0, *(replay.partitions for replay in replays)]).tolist()
    pairs, checkpoints = [], [replay.begin() for replay in replays]
    for replay, pending, first in zip(replays, checkpoints, bounds, strict=False):
        own = range(first, first + replay.partitions)
        pairs.append(replay.tasks(tuple(slots[partition % SPARK_TASKS] for partition in own), pending))
    maps, reduces = ([cloudpickle.dumps(task) for task in tasks] for tasks in zip(*pairs, strict=True))
    mapped = numbers.mapInArrow(portable(spark, ManyMapTasks(maps, bounds[:-1])), BLOCKS.struct_type)
    exchanged = to_partitions(mapped, SPARK_TASKS, "slot").sortWithinPartitions(*BLOCKS_ORDER)
    schema = StructType([StructField("of", LongType()), *TASK_ROWS.struct_type])
    rows = exchanged.mapInArrow(portable(spark, ManyReduceTasks(reduces, bounds[:-1])), schema).collect()
    outputs = [PartitionOutput() for _ in range(bounds[-1])]
    parts: dict[int, OperatorPart] = {}
    for row in rows:
        output = outputs[row.of]
        if row.kind == BATCH:
            for batch in read_batch(row.payload):
                output.rows[row.output] += batch.to_pylist()
        elif row.kind == COUNTS:
            output.counts = json.loads(bytes(row.payload))
        elif row.kind == CHECKPOINT:
            parts[row.of] = read_part(row.payload)
        elif row.kind == ERROR:
            output.error = row.output
    of_replays = []
    for replay, pending, first in zip(replays, checkpoints, bounds, strict=False):
        own = range(first, first + replay.partitions)
        if all(outputs[partition].error is None for partition in own):
            with pending:
                pending.commit([parts[partition] for partition in own])
            for partition, snapshot in zip(own, replay.snapshots(), strict=True):
                outputs[partition].snapshot = snapshot
        of_replays.append([outputs[partition] for partition in own])
    return of_replays
