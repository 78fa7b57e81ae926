"""What makes the stages of a user's function."""

from __future__ import annotations

from typing import Generic, TypeVar

from flinkcore.replay.plans.keyed_operator import UserProcess
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.stages.restored_operator import RestoredOperator
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.replay.time_plane.total_order import Events

Process = TypeVar("Process", bound=UserProcess)


class FunctionStages(Generic[Process]):
    """The part of `KeyedStages` that all functions share; batches need no preparation.

    Parameters
    ----------
    plan
        The job.
    process
        Its operator.
    timeline
        The watermarks of the whole log.
    last_arrival_ms
        Of the whole log; None if it has no events.
    partitions
        Into how many ranges the key groups are divided.
    restored
        What the stages go on from.
    """

    def __init__(
        self,
        plan: StagePlan,
        process: Process,
        timeline: Timeline,
        last_arrival_ms: int | None,
        partitions: int,
        restored: RestoredOperator | None = None,
    ) -> None:
        self._plan = plan
        self._process = process
        self._timeline = timeline
        self._last_arrival_ms = last_arrival_ms
        self._partitions = partitions
        self._restored = restored

    def prepare(self, events: Events) -> Events:
        """The batch as it is."""
        return events

    def release(self, prepared: Events) -> None:
        """Nothing comes back."""
