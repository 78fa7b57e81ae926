"""The end of a job that takes rows anywhere, run by the tasks that read its logs: their events need no shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from flinkcore.checkpoint import OperatorPart
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader, ReadEvents, read_on_all_ways
from flinkcore.columnar.replay.partition_run import PartitionRun
from flinkcore.columnar.stages.kinds import prepared_batches
from flinkcore.columnar.stages.stage import StageContext, events_taken
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.errors import InternalError
from flinkcore.spark.columnar.progress import ProgressAddress, TaskProgress
from flinkcore.spark.columnar.reduce_task import ReduceOutput
from flinkcore.spark.exchange.sent_timeline import SentTime
from flinkcore.spark.logs.log_input import ChunkSource, TaskChunks


@dataclass(frozen=True)
class ForwardWay:
    """A use of a log by the operator at the end of a job; picklable.

    Attributes
    ----------
    plan
        Plan of the log.
    log
        Number of the log.
    first_split
        Number of its first split among those of all logs of the job.
    """

    plan: LogPlan
    log: int
    first_split: int


@dataclass(frozen=True)
class ForwardTask:
    """Reads chunks, and runs the only operator of a job over their events; picklable.

    The events of a task are a partition of the operator, in the order in which the log has them.

    Attributes
    ----------
    job
        Plan of the job.
    ways
        All uses of the log, which is read once for them.
    time
        Time as the operator sees it.
    source
        Gives the task its chunks, and the times by which they are read on each way.
    output
        Turns results into batches for Spark.
    first_partition
        Number of the partition of the first task that reads the log.
    partitions
        Number of all partitions.
    progress
        Where the task reports how far it is.
    """

    job: JobPlan
    ways: tuple[ForwardWay, ...]
    time: SentTime
    source: ChunkSource
    output: ReduceOutput
    first_partition: int
    partitions: int
    progress: ProgressAddress | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outputs of the task's chunks."""
        for group in self.source.of_task(batches):
            yield from self.output.batches(_ForwardReplay(self, group))

    def context(self) -> StageContext:
        """The operator as all tasks see it; it has no key."""
        context = StageContext.of(self.job, 0, self.time.replay_time(), self.partitions)
        return replace(context, key_groups=(0, context.plan.max_parallelism - 1))


class _ForwardReplay:
    """The replay of the chunks of a task; an `OperatorReplay`.

    Parameters
    ----------
    task
        Task of which it is a part.
    group
        The chunks.
    """

    def __init__(self, task: ForwardTask, group: TaskChunks) -> None:
        self.partition = task.first_partition + group.task
        self.parts: list[OperatorPart] = []
        self._task = task
        self._group = group
        self._context = task.context()
        self._batches = prepared_batches(self._context)
        self._readers = [
            ChunkReader(way.plan, time_plane, way.first_split)
            for way, time_plane in zip(task.ways, group.about.time_planes, strict=True)
        ]
        self._chunks = self._events = 0
        self._counts: dict[str, int] = {}
        rows = sum(time_plane.rows_read for time_plane in group.about.time_planes)
        self._progress = [
            TaskProgress(task.progress, is_reduce, self.partition, rows) for is_reduce in (False, True)
        ]

    def schemas(self) -> dict[str | None, pa.Schema]:
        """Columns of the results (None) and of each side output."""
        return self._task.job.output_schemas()

    def run(self) -> Iterator[StageOutput]:
        """Results and side outputs as they come.

        Raises
        ------
        InternalError
            If not every event that was read is accounted for.
        """
        with PartitionRun.opened(self._context, self.partition, None) as run:
            for chunk in self._group.chunks:
                self._chunks += 1
                for read in read_on_all_ways(self._readers, chunk):
                    for of_way in read:
                        yield from of_way.side_outputs
                        yield from self._process(run, of_way)
            yield from run.end()
            for progress in self._progress:
                progress.advance(0, at_end=True)
            self._counts = run.counts()
        if events_taken(self._counts) != self._events:
            raise InternalError(
                f"partition {self.partition} read {self._events} events, and took {events_taken(self._counts)}"
            )

    def _process(self, run: PartitionRun, read: ReadEvents) -> Iterator[StageOutput]:
        for part in read.events.cut(self._context.plan.batch_bytes) if read.events.n_events else ():
            ordered, rows = part.in_order()
            events = ordered.in_timeline(self._context.timeline, rows)
            prepared = self._batches.prepare(events)
            yield from run.process(events, prepared, rows)
            self._batches.release(prepared)
            self._events += events.n_events
        for progress in self._progress:
            progress.advance(read.rows_read, run.current_watermark)

    def counts(self) -> dict[str, Any]:
        """Return the fates of the events, and the counts of each log; the chunks are counted on each way."""
        return {
            "operator": self._context.number,
            "partition": self.partition,
            "counts": self._counts,
            "read": [
                {"chunks": self._chunks, "log": way.log, "counts": reader.counts.to_content()}
                for way, reader in zip(self._task.ways, self._readers, strict=True)
            ],
            "before": [],
        }
