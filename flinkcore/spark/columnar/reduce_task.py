"""Reduce side of the data plane: blocks of one range of key groups to results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.python.replay_threads import cores_here
from flinkcore.checkpoint import OperatorPart, PendingCheckpoint
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.replay.partition_run import PartitionRun
from flinkcore.columnar.stages.kinds import prepared_batches
from flinkcore.columnar.stages.partial_results import (
    MergedPartials,
    PartialResults,
    PartialsMerge,
    partial_schema,
)
from flinkcore.columnar.stages.placed_events import PlacedEvents, PlacedMerge, placed
from flinkcore.columnar.stages.restored_operator import RestoredOperator, release
from flinkcore.columnar.stages.stage import StageContext, events_taken
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import OutputTag
from flinkcore.spark.columnar.deal_state_task import ranges_of
from flinkcore.spark.columnar.late_counts import PARTITION, Counts
from flinkcore.spark.columnar.progress import ProgressAddress, TaskProgress
from flinkcore.spark.exchange.blocks import (
    Block,
    BlockKind,
    BlockWriter,
    read_blocks,
    read_events,
    read_results,
    read_side_rows,
    read_state_entries,
)
from flinkcore.spark.exchange.manifests import ReceivedManifests
from flinkcore.spark.exchange.sent_timeline import SentTime
from flinkcore.time_plane.total_order import Events, LogEvents, RowsT, TimedRows

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

RowsT_contra = TypeVar("RowsT_contra", bound=TimedRows, contravariant=True)

RELEASE_ROWS = 1 << 15
"""Events are brought into order when so many have come, or those of a batch's bytes: each time costs as many steps as
there are open blocks."""


class _Merge(Protocol[RowsT_contra]):
    """Brings what comes to an operator into order."""

    def add(self, events: RowsT_contra) -> None: ...

    def release(self, arrival: int | None) -> Iterator[tuple[Events | MergedPartials, RowNumbers | None]]: ...


class OperatorReplay(Protocol):
    """The replay of a partition of an operator.

    Attributes
    ----------
    partition
        Number of the partition.
    parts
        Parts of the checkpoint that the partition has written, once it has run.
    """

    partition: int
    parts: list[OperatorPart]

    def schemas(self) -> dict[str | None, pa.Schema]:
        """Columns of the results (None) and of each side output."""

    def run(self) -> Iterator[StageOutput]:
        """Results and side outputs as they come."""

    def counts(self) -> dict[str, Any]:
        """Return the fates of the partition's events, and the counts of all whose rows came here."""


class ReduceOutput(Protocol):
    """Output of a reduce task; picklable."""

    def batches(self, replay: OperatorReplay) -> Iterator[pa.RecordBatch]:
        """Run the replay of a partition to its end, and yield the batches for Spark."""


class PartitionReplay:
    """The replay of one range of key groups.

    Parameters
    ----------
    task
        Task of which it is a part.
    context
        Context of the operator.
    partition
        Number of the range.
    blocks
        The partition's blocks in order.

    Attributes
    ----------
    parts
        Parts of the checkpoint that the partition has written, once it has run.
    """

    def __init__(
        self, task: ReduceTask, context: StageContext, partition: int, blocks: Iterator[Block]
    ) -> None:
        self.partition = partition
        self.parts: list[OperatorPart] = []
        self._task = task
        self._context = context
        self._batches = prepared_batches(context)
        self._schema = context.plan.data_schema()
        self._blocks = blocks
        self._counts: dict[str, int] = {}
        self._manifests = ReceivedManifests(task.senders)
        self._progress = TaskProgress(task.progress, True, partition)

    def schemas(self) -> dict[str | None, pa.Schema]:
        """Columns of the results (None) and of each side output."""
        return self._task.plan.output_schemas()

    def run(self) -> Iterator[StageOutput]:
        """Results and side outputs as they come.

        Raises
        ------
        InternalError
            If not every event that the map tasks sent is accounted for.
        """
        batch_bytes = self._context.plan.batch_bytes
        entries: dict[str, list[pa.RecordBatch]] = {}
        context = self._with_received_state(entries)
        with PartitionRun.opened(context, self.partition, self._task.pending) as run:
            release(entries)
            if self._context.plan.results:
                with closing(PlacedMerge(batch_bytes)) as merge:
                    yield from self._process_blocks(run, merge, self._placed)
            else:
                with closing(PartialsMerge(self._context.timeline, self._schema, batch_bytes)) as ordered:
                    yield from self._process_blocks(run, ordered, self._events)
            yield from run.end()
            self._progress.advance(0, at_end=True)
            self.parts, self._counts = run.parts, run.counts()
        self._manifests.check(self.partition, events_taken(self._counts))

    def _with_received_state(self, entries: dict[str, list[pa.RecordBatch]]) -> StageContext:
        """Take the blocks of state, which come first, as entries by state, and return the context with it.

        Raises
        ------
        InternalError
            If not every entry that was sent is there.
        """
        restored = self._task.restored
        dealt = None if restored is None else restored.dealt
        if restored is None or dealt is None:
            return self._context
        manifests = ReceivedManifests(len(ranges_of(dealt, self._task.partitions)))
        for block in self._blocks:
            if block.place.kind is BlockKind.STATE_MANIFEST:
                manifests.add(block.payload.to_pybytes())
            elif block.place.kind is BlockKind.STATE:
                state, batch = read_state_entries(block)
                entries.setdefault(state, []).append(batch)
            else:
                self._blocks = chain([block], self._blocks)
                break
        n_entries = sum(batch.num_rows for batches in entries.values() for batch in batches)
        manifests.check(self.partition, n_entries)
        return replace(self._context, restored=replace(restored, state=dealt.received(entries)))

    def _process_blocks(
        self, run: PartitionRun, merge: _Merge[RowsT], read: Callable[[Block], RowsT]
    ) -> Iterator[StageOutput]:
        rows_added = bytes_added = 0
        for block in self._blocks:
            if block.place.kind is BlockKind.MANIFEST:
                self._progress.total += self._manifests.add(block.payload.to_pybytes())
            elif block.place.kind is BlockKind.SIDE_ROWS:
                tag_id, side_rows = read_side_rows(block)
                yield StageOutput(OutputTag(tag_id), side_rows)
            else:
                if rows_added >= RELEASE_ROWS or bytes_added >= self._context.plan.batch_bytes:
                    yield from self._process(run, merge.release(block.place.first_arrival))
                    rows_added = bytes_added = 0
                added = read(block)
                merge.add(added)
                rows_added += added.n_events
                bytes_added += added.batch.nbytes
        yield from self._process(run, merge.release(None))

    def _process(
        self, run: PartitionRun, ready: Iterable[tuple[Events | MergedPartials, RowNumbers | None]]
    ) -> Iterator[StageOutput]:
        for events, rows in ready:
            prepared = self._batches.prepare(events)
            yield from run.process(events, prepared, rows)
            self._batches.release(prepared)
            self._progress.advance(events.n_events, run.current_watermark)

    def _events(self, block: Block) -> LogEvents:
        if block.place.kind is BlockKind.PARTIALS:
            return self._partial_results(block)
        events = read_events(block, self._schema_of(block))
        inputs = self._context.inputs
        return events if inputs is None else inputs.widened(block.place.input_number, events)

    def _partial_results(self, block: Block) -> PartialResults:
        results = read_events(block, self._partial_schema)
        return PartialResults(
            results.batch, results.timestamps, results.arrivals, results.splits, results.positions
        )

    @cached_property
    def _partial_schema(self) -> pa.Schema:
        windows = self._task.plan.partial_windows()
        assert not isinstance(windows, str)
        return partial_schema(windows)

    def _placed(self, block: Block) -> PlacedEvents:
        number, inputs = self._context.number, self._context.inputs
        if block.place.kind is BlockKind.RESULTS:
            results = read_results(block, self._schema_of(block))
            return results.coming_to(number, block.place.input_number, inputs)
        return placed(self._events(block).in_timeline(self._context.timeline), None, number, inputs)

    def _schema_of(self, block: Block) -> pa.Schema:
        return self._context.plan.inputs[block.place.input_number].schema

    def late_events(self) -> tuple[int, int]:
        """Number of late events, and of all events that came to the operator, once the partition has run."""
        return self._counts.get("late", 0), events_taken(self._counts)

    def counts(self) -> dict[str, Any]:
        """Return the fates of the partition's events, and the counts in the manifests that came here.

        "read" is of map tasks, "before" of partitions of operators before.
        """
        return {
            "operator": self._context.number,
            "partition": self.partition,
            "counts": self._counts,
            "read": [each["read"] for each in self._manifests.reported if "read" in each],
            "before": [each["passed"] for each in self._manifests.reported if "passed" in each],
        }


@dataclass(frozen=True)
class ReduceTask:
    """Runs an operator of a plan over the blocks of its partitions; picklable.

    Attributes
    ----------
    plan
        The job.
    time
        As the operator sees it.
    partitions
        Number of ranges of key groups.
    senders
        Number of chunks of the logs, and of partitions of operators before whose results come to it.
    output
        Turns results into batches for Spark.
    progress
        Where the task reports how far it is.
    restored
        State from which the stages are restored.
    pending
        The checkpoint with which the job stops.
    number
        Number of the operator, from 0 on.
    late_counts
        Accumulator that takes the counts of late events, or None.
    """

    plan: JobPlan
    time: SentTime
    partitions: int
    senders: int
    output: ReduceOutput
    progress: ProgressAddress | None = None
    restored: RestoredOperator | None = None
    pending: PendingCheckpoint | None = None
    number: int = 0
    late_counts: Accumulator[Counts] | None = None

    def context(self) -> StageContext:
        """The operator as all its partitions see it."""
        # Each process runs a partition at a time, and Spark as many of them as there are cores.
        memory_bytes = self.plan.managed_memory.of_partitions(1, processes=cores_here())
        return StageContext.of(
            self.plan, self.number, self.time.replay_time(), self.partitions, self.restored, memory_bytes
        )


@dataclass(frozen=True)
class ReduceStage:
    """Runs the operators of a level, and passes on blocks for later ones; picklable.

    Attributes
    ----------
    tasks
        Tasks of the operators.
    first_partitions
        Number of each operator's first partition among those of the job.
    slots
        For each partition of the job, its slot in the shuffle before the next level; none if there is no such level.
    """

    tasks: tuple[ReduceTask, ...]
    first_partitions: tuple[int, ...] = (0,)
    slots: tuple[int, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outputs of the task's partitions, one after the other."""
        operators = {
            first + partition: (task, partition)
            for task, first in zip(self.tasks, self.first_partitions, strict=True)
            for partition in range(task.partitions)
        }
        contexts: dict[int, StageContext] = {}
        for number, blocks in groupby(read_blocks(batches), key=lambda block: block.partition):
            if number not in operators:
                yield from self._passed_on(blocks)
                continue
            task, partition = operators[number]
            if task.number not in contexts:
                contexts[task.number] = task.context()
            replay = PartitionReplay(task, contexts[task.number], partition, blocks)
            yield from task.output.batches(replay)
            if task.late_counts is not None:
                task.late_counts.add({(PARTITION, task.number, partition): (*replay.late_events(), 1)})

    def _passed_on(self, blocks: Iterator[Block]) -> Iterator[pa.RecordBatch]:
        writer = BlockWriter(self.slots)
        for block in blocks:
            writer.add_payload(block.partition, block.place, block.payload)
            yield from writer.take_full()
        yield from writer.take()
