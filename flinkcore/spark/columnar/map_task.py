"""Map side of the data plane: chunks of the log to blocks of events for each partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from flinkcore._native.exchange import partition_rows
from flinkcore.columnar.checkpoint.job_checkpoint import WaitingRowsPart, WaitingRowsWriter
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.plans.partial_windows import PartialWindows
from flinkcore.columnar.stages.map_stage import MappedEvents, MapStage, mapped_together
from flinkcore.columnar.stages.partial_results import (
    JUDGED_ROWS,
    KEY,
    EventMerger,
    PartialResults,
)
from flinkcore.log.sources.chunks import Chunk
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.spark.columnar.late_counts import CHUNK, Counts, LateSample
from flinkcore.spark.columnar.progress import ProgressAddress, TaskProgress
from flinkcore.spark.exchange.blocks import BLOCK_BYTES, BlockWriter, pieces, pieces_of
from flinkcore.spark.exchange.ordered_events import OrderedEvents
from flinkcore.spark.exchange.packed_timeline import PackedTimeline
from flinkcore.spark.logs.log_input import LogInput
from flinkcore.time_plane.timeline import TimePlane
from flinkcore.time_plane.total_order import LogEvents, concatenate

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

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
    waiting_chunks
        How many chunks it has with indices below 0, of what waits in the checkpoint.
    is_broadcast
        Whether its events go to every partition.
    first_partition
        Number of the first partition of its operator among those of the job.
    """

    number: int = 0
    first_chunk: int = 0
    waiting_chunks: int = 0
    first_split: int = 0
    is_broadcast: bool = False
    first_partition: int = 0


@dataclass(frozen=True)
class MergingEvents:
    """How a map task merges events before it sends them; picklable.

    Attributes
    ----------
    windows
        Windows of the operator.
    timeline
        As the operator sees it.
    """

    windows: PartialWindows
    timeline: PackedTimeline

    def merger(self) -> EventMerger:
        """Return what merges the events of a chunk."""
        return EventMerger(self.windows, self.timeline.unpacked())


@dataclass(frozen=True)
class MapWay:
    """A way that the events of a log go: to the partitions of one operator; picklable.

    Attributes
    ----------
    plan
        Plan of the log.
    time_plane
        The result of the first pass.
    partitions
        Number of ranges of key groups.
    slots
        What stands for each partition in the shuffle.
    arrival_span_ms
        Arrival time from one event of the log to the next, on average.
    block_rows
        Most events of a block.
    place
        Which log this is, of a job with several.
    merging
        How events are merged before they are sent; None: they are not.
    sends_whole_chunks
        Whether the events of a chunk go to one partition, and not each to that of its key.
    waiting
        Writes the events of splits that are paused where the job stops, a part for each chunk; None: there are none.
    late_sample
        Sample of the events by which late ones are estimated, or None.
    late_counts
        Accumulator that takes the counts of the sample, or None.
    """

    plan: LogPlan
    time_plane: TimePlane
    partitions: int
    slots: tuple[int, ...]
    arrival_span_ms: float
    block_rows: int = BLOCK_ROWS
    place: LogPlace = LogPlace()
    merging: MergingEvents | None = None
    sends_whole_chunks: bool = False
    waiting: WaitingRowsWriter | None = None
    late_sample: LateSample | None = None
    late_counts: Accumulator[Counts] | None = None


@dataclass(frozen=True)
class MapTask:
    """Reads chunks, and packs their events into blocks by partition; picklable.

    A manifest goes to each partition. Every attempt of a task sends the same events to the same partitions, or fails:
    files must not change, and Spark keeps the rows of a DataFrame (`KeptRows`).

    Attributes
    ----------
    ways
        All that the events go; the log is read once for all of them.
    log
        Where the task's chunks come from.
    progress
        Where the task reports how far it is.
    """

    ways: tuple[MapWay, ...]
    log: LogInput
    progress: ProgressAddress | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle for the chunks of the task."""
        stages = [MapStage(way.plan, way.time_plane) for way in self.ways]
        for chunk in self.log.chunks(batches):
            with ExitStack() as open_parts:
                exchanges = [_ChunkExchange(way, chunk, self.progress, open_parts) for way in self.ways]
                for mapped in mapped_together(stages, chunk):
                    for exchange, of_way in zip(exchanges, mapped, strict=True):
                        yield from exchange.send(of_way)
                for exchange in exchanges:
                    yield from exchange.finish()


class _ChunkExchange:
    """Sends the events of a chunk on one way.

    Parameters
    ----------
    way
        Where they go.
    chunk
        A chunk of the log.
    progress
        Where the task reports how far it is.
    open_parts
        Removes what was written of events that wait if the chunk fails.
    """

    def __init__(
        self, way: MapWay, chunk: Chunk, progress: ProgressAddress | None, open_parts: ExitStack
    ) -> None:
        self._way = way
        self._open_parts = open_parts
        self._chunk = chunk.index + way.place.waiting_chunks
        self._waiting: WaitingRowsPart | None = None
        self._n_waiting = 0
        self._writer = BlockWriter(way.slots, way.place.first_partition)
        self._number = way.place.first_chunk + self._chunk
        self._own_partition = chunk.index % way.partitions
        self._merger = None if way.merging is None else way.merging.merger()
        self._sent = np.zeros(way.partitions, np.int64)
        self._events_read, self._filtered, self._rejected = 0, 0, Counter[str]()
        self._held: list[LogEvents] = []
        self._progress = TaskProgress(progress, False, self._number)
        self._late, self._sampled = 0, 0

    def send(self, mapped: MappedEvents) -> Iterator[pa.RecordBatch]:
        """Take the events of a batch; rows of the shuffle when there are enough."""
        writer, place, merger = self._writer, self._way.place, self._merger
        enough_rows = 2 * LEAST_BLOCK_ROWS * self._way.partitions
        self._events_read += mapped.events_read
        self._filtered += mapped.filtered
        self._rejected.update(mapped.rejected)
        self._leave_waiting(mapped)
        for rows in mapped.rejected_rows:
            for start, stop in pieces_of(rows, BLOCK_BYTES):
                writer.add_rows(
                    self._own_partition, self._number, rows.slice(start, stop - start), place.number
                )
                yield from writer.take_full()
        events = mapped.events
        if place.first_split:
            events = replace(events, splits=events.splits + np.int32(place.first_split))
        if self._way.late_sample is not None:
            late, sampled = self._way.late_sample.counts(events)
            self._late, self._sampled = self._late + late, self._sampled + sampled
        for start, stop in pieces_of(events.batch, HELD_BYTES):
            self._held.append(events.slice(start, stop))
            n_rows = sum(part.batch.num_rows for part in self._held)
            enough = max(enough_rows, JUDGED_ROWS) if merger is not None and merger.merges else enough_rows
            if n_rows >= enough or sum(part.nbytes for part in self._held) >= HELD_BYTES:
                yield from self._send_held()
                yield from writer.take()
        self._progress.advance(mapped.events_read)

    def _leave_waiting(self, mapped: MappedEvents) -> None:
        if mapped.waiting is None:
            return
        if self._waiting is None:
            assert self._way.waiting is not None  # else no split is paused at the end
            self._waiting = self._open_parts.enter_context(self._way.waiting.part(self._chunk))
        self._n_waiting += mapped.n_waiting
        self._waiting.add(mapped.waiting)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send what is left, and a manifest to each partition."""
        writer, number, way = self._writer, self._number, self._way
        if self._held:
            yield from self._send_held()
        if self._merger is not None:
            for rest in self._merger.finish():
                yield from self._distribute(rest)
        read = {
            "events_read": self._events_read,
            "filtered": self._filtered,
            "rejected": dict(self._rejected),
            "waiting": self._n_waiting,
        }
        if self._waiting is not None:
            read |= {"log": self._way.place.number, "part": self._waiting.written().to_content()}
        for partition, n_rows in enumerate(self._sent.tolist()):
            manifest = {"chunk": number, "rows": n_rows}
            writer.add_manifest(
                partition, number, manifest | read if partition == self._own_partition else manifest
            )
        yield from writer.take()
        self._progress.advance(0, at_end=True)
        if way.late_sample is not None and way.late_counts is not None:
            way.late_counts.add({(CHUNK, way.late_sample.number, number): (self._late, self._sampled)})

    def _send_held(self) -> Iterator[pa.RecordBatch]:
        events = concatenate(self._held) if len(self._held) > 1 else self._held[0]
        self._held = []
        for part in (events,) if self._merger is None else self._merger.add(events):
            yield from self._distribute(part)

    def _distribute(self, events: LogEvents) -> Iterator[pa.RecordBatch]:
        """Pack events into blocks, and count those for each partition; rows of the shuffle when there are enough."""
        way, writer = self._way, self._writer
        partials = events if isinstance(events, PartialResults) else None
        _, rows = events.in_order()
        if way.place.is_broadcast:
            ordered = OrderedEvents(events, rows)
            ranges = [(0, events.batch.num_rows)] * way.partitions
        elif way.sends_whole_chunks:
            ordered = OrderedEvents(events, rows)
            ranges = [(0, 0)] * way.partitions
            ranges[self._own_partition] = (0, events.batch.num_rows)
        else:
            keys = way.plan.keys if partials is None else [KEY + key for key in way.plan.keys]
            groups = event_key_groups(events.batch, keys, way.plan.max_parallelism)
            order, bounds = partition_rows(groups, way.plan.max_parallelism, way.partitions, rows)
            ordered = OrderedEvents(events, None if way.partitions == 1 and rows is None else order)
            ranges = list(pairwise(bounds.tolist()))
        for partition, (first, last) in enumerate(ranges):
            for start, stop in self._cuts(ordered, first, last):
                writer.add_events(partition, ordered, start, stop, partials is not None)
                yield from writer.take_full()
            self._sent[partition] += (
                last - first if partials is None else partials.events[order[first:last]].sum()
            )

    def _cuts(self, events: OrderedEvents, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows for blocks.

        A block is held back by the reduce task from its first arrival to its last: blocks of events that lie
        far apart, as in a log that is sorted by split, are smaller.
        """
        way = self._way

        def too_large(start: int, stop: int) -> bool:
            n_rows = stop - start
            span = events.arrival(stop - 1) - events.arrival(start)
            spread = (
                n_rows > 2 * LEAST_BLOCK_ROWS and span > 4 * n_rows * way.partitions * way.arrival_span_ms
            )
            return n_rows > way.block_rows or spread or events.column_bytes(start, stop) > BLOCK_BYTES

        return pieces(start, stop, too_large)
