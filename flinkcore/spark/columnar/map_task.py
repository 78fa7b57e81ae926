"""Map side of the data plane: chunks of the log to blocks of events for each partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from flinkcore.columnar.checkpoint.job_checkpoint import WaitingRowsWriter
from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader, ReadEvents, read_on_all_ways
from flinkcore.columnar.stages.partial_results import EventMerger, MergeLimits
from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark.columnar.late_counts import CHUNKS, Counts, LateSample
from flinkcore.spark.columnar.progress import ProgressAddress, TaskProgress
from flinkcore.spark.exchange.block_sender import BlockRoute, BlockSender
from flinkcore.spark.exchange.sent_timeline import SentTimeline
from flinkcore.spark.logs.log_input import ChunkSource
from flinkcore.time_plane.timeline import TimePlane
from flinkcore.time_plane.total_order import LogEvents, concatenate

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

HELD_BYTES = 64 << 20
"""Events are distributed when so many bytes have been read, or enough rows for blocks of a good size."""


@dataclass(frozen=True)
class MergingEvents:
    """Settings by which a map task merges events before it sends them; picklable.

    Attributes
    ----------
    windows
        Windows of the operator.
    timeline
        As the operator sees it.
    limits
        Limits of merging, by events and by memory.
    """

    windows: PartialWindows
    timeline: SentTimeline
    limits: MergeLimits = field(default_factory=MergeLimits)

    def merger(self) -> EventMerger:
        """Return what merges the events of a task."""
        return EventMerger(self.windows, self.timeline.timeline, self.limits)


@dataclass(frozen=True)
class MapWay:
    """A way that the events of a log go: to an input of one operator; picklable.

    Attributes
    ----------
    plan
        Plan of the log.
    route
        Where the events go.
    log
        Number of the log.
    first_chunk, first_split
        Chunks and splits of the log are counted from these on, so that those of all logs differ.
    waiting_chunks
        Number of chunks with indices below 0: the events of the log that wait in the checkpoint.
    merging
        Settings for merging events before they are sent, or None if they are not merged.
    waiting
        Writes the events of splits that are paused where the job stops, a part for each chunk, or None if none is.
    late_sample
        Sample of the events by which late ones are estimated, or None.
    late_counts
        Accumulator that takes the counts of the sample, or None.
    """

    plan: LogPlan
    route: BlockRoute
    log: int = 0
    first_chunk: int = 0
    waiting_chunks: int = 0
    first_split: int = 0
    merging: MergingEvents | None = None
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
    source
        Gives the task its chunks, and the times by which they are read on each way.
    progress
        Where the task reports how far it is.
    """

    ways: tuple[MapWay, ...]
    source: ChunkSource
    progress: ProgressAddress | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle for the chunks of the task."""
        for group in self.source.of_task(batches):
            with ExitStack() as open_parts:
                senders: list[_TaskSender] = []
                for chunk in group.chunks:
                    if not senders:
                        senders = [
                            _TaskSender(way, time_plane, group.task, chunk.index, self.progress, open_parts)
                            for way, time_plane in zip(self.ways, group.about.time_planes, strict=True)
                        ]
                    for sender in senders:
                        sender.begin(chunk)
                    for read in read_on_all_ways([sender.reader for sender in senders], chunk):
                        for sender, of_way in zip(senders, read, strict=True):
                            yield from sender.send(of_way)
                for sender in senders:
                    yield from sender.finish()


class _TaskSender:
    """Sends the events of a task's chunks on one way.

    Parameters
    ----------
    way
        Where they go.
    time_plane
        The result of the first pass, for the task's chunks at least.
    task
        Number of the task among those that read the log.
    first
        Index of the first chunk.
    progress
        Where the task reports how far it is.
    open_parts
        Removes what was written of events that wait if the task fails.

    Attributes
    ----------
    reader
        Reads the chunks for this way.
    """

    def __init__(
        self,
        way: MapWay,
        time_plane: TimePlane,
        task: int,
        first: int,
        progress: ProgressAddress | None,
        open_parts: ExitStack,
    ) -> None:
        self._way = way
        index = first + way.waiting_chunks
        number = way.first_chunk + index
        self._waiting = None if way.waiting is None else open_parts.enter_context(way.waiting.part(index))
        self.reader = ChunkReader(way.plan, time_plane, way.first_split, self._waiting)
        self._sender = BlockSender(way.route, number, task % way.route.exchange.partitions)
        self._merger = None if way.merging is None else way.merging.merger()
        self._held: list[LogEvents] = []
        self._held_rows = self._held_bytes = 0
        self._progress = TaskProgress(progress, False, number)
        self._late, self._sampled = 0, 0

    def begin(self, chunk: Chunk) -> None:
        """Take note that the next events are of this chunk, so that the manifests vouch for it."""
        self._sender.senders.add(self._way.first_chunk + chunk.index + self._way.waiting_chunks)

    def send(self, read: ReadEvents) -> Iterator[pa.RecordBatch]:
        """Take the events of a batch; rows of the shuffle when there are enough."""
        merger, enough_rows, merging = self._merger, self._sender.enough_rows, self._way.merging
        for output in read.side_outputs:
            assert output.tag_id is not None
            for rows in output.batches:
                yield from self._sender.send_side_rows(output.tag_id, rows)
        events = read.events
        if self._way.late_sample is not None:
            late, sampled = self._way.late_sample.counts(events)
            self._late, self._sampled = self._late + late, self._sampled + sampled
        for part in events.cut(HELD_BYTES) if events.n_events else ():
            self._held.append(part)
            self._held_rows += part.n_events
            self._held_bytes += part.nbytes
            enough = enough_rows
            if merging is not None and merger is not None and merger.merges:
                enough = max(enough_rows, merging.limits.judged_rows)
            if self._held_rows >= enough or self._held_bytes >= HELD_BYTES:
                yield from self._send_held()
                yield from self._sender.take()
        self._progress.advance(read.rows_read)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send what is left, and a manifest to each partition."""
        way, sender = self._way, self._sender
        if self._held:
            yield from self._send_held()
        if self._merger is not None:
            for rest in self._merger.finish():
                yield from sender.send_events(rest)
        read = {"chunks": sender.senders.total, "log": way.log, "counts": self.reader.counts.to_content()}
        part = None if self._waiting is None else self._waiting.written()
        if part is not None:
            read["part"] = part.to_content()
        yield from sender.finish({"read": read})
        self._progress.advance(0, at_end=True)
        if way.late_sample is not None and way.late_counts is not None:
            place, counts = (CHUNKS, way.late_sample.number, sender.number), (self._late, self._sampled)
            way.late_counts.add({place: (*counts, sender.senders.total)})

    def _send_held(self) -> Iterator[pa.RecordBatch]:
        events = concatenate(self._held) if len(self._held) > 1 else self._held[0]
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        for part in (events,) if self._merger is None else self._merger.add(events):
            yield from self._sender.send_events(part)
