"""Results of an operator that another one follows: blocks for the partitions of the next operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.stage_plan import StageResults
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.columnar.stages.stage_link import StageLink
from flinkcore.columnar.stages.stage_output import PlacedOutput
from flinkcore.spark.columnar.reduce_task import OperatorReplay
from flinkcore.spark.exchange.block_sender import BlockRoute, BlockSender

SENT_ROWS = 1 << 16
"""Results are sent when there are so many."""

SENT_BYTES = 16 << 20
"""Results are also sent when they take so much memory."""


@dataclass(frozen=True)
class WayToNext:
    """A way that the results of an operator go: to an input of another one.

    Attributes
    ----------
    route
        Where they go.
    between
        From which operator, and what is done with them.
    first_sender
        Partitions that send are counted from this number on, so that they differ from all others that send to the next
        operator.
    """

    route: BlockRoute
    between: StageResults
    first_sender: int


@dataclass(frozen=True)
class BlocksForNext:
    """Sends results to the next operators, and side outputs and counts to one of them; a `ReduceOutput`.

    Attributes
    ----------
    plan
        The job.
    ways
        All that the results go, at least one.
    """

    plan: JobPlan
    ways: tuple[WayToNext, ...]

    def batches(self, replay: OperatorReplay) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle, manifests last."""
        senders = [_ResultSender(self.plan, way, replay.partition) for way in self.ways]
        first, *others = senders
        for output in replay.run():
            if isinstance(output, PlacedOutput):
                for sender in senders:
                    yield from sender.add(output.events)
            else:
                assert output.tag_id is not None
                for batch in output.batches:
                    yield from first.blocks.send_side_rows(output.tag_id, batch)
        reported: dict[str, Any] = {"replay": replay.counts()}
        if replay.parts:
            reported["parts"] = [part.to_content() for part in replay.parts]
        yield from first.finish(reported)
        for sender in others:
            yield from sender.finish({})


class _ResultSender:
    """Sends what one partition gives on one way.

    Parameters
    ----------
    plan
        The job.
    way
        To which operator.
    partition
        Number of the partition.

    Attributes
    ----------
    blocks
        Packs the rows.
    """

    def __init__(self, plan: JobPlan, way: WayToNext, partition: int) -> None:
        route = way.route
        self._operator = route.operator
        self._link = StageLink(plan.stages[route.operator], route.operator, route.input_number, way.between)
        number = way.first_sender + partition
        self.blocks = BlockSender(route, number, partition % route.exchange.partitions)
        self.blocks.senders.add(number)
        self._held: list[PlacedEvents] = []

    def add(self, events: PlacedEvents) -> Iterator[pa.RecordBatch]:
        """Take results; rows of the shuffle when there are enough."""
        events = self._link.passed_on(events)
        if not events.n_events:
            return
        self._held.append(events)
        n_rows = sum(part.n_events for part in self._held)
        if n_rows >= SENT_ROWS or sum(part.nbytes for part in self._held) >= SENT_BYTES:
            yield from self._send_held()

    def finish(self, reported: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Send what is left, and a manifest to each partition; one of them has what the partition reports."""
        yield from self._send_held()
        counts = self._link.counts.to_content()
        passed = {"to": self._operator, "sender": self.blocks.number, "counts": counts}
        yield from self.blocks.finish({"passed": passed | reported})

    def _send_held(self) -> Iterator[pa.RecordBatch]:
        if self._held:
            results, self._held = PlacedEvents.concatenate(self._held).sorted(), []
            yield from self.blocks.send_results(results)
