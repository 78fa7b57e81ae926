"""What runs a plan's keyed operator: the same in one process and in a Spark task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from flinkcore.datastream.functions import KeyedBatchProcessFunction
from flinkcore.replay.batch_functions.batch_process_stage import BatchProcessStages
from flinkcore.replay.plans.keyed_operator import KeyedProcess, WindowAggregation, WindowProcess
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output
from flinkcore.replay.stages.process_stage import ProcessStages
from flinkcore.replay.stages.restored_operator import RestoredOperator
from flinkcore.replay.stages.window_process_stage import WindowProcessStages
from flinkcore.replay.stages.window_stage import WindowStages
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.replay.time_plane.total_order import Events, RowNumbers
from flinkcore.runtime.checkpoint import OperatorSnapshot

FATES: Final = ("windowed", "late", "in_no_window", "processed", "repeated")
"""Counts of a stage that together are all its events."""


class KeyedStage(Protocol):
    """The operator over the key groups of one partition."""

    def process(self, prepared: Any, rows: RowNumbers | None) -> Iterator[Output]:
        """Take in events in total order, and give what they make ready.

        Parameters
        ----------
        prepared
            The batch.
        rows
            Rows of this partition, in total order; None: all, as they lie.
        """

    def finish(self) -> Iterator[Output]:
        """Let the end of the log fire everything, and give the last results batch by batch."""

    def stop(self) -> Iterator[Output]:
        """Let happen what comes before the cut with which the log ends, and give the results, instead of `finish`."""

    def snapshot(self) -> OperatorSnapshot:
        """What the operator holds once it has stopped."""

    def close(self) -> None:
        """Let go of what the operator holds; called once, also after a failure."""

    def counts(self) -> dict[str, int]:
        """Counts of events and firings so far, by their names in the report."""

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""


class KeyedStages(Protocol):
    """Makes the stages of a plan, and prepares the batches that they share."""

    def stage(self, partition: int) -> KeyedStage:
        """Return a stage for a partition."""

    def prepare(self, events: Events) -> Any:
        """Return a batch as stages take it; may be called from several threads at once."""

    def release(self, prepared: Any) -> None:
        """Take back what a batch was prepared with, once all stages have processed it."""


def keyed_stages(
    plan: StagePlan,
    timeline: Timeline,
    last_arrival_ms: int | None,
    partitions: int,
    restored: RestoredOperator | None = None,
) -> KeyedStages:
    """Return what makes the stages of a plan.

    Parameters
    ----------
    plan
        The job.
    timeline
        The watermarks of the whole log.
    last_arrival_ms
        Of the whole log; None if it has no events.
    partitions
        Into how many ranges the key groups are divided.
    restored
        What the stages go on from.
    """
    operator = plan.operator
    if isinstance(operator, WindowProcess):
        return WindowProcessStages(plan, operator, timeline, last_arrival_ms, partitions, restored)
    if isinstance(operator, KeyedProcess):
        if isinstance(operator.function, KeyedBatchProcessFunction):
            return BatchProcessStages(plan, operator, timeline, last_arrival_ms, partitions, restored)
        return ProcessStages(plan, operator, timeline, last_arrival_ms, partitions, restored)
    assert isinstance(operator, WindowAggregation)
    return WindowStages(plan, operator, timeline, partitions, restored)


@contextmanager
def opened_stage(stages: KeyedStages, partition: int) -> Iterator[KeyedStage]:
    """A stage that is closed with the block; an error in the block hides one of the closing."""
    stage = stages.stage(partition)
    try:
        yield stage
    except BaseException:
        with suppress(Exception):
            stage.close()
        raise
    stage.close()


def events_taken(counts: Mapping[str, int]) -> int:
    """How many events a stage has taken, by its counts."""
    return sum(counts.get(fate, 0) for fate in FATES)
