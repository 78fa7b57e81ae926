"""Results of an operator that another one follows: blocks for the partitions of the next operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._native.exchange import partition_rows
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.stage_plan import StageResults
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.columnar.stages.stage_link import StageLink
from flinkcore.columnar.stages.stage_output import PlacedOutput
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.spark.columnar.reduce_task import PartitionReplay
from flinkcore.spark.exchange.blocks import BLOCK_BYTES, BlockWriter, pieces_of

SENT_ROWS = 1 << 16
"""Results are sent when there are so many."""

SENT_BYTES = 16 << 20
"""Results are also sent when they take so much memory."""


@dataclass(frozen=True)
class WayToNext:
    """A way that the results of an operator go: to an input of another one.

    Attributes
    ----------
    number
        Of the next operator, from 0 on.
    input_number
        To which of its inputs the results go, 0 or 1.
    between
        From which operator, and what is done with them.
    partitions
        Into how many ranges its key groups are divided.
    first_partition
        Number of the first of them among those of the job.
    first_sender
        Partitions that send are counted from this number on, so that they differ from all others that send to the next
        operator.
    """

    number: int
    input_number: int
    between: StageResults
    partitions: int
    first_partition: int
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
    slots
        For each partition of the job, its slot in the shuffle.
    """

    plan: JobPlan
    ways: tuple[WayToNext, ...]
    slots: tuple[int, ...]

    def batches(self, replay: PartitionReplay) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle, manifests last."""
        writer = BlockWriter(self.slots)
        first, *others = (_Sender(self.plan, way, replay.partition, writer) for way in self.ways)
        for output in replay.run():
            if isinstance(output, PlacedOutput):
                for sender in (first, *others):
                    yield from sender.add(output.events)
            else:
                assert output.tag_id is not None
                for batch in output.batches:
                    yield from first.add_side_rows(output.tag_id, batch)
        reported: dict[str, Any] = {"replay": replay.counts()}
        if replay.part is not None:
            reported["part"] = replay.part.to_content()
        yield from first.finish(reported)
        for sender in others:
            yield from sender.finish({})
        yield from writer.take()


class _Sender:
    """Sends what one partition gives on one way.

    Parameters
    ----------
    plan
        The job.
    way
        To which operator.
    partition
        Number of the partition.
    writer
        Packs the blocks of all ways.
    """

    def __init__(self, plan: JobPlan, way: WayToNext, partition: int, writer: BlockWriter) -> None:
        self._way = way
        self._stage = plan.stages[way.number]
        self._link = StageLink(self._stage, way.number, way.input_number, way.between)
        self._number = way.first_sender + partition
        self._own_partition = way.first_partition + partition % way.partitions
        self._writer = writer
        self._sent = np.zeros(way.partitions, np.int64)
        self._held: list[PlacedEvents] = []

    def add(self, events: PlacedEvents) -> Iterator[pa.RecordBatch]:
        """Take results; rows of the shuffle when there are enough."""
        events = self._link.passed_on(events)
        if not events.batch.num_rows:
            return
        self._held.append(events)
        n_rows = sum(part.batch.num_rows for part in self._held)
        if n_rows >= SENT_ROWS or sum(part.nbytes for part in self._held) >= SENT_BYTES:
            yield from self._distribute()

    def add_side_rows(self, tag_id: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows of a side output; rows of the shuffle when there are enough."""
        for start, stop in pieces_of(batch, BLOCK_BYTES):
            rows = batch.slice(start, stop - start)
            self._writer.add_side_rows(self._own_partition, self._number, tag_id, rows)
            yield from self._writer.take_full()

    def finish(self, reported: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Pack what is left, and a manifest for each partition; one of them has what the partition reports."""
        yield from self._distribute()
        passed: dict[str, Any] = {
            "to": self._way.number,
            "sender": self._number,
            "results": self._link.rows,
            "filtered": self._link.filtered,
        }
        for partition, n_rows in enumerate(self._sent.tolist(), self._way.first_partition):
            manifest: dict[str, Any] = {"chunk": self._number, "rows": n_rows}
            if partition == self._own_partition:
                manifest["passed"] = passed | reported
            self._writer.add_manifest(partition, self._number, manifest)

    def _distribute(self) -> Iterator[pa.RecordBatch]:
        """Pack results into blocks, and count those for each partition; rows of the shuffle when there are enough."""
        if not self._held:
            return
        way, stage = self._way, self._stage
        target = stage.inputs[way.input_number]
        results = PlacedEvents.concatenate(self._held).sorted()
        self._held = []
        order = None
        if not target.is_broadcast:
            groups = event_key_groups(results.batch, target.keys, stage.max_parallelism)
            order, bounds = partition_rows(groups, stage.max_parallelism, way.partitions, None)
        for number in range(way.partitions):
            own = results if order is None else results.take(order[bounds[number] : bounds[number + 1]])
            for start, stop in pieces_of(own.batch, BLOCK_BYTES):
                partition, events = way.first_partition + number, own.slice(start, stop)
                self._writer.add_placed(partition, events, way.input_number, self._number)
                yield from self._writer.take_full()
            self._sent[number] += own.batch.num_rows
