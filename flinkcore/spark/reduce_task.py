"""Reduce side of the data plane: blocks of one range of key groups to results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import pyarrow as pa

from flinkcore.common import OutputTag
from flinkcore.errors import FlinkcoreError
from flinkcore.replay.job_checkpoint import RestoredOperator, write_partition
from flinkcore.replay.keyed_stage import KeyedStage, KeyedStages, events_taken, keyed_stages, opened_stage
from flinkcore.replay.plan import ReplayPlan
from flinkcore.replay.result import Output
from flinkcore.replay.total_order import Events, RowNumbers, TotalOrderMerge
from flinkcore.runtime.checkpoint import OperatorPart, PendingCheckpoint
from flinkcore.spark.blocks import Block, BlockKind, read_blocks, read_events, read_manifest, read_rows
from flinkcore.spark.log_input import partitions_gone
from flinkcore.spark.packed_timeline import PackedTimeline
from flinkcore.spark.progress import ProgressAddress, TaskProgress

RELEASE_ROWS = 1 << 15
"""Events are brought into order when so many have come: each time costs as many steps as there are open blocks."""


class TaskOutput(Protocol):
    """What a reduce task makes of its results; picklable."""

    def batches(self, replay: PartitionReplay) -> Iterator[pa.RecordBatch]:
        """Run the replay of a partition to its end, and give what goes on to Spark."""


class PartitionReplay:
    """The replay of one range of key groups.

    Parameters
    ----------
    plan
        The job.
    stages
        Makes what runs its operator.
    chunks
        Number of chunks of the log.
    recomputable
        Whether the log is a DataFrame, whose partitions Spark may compute again, and not alike.
    partition
        Number of the range.
    blocks
        The partition's blocks in order.
    progress
        Whom to tell how far the replay has come.
    pending
        The checkpoint with which the job stops.

    Attributes
    ----------
    part
        What of the checkpoint the partition has written, once it has run.
    """

    def __init__(
        self,
        plan: ReplayPlan,
        stages: KeyedStages,
        chunks: int,
        recomputable: bool,
        partition: int,
        blocks: Iterator[Block],
        progress: ProgressAddress | None,
        pending: PendingCheckpoint | None,
    ) -> None:
        self.partition = partition
        self.part: OperatorPart | None = None
        self._pending = pending
        self._plan = plan
        self._schema = plan.data_schema()
        self._chunks = chunks
        self._recomputable = recomputable
        self._blocks = blocks
        self._stages = stages
        self._counts: dict[str, int] = {}
        self._manifests: list[dict[str, Any]] = []
        self._progress = TaskProgress(progress, True, partition)

    def schemas(self) -> dict[str | None, pa.Schema]:
        """Columns of the results (None) and of each side output."""
        side_outputs = {tag.tag_id: self._plan.side_output_schema(tag) for tag in self._plan.side_outputs()}
        return {None: self._stages.schema} | side_outputs

    def run(self) -> Iterator[Output]:
        """Results and side outputs as they come.

        Raises
        ------
        FlinkcoreError
            If not every event that the map tasks sent is accounted for.
        """
        with opened_stage(self._stages, self.partition) as stage:
            yield from self._run(stage)
        self._check()

    def _run(self, stage: KeyedStage) -> Iterator[Output]:
        merge = TotalOrderMerge()
        rows_added = 0
        for block in self._blocks:
            if block.kind is BlockKind.MANIFEST:
                manifest = read_manifest(block)
                self._manifests.append(manifest)
                self._progress.total += manifest["rows"]
            elif block.kind is BlockKind.REJECTED:
                assert isinstance(self._plan.log.on_bad_row, OutputTag)
                yield Output(self._plan.log.on_bad_row, read_rows(block))
            else:
                if rows_added >= RELEASE_ROWS:
                    for events, rows in merge.release(block.first_arrival):
                        yield from self._process(stage, events, rows)
                    rows_added = 0
                added = read_events(block, self._schema)
                merge.add(added)
                rows_added += added.batch.num_rows
        for events, rows in merge.release(None):
            yield from self._process(stage, events, rows)
        if self._pending is None:
            yield from stage.finish()
        else:
            yield from stage.stop()
            self.part = write_partition(self._plan, self._pending, self.partition, stage.snapshot())
        self._progress.advance(0, at_end=True)
        self._counts = stage.counts()

    def _process(self, stage: KeyedStage, events: Events, rows: RowNumbers | None) -> Iterator[Output]:
        prepared = self._stages.prepare(events)
        yield from stage.process(prepared, rows)
        self._stages.release(prepared)
        self._progress.advance(len(events.arrivals), stage.current_watermark)

    def _check(self) -> None:
        chunks = {manifest["chunk"] for manifest in self._manifests}
        sent = sum(manifest["rows"] for manifest in self._manifests)
        if self._recomputable and len(chunks) == len(self._manifests) < self._chunks:
            raise partitions_gone(len(chunks), self._chunks)
        taken = events_taken(self._counts)
        if len(chunks) != self._chunks or len(self._manifests) != self._chunks or taken != sent:
            raise FlinkcoreError(
                f"partition {self.partition} got {taken:,} of {sent:,} events that {len(self._manifests)} of "
                f"{self._chunks} map tasks sent; this is a defect of flinkcore, the result must not be used"
            )

    def counts(self) -> dict[str, Any]:
        """What became of the partition's events, and what map tasks tell in the manifests that came here."""
        read = [manifest for manifest in self._manifests if "events_read" in manifest]
        return {
            "partition": self.partition,
            "counts": self._counts,
            "read": read,
        }


@dataclass(frozen=True)
class ReduceTask:
    """Runs the keyed operator of a plan over the blocks of partitions; picklable.

    Attributes
    ----------
    plan
        The job.
    timeline
        Watermarks of the whole log.
    last_arrival_ms
        Of the whole log; None if it has no events.
    partitions
        Number of ranges of key groups.
    chunks
        Number of chunks of the log.
    recomputable
        Whether the log is a DataFrame, whose partitions Spark may compute again, and not alike.
    output
        What becomes of the results.
    progress
        Whom to tell how far the task has come.
    restored
        What the stages go on from.
    pending
        The checkpoint with which the job stops.
    """

    plan: ReplayPlan
    timeline: PackedTimeline
    last_arrival_ms: int | None
    partitions: int
    chunks: int
    recomputable: bool
    output: TaskOutput
    progress: ProgressAddress | None = None
    restored: RestoredOperator | None = None
    pending: PendingCheckpoint | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outputs of the task's partitions, one after the other."""
        stages = keyed_stages(
            self.plan, self.timeline.unpacked(), self.last_arrival_ms, self.partitions, self.restored
        )
        for partition, blocks in groupby(read_blocks(batches), key=lambda block: block.partition):
            replay = PartitionReplay(
                self.plan,
                stages,
                self.chunks,
                self.recomputable,
                partition,
                blocks,
                self.progress,
                self.pending,
            )
            yield from self.output.batches(replay)
