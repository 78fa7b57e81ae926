"""State from which the stages of an operator begin: that of a checkpoint, or of a stage that was suspended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from flinkcore.checkpoint import Checkpoint, OperatorSnapshot
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.time_plane.timeline import Timeline


class StagePlace(NamedTuple):
    """Place in the total order up to which a stage has taken in everything.

    Attributes
    ----------
    steps
        Steps of the timeline that are done.
    clock_ms
        Time of the replay clock, ms since the epoch.
    watermark_ms
        Watermark in force, ms since the epoch; -2**63 before the first.
    """

    steps: int
    clock_ms: int
    watermark_ms: int


@dataclass(frozen=True)
class RestoredOperator:
    """State of an operator in a checkpoint; picklable.

    Parameters
    ----------
    checkpoint : Checkpoint
    uid : str
        Identifier of the operator.
    last_arrival_ms : int or None
        Last arrival before the checkpoint; None if there was no event.
    """

    checkpoint: Checkpoint
    uid: str
    last_arrival_ms: int | None

    @property
    def origin(self) -> str:
        """The name of the state in messages."""
        return f"{self.checkpoint.storage.path}, operator {self.uid!r}"

    def place(self, timeline: Timeline) -> StagePlace | None:
        """Return the place of the checkpoint before the logs of a timeline, or None if there was no event."""
        if self.last_arrival_ms is None:
            return None
        steps = timeline.steps_done(self.last_arrival_ms)
        return StagePlace(steps, self.last_arrival_ms, self.checkpoint.watermark_ms(self.uid))

    def snapshots(self, key_groups: tuple[int, int], max_parallelism: int) -> list[OperatorSnapshot]:
        """Return what the operator held of a range of key groups, the first and the last included."""
        return self.checkpoint.restore(self.uid, key_groups, max_parallelism)


@dataclass(frozen=True)
class SuspendedOperator:
    """State of a range of key groups of a stage that was suspended.

    Parameters
    ----------
    suspended_at : StagePlace
    tables : callable
        Returns an iterator over the tables that the stage gave.
    """

    suspended_at: StagePlace
    tables: Callable[[], Iterator[SnapshotTable]]

    def place(self, timeline: Timeline) -> StagePlace:
        """Return the place at which the stage was suspended."""
        return self.suspended_at
