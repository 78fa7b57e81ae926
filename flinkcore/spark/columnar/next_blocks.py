"""Results of an operator that another one follows: blocks for the partitions of the next operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.exchange import partition_rows
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.plans.stage_plan import StageResults
from flinkcore.replay.stages.placed_events import PlacedEvents
from flinkcore.replay.stages.stage_link import StageLink
from flinkcore.replay.stages.stage_output import PlacedOutput
from flinkcore.runtime.element_rows import event_key_groups
from flinkcore.spark.columnar.reduce_task import PartitionReplay
from flinkcore.spark.exchange.blocks import BLOCK_BYTES, BlockWriter, pieces_of

SENT_ROWS = 1 << 16
"""Results are sent when there are so many."""

SENT_BYTES = 16 << 20
"""Results are also sent when they take so much memory."""


@dataclass(frozen=True)
class BlocksForNext:
    """Sends results to the next operator, and side outputs along with them; a `ReduceOutput`.

    Attributes
    ----------
    plan
        The job.
    number
        Of the next operator, from 0 on.
    input_number
        To which of its inputs the results go, 0 or 1.
    between
        From which operator, and what is done with them.
    partitions
        Into how many ranges its key groups are divided.
    slots
        What stands for each of its partitions in the shuffle.
    first_sender
        Partitions are counted from this number on, so that they differ from all others that send to the next operator.
    reports
        Whether side outputs and counts go along: where several operators take the results, to one of them.
    """

    plan: JobPlan
    number: int
    input_number: int
    between: StageResults
    partitions: int
    slots: tuple[int, ...]
    first_sender: int
    reports: bool

    def batches(self, replay: PartitionReplay) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle, manifests last."""
        link = StageLink(self.plan.stages[self.number], self.number, self.input_number, self.between)
        sender = self.first_sender + replay.partition
        writer = BlockWriter(self.slots)
        own_partition = replay.partition % self.partitions
        sent = np.zeros(self.partitions, np.int64)
        held: list[PlacedEvents] = []
        for output in replay.run():
            if isinstance(output, PlacedOutput):
                held.append(link.passed_on(output.events))
                n_rows = sum(part.batch.num_rows for part in held)
                if n_rows >= SENT_ROWS or sum(part.nbytes for part in held) >= SENT_BYTES:
                    yield from self._distribute(writer, held, sender, sent)
                    held = []
            elif self.reports:
                assert output.tag_id is not None
                for batch in output.batches:
                    for start, stop in pieces_of(batch, BLOCK_BYTES):
                        rows = batch.slice(start, stop - start)
                        writer.add_side_rows(own_partition, sender, output.tag_id, rows)
                        yield from writer.take_full()
        yield from self._distribute(writer, held, sender, sent)
        passed: dict[str, Any] = {
            "to": self.number,
            "sender": sender,
            "results": link.rows,
            "filtered": link.filtered,
        }
        if self.reports:
            passed["replay"] = replay.counts()
        if replay.part is not None:
            passed["part"] = replay.part.to_content()
        for partition, n_rows in enumerate(sent.tolist()):
            manifest: dict[str, Any] = {"chunk": sender, "rows": n_rows}
            if partition == own_partition:
                manifest["passed"] = passed
            writer.add_manifest(partition, sender, manifest)
        yield from writer.take()

    def _distribute(
        self, writer: BlockWriter, held: list[PlacedEvents], sender: int, sent: npt.NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch]:
        """Pack results into blocks, and count those for each partition; rows of the shuffle when there are enough."""
        held = [part for part in held if part.batch.num_rows]
        if not held:
            return
        stage = self.plan.stages[self.number]
        target = stage.inputs[self.input_number]
        results = PlacedEvents.concatenate(held).sorted()
        order = None
        if not target.is_broadcast:
            groups = event_key_groups(results.batch, target.keys, stage.max_parallelism)
            order, bounds = partition_rows(groups, stage.max_parallelism, self.partitions, None)
        for partition in range(self.partitions):
            own = results if order is None else results.take(order[bounds[partition] : bounds[partition + 1]])
            for start, stop in pieces_of(own.batch, BLOCK_BYTES):
                writer.add_placed(partition, own.slice(start, stop), self.input_number, sender)
                yield from writer.take_full()
            sent[partition] += own.batch.num_rows
