"""Map side of the data plane: chunks of the log to blocks of events for each partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.exchange import partition_rows
from flinkcore.replay.log.chunks import Chunk
from flinkcore.replay.plans.log_plan import LogPlan
from flinkcore.replay.plans.partial_windows import PartialWindows
from flinkcore.replay.stages.map_stage import MapStage
from flinkcore.replay.stages.partial_results import (
    JUDGED_ROWS,
    KEY,
    EventMerger,
    PartialResults,
)
from flinkcore.replay.time_plane.timeline import TimePlane
from flinkcore.replay.time_plane.total_order import LogEvents, concatenate
from flinkcore.runtime.element_rows import event_key_groups
from flinkcore.spark.columnar.progress import ProgressAddress, TaskProgress
from flinkcore.spark.exchange.blocks import BLOCK_BYTES, BlockWriter, pieces, pieces_of
from flinkcore.spark.exchange.ordered_events import OrderedEvents
from flinkcore.spark.exchange.packed_timeline import PackedTimeline
from flinkcore.spark.logs.log_input import LogInput

BLOCK_ROWS = 1 << 17
LEAST_BLOCK_ROWS = 1 << 12
HELD_BYTES = 64 << 20
"""Events are distributed when so many bytes have been read, or enough rows for blocks of a good size."""


@dataclass(frozen=True)
class LogPlace:
    """Which of the logs of a job a map task reads.

    Attributes
    ----------
    number
        Of the log.
    first_chunk, first_split
        Its chunks and splits are counted from these on, so that those of all logs differ.
    is_broadcast
        Whether its events go to every partition.
    first_partition
        Number of the first partition of its operator among those of the job.
    """

    number: int = 0
    first_chunk: int = 0
    first_split: int = 0
    is_broadcast: bool = False
    first_partition: int = 0


@dataclass(frozen=True)
class MergingEvents:
    """How a map task merges events before it sends them; picklable.

    Attributes
    ----------
    windows
        Of the operator.
    timeline
        As the operator sees it.
    """

    windows: PartialWindows
    timeline: PackedTimeline

    def merger(self) -> EventMerger:
        """Return what merges the events of a chunk."""
        return EventMerger(self.windows, self.timeline.unpacked())


@dataclass(frozen=True)
class MapTask:
    """Reads chunks, and packs their events into blocks by partition; picklable.

    A manifest goes to each partition. Every attempt of a task sends the same events to the same partitions, or fails:
    files must not change, and Spark keeps the rows of a DataFrame (`KeptRows`).

    Attributes
    ----------
    plan
        The job.
    time_plane
        The result of the first pass.
    log
        Where the task's chunks come from.
    partitions
        Number of ranges of key groups.
    slots
        What stands for each partition in the shuffle.
    arrival_span_ms
        Arrival time from one event of the log to the next, on average.
    block_rows
        Most events of a block.
    progress
        Where the task reports how far it is.
    place
        Which log this is, of a job with several.
    merging
        How events are merged before they are sent; None: they are not.
    """

    plan: LogPlan
    time_plane: TimePlane
    log: LogInput
    partitions: int
    slots: tuple[int, ...]
    arrival_span_ms: float
    block_rows: int = BLOCK_ROWS
    progress: ProgressAddress | None = None
    place: LogPlace = LogPlace()
    merging: MergingEvents | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle for the chunks of the task."""
        stage = MapStage(self.plan, self.time_plane)
        for chunk in self.log.chunks(batches):
            yield from self._exchange(stage, chunk)

    def _exchange(self, stage: MapStage, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        writer = BlockWriter(self.slots, self.place.first_partition)
        number = self.place.first_chunk + chunk.index
        own_partition = chunk.index % self.partitions
        enough_rows = 2 * LEAST_BLOCK_ROWS * self.partitions
        merger = None if self.merging is None else self.merging.merger()
        sent = np.zeros(self.partitions, np.int64)
        events_read, filtered, rejected = 0, 0, Counter[str]()
        held: list[LogEvents] = []
        progress = TaskProgress(self.progress, False, number)
        for mapped in stage.read(chunk):
            events_read += mapped.events_read
            filtered += mapped.filtered
            rejected.update(mapped.rejected)
            for rows in mapped.rejected_rows:
                for start, stop in pieces_of(rows, BLOCK_BYTES):
                    writer.add_rows(own_partition, number, rows.slice(start, stop - start), self.place.number)
                    yield from writer.take_full()
            events = mapped.events
            if self.place.first_split:
                events = replace(events, splits=events.splits + np.int32(self.place.first_split))
            for start, stop in pieces_of(events.batch, HELD_BYTES):
                held.append(events.slice(start, stop))
                n_rows = sum(part.batch.num_rows for part in held)
                enough = (
                    max(enough_rows, JUDGED_ROWS) if merger is not None and merger.merges else enough_rows
                )
                if n_rows >= enough or sum(part.nbytes for part in held) >= HELD_BYTES:
                    yield from self._send(writer, held, merger, sent)
                    held = []
                    yield from writer.take()
            progress.advance(mapped.events_read)
        if held:
            yield from self._send(writer, held, merger, sent)
        if merger is not None:
            for rest in merger.finish():
                yield from self._distribute(writer, rest, sent)
        read = {"events_read": events_read, "filtered": filtered, "rejected": dict(rejected)}
        for partition, n_rows in enumerate(sent.tolist()):
            manifest = {"chunk": number, "rows": n_rows}
            writer.add_manifest(
                partition, number, manifest | read if partition == own_partition else manifest
            )
        yield from writer.take()
        progress.advance(0, at_end=True)

    def _send(
        self,
        writer: BlockWriter,
        held: list[LogEvents],
        merger: EventMerger | None,
        sent: npt.NDArray[np.int64],
    ) -> Iterator[pa.RecordBatch]:
        events = concatenate(held) if len(held) > 1 else held[0]
        for part in (events,) if merger is None else merger.add(events):
            yield from self._distribute(writer, part, sent)

    def _distribute(
        self, writer: BlockWriter, events: LogEvents, sent: npt.NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch]:
        """Pack events into blocks, and count those for each partition; rows of the shuffle when there are enough."""
        partials = events if isinstance(events, PartialResults) else None
        _, rows = events.in_order()
        if self.place.is_broadcast:
            ordered = OrderedEvents(events, rows)
            ranges = [(0, events.batch.num_rows)] * self.partitions
        else:
            keys = self.plan.keys if partials is None else [KEY + key for key in self.plan.keys]
            groups = event_key_groups(events.batch, keys, self.plan.max_parallelism)
            order, bounds = partition_rows(groups, self.plan.max_parallelism, self.partitions, rows)
            ordered = OrderedEvents(events, None if self.partitions == 1 and rows is None else order)
            ranges = list(pairwise(bounds.tolist()))
        for partition, (first, last) in enumerate(ranges):
            for start, stop in self._cuts(ordered, first, last):
                writer.add_events(partition, ordered, start, stop, partials is not None)
                yield from writer.take_full()
            sent[partition] += last - first if partials is None else partials.events[order[first:last]].sum()

    def _cuts(self, events: OrderedEvents, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows for blocks.

        A block is held back by the reduce task from its first arrival to its last: blocks of events that lie
        far apart, as in a log that is sorted by split, are smaller.
        """

        def too_large(start: int, stop: int) -> bool:
            n_rows = stop - start
            span = events.arrival(stop - 1) - events.arrival(start)
            spread = (
                n_rows > 2 * LEAST_BLOCK_ROWS and span > 4 * n_rows * self.partitions * self.arrival_span_ms
            )
            return n_rows > self.block_rows or spread or events.column_bytes(start, stop) > BLOCK_BYTES

        return pieces(start, stop, too_large)
