"""One partition of an operator, from what it is restored from to its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.checkpoint import OperatorPart, PendingCheckpoint
from flinkcore.columnar.stages.kinds import opened_stage
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import StageOutput, behind_steps


class PartitionRun:
    """Runs an operator over the rows of one partition.

    Parameters
    ----------
    context
        The operator, and what it is restored from.
    partition
        Number of the partition.
    pending
        Checkpoint with which the job stops, or None if it runs to its end.
    stage
        The operator over the key groups of the partition.

    Attributes
    ----------
    partition
        Number of the partition.
    part
        Part of the checkpoint that the partition has written, once it has ended.
    """

    def __init__(
        self, context: StageContext, partition: int, pending: PendingCheckpoint | None, stage: Stage[Any]
    ) -> None:
        self.partition = partition
        self.part: OperatorPart | None = None
        self._plan = context.plan
        self._pending = pending
        self._stage = stage

    @classmethod
    @contextmanager
    def opened(
        cls, context: StageContext, partition: int, pending: PendingCheckpoint | None
    ) -> Iterator[PartitionRun]:
        """Yield the run of a partition, whose operator is closed after the block."""
        with opened_stage(context, partition) as stage:
            yield cls(context, partition, pending, stage)

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""
        return self._stage.current_watermark

    def process(self, prepared: Any, rows: RowNumbers | None) -> Iterator[StageOutput]:
        """Take in events, as `Stage.process` does, and yield what they make ready."""
        return behind_steps(self._stage.process(prepared, rows), self._plan.after, self._plan.batch_bytes)

    def advance(self, until_ms: int) -> Iterator[StageOutput]:
        """Let happen what is due before a time, ms since the epoch, for an operator that waits for the results."""
        return behind_steps(self._stage.advance(until_ms), self._plan.after, self._plan.batch_bytes)

    def end(self) -> Iterator[StageOutput]:
        """End with the log, or stop and write the part of the checkpoint; yield the last outputs."""
        stage = self._stage
        last = stage.finish() if self._pending is None else stage.stop()
        yield from behind_steps(last, self._plan.after, self._plan.batch_bytes)
        if self._pending is not None:
            self.part = self._pending.writer().write(self._plan.uid, self.partition, stage.snapshot())

    def counts(self) -> dict[str, int]:
        """Return the counts of events and firings so far, by their names in the report."""
        return self._stage.counts()
