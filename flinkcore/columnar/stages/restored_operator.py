"""State from which the stages of an operator begin: that of a checkpoint, or of a stage that was suspended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.exchange import partition_rows
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.checkpoint.state_origin import DealtState, StateOrigin
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
    """State of an operator in a checkpoint of flinkcore or a savepoint of Flink; picklable.

    Parameters
    ----------
    state : StateOrigin
    uid : str
        Identifier of the operator.
    last_arrival_ms : int or None
        Last arrival before the checkpoint, or None if there was no event, as for a savepoint of Flink.
    """

    state: StateOrigin
    uid: str
    last_arrival_ms: int | None

    @property
    def origin(self) -> str:
        """The name of the state in messages."""
        return f"{self.state.path}, operator {self.uid!r}"

    def place(self, timeline: Timeline) -> StagePlace:
        """Return the place of the state before the logs of a timeline."""
        if self.last_arrival_ms is None:
            return StagePlace(0, MIN_TIMESTAMP, MIN_TIMESTAMP)
        steps = timeline.steps_done(self.last_arrival_ms)
        return StagePlace(steps, self.last_arrival_ms, self.state.watermark_ms(self.uid))

    @property
    def dealt(self) -> DealtState | None:
        """The state if it has to be dealt out, or None if tasks find their key groups in it."""
        return self.state.dealt(self.uid)

    def snapshots(self, key_groups: tuple[int, int], max_parallelism: int) -> list[OperatorSnapshot]:
        """Return what the operator held of a range of key groups, the first and the last included."""
        return self.state.restore(self.uid, key_groups, max_parallelism)


def dealt_out(
    restored: RestoredOperator | None, max_parallelism: int, partitions: int
) -> Iterator[RestoredOperator | None]:
    """Yield what each partition in a process begins with; state that has to be dealt out is read once for all.

    A partition must be open before the next one is asked for: the entries that it has received are released then.
    """
    dealt = None if restored is None or partitions == 1 else restored.dealt
    if restored is None or dealt is None:
        yield from [restored] * partitions
        return
    entries: list[dict[str, list[pa.RecordBatch]]] = [{} for _ in range(partitions)]
    for state, batch, key_groups in dealt.deal(range(dealt.n_key_groups)):
        if key_groups is None:
            for own in entries:
                own.setdefault(state, []).append(batch)
            continue
        order, bounds = partition_rows(key_groups, max_parallelism, partitions)
        ordered = batch.take(pa.array(order))
        for own, (first, end) in zip(entries, pairwise(bounds.tolist()), strict=True):
            if first < end:
                own.setdefault(state, []).append(ordered.slice(first, end - first))
    for own in entries:
        yield replace(restored, state=dealt.received(own))
        release(own)


def release(entries: Mapping[str, list[pa.RecordBatch]]) -> None:
    """Release entries of states that a partition has received and taken."""
    for batches in entries.values():
        batches.clear()


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
