"""Map side of the data plane: chunks of the log to blocks of events for each partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from flinkcore.columnar.checkpoint.job_checkpoint import WaitingRowsWriter
from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader, ReadEvents, read_on_all_ways
from flinkcore.columnar.stages.partial_results import (
    JUDGED_ROWS,
    EventMerger,
)
from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark.columnar.late_counts import CHUNK, Counts, LateSample
from flinkcore.spark.columnar.progress import ProgressAddress, TaskProgress
from flinkcore.spark.exchange.block_sender import BlockRoute, BlockSender
from flinkcore.spark.exchange.packed_timeline import PackedTimeline
from flinkcore.spark.logs.log_input import LogInput
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
    """

    windows: PartialWindows
    timeline: PackedTimeline

    def merger(self) -> EventMerger:
        """Return what merges the events of a chunk."""
        return EventMerger(self.windows, self.timeline.unpacked())


@dataclass(frozen=True)
class MapWay:
    """A way that the events of a log go: to an input of one operator; picklable.

    Attributes
    ----------
    plan
        Plan of the log.
    time_plane
        The result of the first pass.
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
    time_plane: TimePlane
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
        for chunk in self.log.chunks(batches):
            with ExitStack() as open_parts:
                senders = [_ChunkSender(way, chunk, self.progress, open_parts) for way in self.ways]
                for read in read_on_all_ways([sender.reader for sender in senders], chunk):
                    for sender, of_way in zip(senders, read, strict=True):
                        yield from sender.send(of_way)
                for sender in senders:
                    yield from sender.finish()


class _ChunkSender:
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

    Attributes
    ----------
    reader
        Reads the chunk for this way.
    """

    def __init__(
        self, way: MapWay, chunk: Chunk, progress: ProgressAddress | None, open_parts: ExitStack
    ) -> None:
        self._way = way
        index = chunk.index + way.waiting_chunks
        number = way.first_chunk + index
        self._waiting = None if way.waiting is None else open_parts.enter_context(way.waiting.part(index))
        self.reader = ChunkReader(way.plan, way.time_plane, way.first_split, self._waiting)
        self._sender = BlockSender(way.route, number, chunk.index % way.route.exchange.partitions)
        self._merger = None if way.merging is None else way.merging.merger()
        self._held: list[LogEvents] = []
        self._progress = TaskProgress(progress, False, number)
        self._late, self._sampled = 0, 0

    def send(self, read: ReadEvents) -> Iterator[pa.RecordBatch]:
        """Take the events of a batch; rows of the shuffle when there are enough."""
        merger, enough_rows = self._merger, self._sender.enough_rows
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
            n_rows = sum(each.n_events for each in self._held)
            enough = max(enough_rows, JUDGED_ROWS) if merger is not None and merger.merges else enough_rows
            if n_rows >= enough or sum(each.nbytes for each in self._held) >= HELD_BYTES:
                yield from self._send_held()
                yield from self._sender.take()
        self._progress.advance(read.rows_read)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send what is left, and a manifest to each partition."""
        way, number = self._way, self._sender.number
        if self._held:
            yield from self._send_held()
        if self._merger is not None:
            for rest in self._merger.finish():
                yield from self._sender.send_events(rest)
        read = {"chunk": number, "log": way.log, "counts": self.reader.counts.to_content()}
        part = None if self._waiting is None else self._waiting.written()
        if part is not None:
            read["part"] = part.to_content()
        yield from self._sender.finish({"read": read})
        self._progress.advance(0, at_end=True)
        if way.late_sample is not None and way.late_counts is not None:
            way.late_counts.add({(CHUNK, way.late_sample.number, number): (self._late, self._sampled)})

    def _send_held(self) -> Iterator[pa.RecordBatch]:
        events = concatenate(self._held) if len(self._held) > 1 else self._held[0]
        self._held = []
        for part in (events,) if self._merger is None else self._merger.add(events):
            yield from self._sender.send_events(part)
