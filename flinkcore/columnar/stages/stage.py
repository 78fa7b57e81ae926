"""Stages: each runs an operator over the key groups of one partition, in one process and in a Spark task alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.stages.emission_times import EmissionTimes
from flinkcore.columnar.stages.restored_operator import RestoredOperator, StagePlace, SuspendedOperator
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.datastream.window.local_clock import LocalClock
from flinkcore.errors import InternalError
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.timeline import Timeline

FATES: Final = ("windowed", "late", "in_no_window", "processed", "repeated")
"""Counts of a stage that together are all its events."""

LEVELS = ("pending_processing_time_timers",)
"""Counts of what a stage holds at present; all others are of what it has done."""


@dataclass(frozen=True)
class StageContext:
    """An operator as all its stages see it.

    Parameters
    ----------
    plan : StagePlan
        The operator, and what comes to it.
    timeline : Timeline
        The watermarks of all that comes to it.
    last_arrival_ms : int or None
        Last arrival of all logs, or None without events. Timers that are due by then fire in every partition.
    partitions : int
        Into how many ranges the key groups are divided.
    inputs : ConnectedInputs or None
        Distinction of the rows of connected streams, or None for a single input.
    number : int
        Number of the operator in the job, from 0 on.
    places_results : bool
        Whether another operator follows, which takes results in order.
    restored : RestoredOperator, SuspendedOperator or None
        State from which the stages are restored, or None if they begin with the logs.
    key_groups : (int, int) or None
        First and last key group, for a stage over a part of its partition.
    memory_bytes : int or None
        Memory for the open state of each partition, or None if it is not limited.
    """

    plan: StagePlan
    timeline: Timeline
    last_arrival_ms: int | None
    partitions: int
    inputs: ConnectedInputs | None = None
    number: int = 0
    places_results: bool = False
    restored: RestoredOperator | SuspendedOperator | None = None
    key_groups: tuple[int, int] | None = None
    memory_bytes: int | None = None

    @classmethod
    def of(
        cls,
        job: JobPlan,
        number: int,
        time: ReplayTime,
        partitions: int,
        restored: RestoredOperator | None = None,
        memory_bytes: int | None = None,
    ) -> StageContext:
        """The context of one of the operators of a job, whose time this is."""
        plan = job.stages[number]
        inputs = plan.connected_inputs(time.second_from)
        places_results = number + 1 < len(job.stages)
        return cls(
            plan,
            time.timeline if plan.clock is None else time.timeline.mapped(plan.clock.passed),
            time.last_arrival_ms,
            partitions,
            inputs,
            number,
            places_results,
            restored,
            memory_bytes=memory_bytes,
        )

    def emission_times(self) -> EmissionTimes | None:
        """Return when results are emitted; None where they do not say it."""
        return None if self.plan.emitted_at is None else EmissionTimes(self.timeline, self.last_arrival_ms)

    def key_group_range(self, partition: int) -> tuple[int, int]:
        """Return the first and the last key group of a stage: those that Flink gives to a subtask, or fewer."""
        if self.key_groups is not None:
            return self.key_groups
        return compute_key_group_range_for_operator_index(
            self.plan.max_parallelism, self.partitions, partition
        )


Taken = TypeVar("Taken", contravariant=True)


class PreparedBatches:
    """Batches as the stages of an operator take them: by default as they are.

    Whatever all partitions need of a batch is computed once for all of them.
    """

    def prepare(self, events: Any) -> Any:
        """Return a batch as stages take it; may be called from several threads at once.

        Partial results are prepared one batch after the other, once all of the one before have been processed.

        Parameters
        ----------
        events : Events or MergedPartials
            The latter where map tasks merge events.
        """
        return events

    def release(self, prepared: Any) -> None:
        """Take back what a batch was prepared with, once all stages have processed it."""


class LocalBatches(PreparedBatches):
    """Batches whose rows have local times as timestamps.

    Parameters
    ----------
    batches
        Further preparation of the batches.
    clock
        The clock that shows the local times.
    """

    def __init__(self, batches: PreparedBatches, clock: LocalClock) -> None:
        self._batches, self._clock = batches, clock

    def prepare(self, events: Any) -> Any:
        local = replace(events, timestamps=self._clock.local(events.timestamps))
        return self._batches.prepare(local)

    def release(self, prepared: Any) -> None:
        self._batches.release(prepared)


class Stage(ABC, Generic[Taken]):
    """An operator over the key groups of one partition, which takes events as its `PreparedBatches` prepares them.

    Parameters
    ----------
    context
        Context of the operator.
    operator
        Its plan.
    partition
        Number of the partition.
    """

    @abstractmethod
    def __init__(self, context: StageContext, operator: Any, partition: int) -> None: ...

    @classmethod
    def batches(cls, context: StageContext, operator: Any) -> PreparedBatches:
        """Return what prepares batches for all stages of an operator; parameters as of the class."""
        return PreparedBatches()

    @abstractmethod
    def process(self, prepared: Taken, rows: RowNumbers | None) -> Iterator[StageOutput]:
        """Take in events in total order, and give what they make ready.

        Parameters
        ----------
        prepared
            Prepared rows of one batch.
        rows
            Rows of this partition, in total order, or None for all in the given order.
        """

    def advance(self, until_ms: int) -> Iterator[StageOutput]:
        """Let happen what is due before a time, and give the results now, as another operator waits for them.

        By default nothing happens: what is due comes with the next event, or at the end.

        Parameters
        ----------
        until_ms
            No event that arrives before is still to come, in ms since the epoch.
        """
        return iter(())

    @abstractmethod
    def finish(self) -> Iterator[StageOutput]:
        """Let the end of the log fire everything, and give the last results batch by batch."""

    @abstractmethod
    def stop(self) -> Iterator[StageOutput]:
        """Let happen what comes before the cut with which the log ends, and give the results, instead of `finish`."""

    @abstractmethod
    def snapshot(self) -> OperatorSnapshot:
        """Return what the operator holds once it has stopped."""

    def memory_bytes(self) -> int:
        """Return about how many bytes the open state takes, after events were taken in; 0 where it cannot spill."""
        return 0

    def shown_state(self) -> str:
        """Return the number of windows, keys or entries that are open, for messages."""
        return "rows"

    def suspend(self) -> Iterator[StageOutput]:
        """Let everything happen that is due at the place of the last event, and give all results that wait."""
        return iter(())

    def suspended(self) -> tuple[StagePlace, Iterator[SnapshotTable]]:
        """Return where the stage was suspended, and its state: a `SuspendedOperator` of any key groups of it.

        Raises
        ------
        SchemaError
            If a table cannot hold the state; the stage can go on as if it had not been suspended.
        """
        raise InternalError(f"{type(self).__name__} has no state that spills")

    def close(self) -> None:
        """Release what the operator holds; called once, also after a failure."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Counts of events and firings so far, by their names in the report."""

    @property
    @abstractmethod
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""


def events_taken(counts: Mapping[str, int]) -> int:
    """Return how many events a stage has taken, by its counts."""
    return sum(counts.get(fate, 0) for fate in FATES)
