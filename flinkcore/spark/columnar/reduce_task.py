"""Reduce side of the data plane: blocks of one range of key groups to results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.checkpoint import OperatorPart, PendingCheckpoint
from flinkcore.columnar.checkpoint.job_checkpoint import write_partition
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.operators import WindowAggregation
from flinkcore.columnar.stages.opened_stage import PreparedBatches, opened_stage
from flinkcore.columnar.stages.partial_results import (
    MergedPartials,
    PartialResults,
    PartialsMerge,
    partial_schema,
)
from flinkcore.columnar.stages.placed_events import PlacedEvents, PlacedMerge, placed
from flinkcore.columnar.stages.stage import RestoredOperator, Stage, StageContext, events_taken
from flinkcore.columnar.stages.stage_output import StageOutput, behind_steps
from flinkcore.common import OutputTag
from flinkcore.errors import FlinkcoreError
from flinkcore.spark.columnar.late_counts import PARTITION, Counts
from flinkcore.spark.columnar.progress import ProgressAddress, TaskProgress
from flinkcore.spark.exchange.blocks import (
    Block,
    BlockKind,
    BlockWriter,
    read_blocks,
    read_events,
    read_manifest,
    read_placed,
    read_rows,
    read_side_rows,
)
from flinkcore.spark.exchange.packed_timeline import PackedTime
from flinkcore.time_plane.total_order import Events, EventsT, LogEvents

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

EventsT_contra = TypeVar("EventsT_contra", bound=LogEvents, contravariant=True)

RELEASE_ROWS = 1 << 15
"""Events are brought into order when so many have come: each time costs as many steps as there are open blocks."""


class _Merge(Protocol[EventsT_contra]):
    """Brings what comes to an operator into order."""

    def add(self, events: EventsT_contra) -> None: ...

    def release(self, arrival: int | None) -> Iterator[tuple[Events | MergedPartials, RowNumbers | None]]: ...


class ReduceOutput(Protocol):
    """Output of a reduce task; picklable."""

    def batches(self, replay: PartitionReplay) -> Iterator[pa.RecordBatch]:
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
    part
        Part of the checkpoint that the partition has written, once it has run.
    """

    def __init__(
        self, task: ReduceTask, context: StageContext, partition: int, blocks: Iterator[Block]
    ) -> None:
        self.partition = partition
        self.part: OperatorPart | None = None
        self._task = task
        self._plan = task.plan
        self._number = task.number
        self._context = context
        self._batches = PreparedBatches(context)
        self._takes_results = bool(context.plan.results)
        self._schema = context.plan.data_schema()
        self._by_splits = context.plan.connected_inputs(task.time.second_from)
        self._blocks = blocks
        self._counts: dict[str, int] = {}
        self._manifests: list[dict[str, Any]] = []
        self._progress = TaskProgress(task.progress, True, partition)

    def schemas(self) -> dict[str | None, pa.Schema]:
        """Columns of the results (None) and of each side output."""
        return self._plan.output_schemas()

    def run(self) -> Iterator[StageOutput]:
        """Results and side outputs as they come.

        Raises
        ------
        FlinkcoreError
            If not every event that the map tasks sent is accounted for.
        """
        with opened_stage(self._context, self.partition) as stage:
            yield from behind_steps(self._run(stage), self._context.plan.after)
        self._check()

    def _run(self, stage: Stage[Any]) -> Iterator[StageOutput]:
        if self._takes_results:
            with closing(PlacedMerge()) as merge:
                yield from self._process_blocks(stage, merge, self._placed)
        else:
            ordered = PartialsMerge(self._context.timeline, self._schema)
            yield from self._process_blocks(stage, ordered, self._events)
        if self._task.pending is None:
            yield from stage.finish()
        else:
            yield from stage.stop()
            self.part = write_partition(
                self._plan, self._task.pending, self._number, self.partition, stage.snapshot()
            )
        self._progress.advance(0, at_end=True)
        self._counts = stage.counts()

    def _process_blocks(
        self, stage: Stage[Any], merge: _Merge[EventsT], read: Callable[[Block], EventsT]
    ) -> Iterator[StageOutput]:
        rows_added = 0
        for block in self._blocks:
            if block.kind is BlockKind.MANIFEST:
                manifest = read_manifest(block)
                self._manifests.append(manifest)
                self._progress.total += manifest["rows"]
            elif block.kind is BlockKind.REJECTED:
                yield StageOutput(self._plan.logs[block.first_split].rejected_tag, read_rows(block))
            elif block.kind is BlockKind.SIDE_ROWS:
                tag_id, side_rows = read_side_rows(block)
                yield StageOutput(OutputTag(tag_id), side_rows)
            else:
                if rows_added >= RELEASE_ROWS:
                    yield from self._process_all(stage, merge.release(block.first_arrival))
                    rows_added = 0
                added = read(block)
                merge.add(added)
                rows_added += added.batch.num_rows
        yield from self._process_all(stage, merge.release(None))

    def _process_all(
        self, stage: Stage[Any], ready: Iterable[tuple[Events | MergedPartials, RowNumbers | None]]
    ) -> Iterator[StageOutput]:
        for events, rows in ready:
            yield from self._process(stage, events, rows)

    def _events(self, block: Block) -> LogEvents:
        if block.holds_partials:
            return self._partial_results(block)
        inputs = self._by_splits
        if inputs is None:
            return read_events(block, self._schema)
        number = int(block.first_split >= inputs.second_from)
        return inputs.widened(number, read_events(block, self._schema_of(number)))

    def _partial_results(self, block: Block) -> PartialResults:
        results = read_events(block, self._partial_schema)
        return PartialResults(
            results.batch, results.timestamps, results.arrivals, results.splits, results.positions
        )

    @cached_property
    def _partial_schema(self) -> pa.Schema:
        operator = self._context.plan.operator
        assert isinstance(operator, WindowAggregation)
        return partial_schema(self._context.plan, operator.native(self._schema)[1])

    def _placed(self, block: Block) -> PlacedEvents:
        number = block.input_of_results
        if number is not None:
            results = read_placed(block, self._schema_of(number))
            return results.coming_to(self._number, number, self._context.inputs)
        events = self._events(block).in_timeline(self._context.timeline)
        return placed(events, None, self._number, self._by_splits)

    def _schema_of(self, number: int) -> pa.Schema:
        return self._schema if self._by_splits is None else self._context.plan.inputs[number].schema

    def _process(
        self, stage: Stage[Any], events: Events | MergedPartials, rows: RowNumbers | None
    ) -> Iterator[StageOutput]:
        prepared = self._batches.prepare(events)
        yield from stage.process(prepared, rows)
        self._batches.release(prepared)
        self._progress.advance(events.n_events, stage.current_watermark)

    def _check(self) -> None:
        chunks = {manifest["chunk"] for manifest in self._manifests}
        sent = sum(manifest["rows"] for manifest in self._manifests)
        taken = events_taken(self._counts)
        if len(chunks) != self._task.chunks or len(self._manifests) != self._task.chunks or taken != sent:
            raise FlinkcoreError(
                f"partition {self.partition} got {taken:,} of {sent:,} events that {len(self._manifests)} of "
                f"{self._task.chunks} map tasks sent; this is a defect of flinkcore, the result must not be used"
            )

    def late_events(self) -> tuple[int, int]:
        """Number of late events, and of all events that came to the operator, once the partition has run."""
        return self._counts.get("late", 0), events_taken(self._counts)

    def counts(self) -> dict[str, Any]:
        """Return the fates of the partition's events, and the counts in the manifests that came here.

        "read" is of map tasks, "before" of partitions of operators before.
        """
        return {
            "operator": self._number,
            "partition": self.partition,
            "counts": self._counts,
            "read": [manifest for manifest in self._manifests if "events_read" in manifest],
            "before": [manifest["passed"] for manifest in self._manifests if "passed" in manifest],
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
    chunks
        Number of chunks of the logs, and of partitions of operators before whose results come to it.
    output
        What becomes of the results.
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
    time: PackedTime
    partitions: int
    chunks: int
    output: ReduceOutput
    progress: ProgressAddress | None = None
    restored: RestoredOperator | None = None
    pending: PendingCheckpoint | None = None
    number: int = 0
    late_counts: Accumulator[Counts] | None = None

    def context(self) -> StageContext:
        """The operator as all its partitions see it."""
        return StageContext.of(self.plan, self.number, self.time.unpacked(), self.partitions, self.restored)


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
                task.late_counts.add({(PARTITION, task.number, partition): replay.late_events()})

    def _passed_on(self, blocks: Iterator[Block]) -> Iterator[pa.RecordBatch]:
        writer = BlockWriter(self.slots)
        for block in blocks:
            writer.add_block(block)
            yield from writer.take_full()
        yield from writer.take()
