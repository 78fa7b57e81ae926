"""Summaries of the chunks of a log that tasks have made, as the driver reads them.

Times of all chunks come first. Few records come to the driver as they are. Many stay with the executors, which cut them
by ranges of time and exchange them; then the driver reads one range after the other, or the executors merge them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import StorageLevel

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.event_log import packed_integers, unpacked_integers
from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.time_summary import window_length
from flinkcore.spark.exchange.collecting import collected_in_parts
from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.exchange.row_format import RowFormat, row_values
from flinkcore.spark.exchange.sent_bytes import SentBytes
from flinkcore.spark.exchange.summary_rows import TIMES, packed_block
from flinkcore.spark.sessions.session import spark_context
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.chunk_splits import ChunkSplits
from flinkcore.time_plane.log_records import LogRecords, RecordRange
from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits
from flinkcore.time_plane.splits_merge import MergedSplits, RangeMerge, SplitsMerge, joined_ranges
from flinkcore.time_plane.time_pass import TimePass

_CUT_RECORDS: Final = RowFormat("slot int, range int, chunk long, number int, payload binary")
_OF_RANGES: Final = RowFormat("range int, payload binary")
_CUT_ORDER: Final = ("range", "chunk", "number")


class CollectedRows:
    """Rows of a short log that have been collected; used as `KeptPayloads` is.

    Parameters
    ----------
    rows : list
        Rows in the format `SUMMARIES`.
    """

    def __init__(self, rows: list[Any]) -> None:
        self.index = sorted(rows, key=attrgetter("way", "first_ms", "chunk", "number"))
        self.dataframe = None

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """Yield rows in order: those with these places in the index."""
        yield from self.index[start:stop]

    def close(self) -> None:
        """Do nothing."""


class TaskSummaries:
    """Summaries, made by tasks, of the chunks of a log that is used on several ways.

    Parameters
    ----------
    payloads : CollectedRows or KeptPayloads
        Rows in the format `SUMMARIES`.
    """

    def __init__(self, payloads: Any) -> None:
        self._payloads = payloads
        index = payloads.index
        self._ways = np.array([row.way for row in index], np.int64)
        self._first_ms = np.array([row.first_ms for row in index], np.int64)

    def _places(self, way: int) -> tuple[int, int, int]:
        """Places in the index of the times of a way, of its records, and of what follows."""
        start, stop = np.searchsorted(self._ways, [way, way + 1]).tolist()
        return start, start + int(np.searchsorted(self._first_ms[start:stop], TIMES, side="right")), stop

    def times(self, way: int = 0) -> Iterator[bytes]:
        """Yield the times of each chunk, or the counts of its rows."""
        start, stop, _ = self._places(way)
        for row in self._payloads.rows(start, stop):
            yield bytes(row.payload)

    def records(self, time_pass: TimePass, way: int = 0) -> TaskRecords:
        """Return the records of all chunks."""
        _, start, stop = self._places(way)
        return TaskRecords(self._payloads, (start, stop), way, time_pass)

    def close(self) -> None:
        """Release what the executors hold."""
        self._payloads.close()


class TaskRecords:
    """Records of a log which tasks have given back: `RecordRanges`.

    Parameters
    ----------
    payloads : CollectedRows or KeptPayloads
    places : (int, int)
        Places of the records in the index.
    way : int
        Number of the way.
    time_pass : TimePass
        Over the log.
    """

    def __init__(self, payloads: Any, places: tuple[int, int], way: int, time_pass: TimePass) -> None:
        self._payloads = payloads
        self._places = places
        self._way = way
        self._interval_ms = time_pass.summary_interval_ms
        self._limits: RecordLimits = time_pass.limits
        self._waiting: list[tuple[int, RecordBlock]] = []

    def add(self, chunk: int, block: RecordBlock) -> None:
        """Take in records of events that wait in the checkpoint, which are read before all others."""
        self._waiting.append((chunk, block))

    def ranges(self, splits: ChunkSplits) -> Iterator[RecordRange]:
        """Yield all ranges, as of `RecordRanges`."""
        if self._are_many:
            yield from self._cut_ranges(splits)
            return
        start, stop = self._places
        with closing(LogRecords(self._interval_ms, self._limits)) as here:
            for chunk, block in self._waiting:
                here.add(chunk, block)
            for row in self._payloads.rows(start, stop):
                here.add_packed(row.chunk, row.number, packed_block(row.payload), (row.first_ms, row.last_ms))
            yield from here.ranges(splits)

    def merged_apart(
        self, merge: SplitsMerge, splits: ChunkSplits, packer: StepPacker
    ) -> MergedSplits | None:
        """Merge all ranges on executors, if there are many records, as of `RecordRanges`."""
        if not self._are_many or self._waiting:
            return None
        bounds, cut = self._cut(splits)
        kept = cut.persist(StorageLevel.DISK_ONLY)
        spark = cut.sparkSession
        try:
            with task_errors_raised():
                rows = kept.mapInArrow(portable(spark, MaximaTask(merge)), _OF_RANGES.struct_type).collect()
            found = {row.range: packed_block(row.payload) for row in rows}
            maxima = RangeMaxima.of(merge, found, len(bounds) + 1)
            sent = self._sent("the maximum timestamps of the splits", maxima.to_ipc())
            task = MergeRangesTask(merge, bounds, sent)
            merged = kept.mapInArrow(
                portable(spark, task, broadcasts=sent.broadcasts), _OF_RANGES.struct_type
            )
            with closing(collected_in_parts(merged, "range")) as rows_of_ranges:
                return joined_ranges(merge, all_ranges(task, maxima, rows_of_ranges), packer)
        finally:
            kept.unpersist()

    @property
    def _are_many(self) -> bool:
        if self._payloads.dataframe is None:
            return False
        start, stop = self._places
        n_bytes: int = sum(row.size for row in self._payloads.index[start:stop])
        return n_bytes > self._limits.collected_bytes

    def _sent(self, what: str, data: bytes) -> SentBytes:
        context = spark_context(self._payloads.dataframe.sparkSession)
        return SentBytes.of(what, data, context, self._limits.inline_bytes)

    def _cut(self, splits: ChunkSplits) -> tuple[Int64s, Any]:
        """Return the bounds of ranges, and a DataFrame with the records of a range in each partition."""
        start, stop = self._places
        firsts, lasts, sizes = (
            np.array([row[name] for row in self._payloads.index[start:stop]], np.int64)
            for name in ("first_ms", "last_ms", "size")
        )
        window_ms = window_length(self._interval_ms, self._limits.window_ticks)
        bounds = range_bounds(firsts, lasts, sizes, window_ms, self._limits.packed_range_bytes)
        dataframe = self._payloads.dataframe
        spark = dataframe.sparkSession
        slots = tuple(partition_slots(len(bounds) + 1, chooses_partitions(dataframe)))
        sent = self._sent("the splits of the log", splits.to_ipc())
        task = CutRecordsTask(self._way, bounds, sent, slots, self._interval_ms)
        cut = dataframe.mapInArrow(
            portable(spark, task, broadcasts=sent.broadcasts), _CUT_RECORDS.struct_type
        )
        return bounds, to_partitions(cut, len(slots), "slot").sortWithinPartitions(*_CUT_ORDER)

    def _cut_ranges(self, splits: ChunkSplits) -> Iterator[RecordRange]:
        bounds, cut = self._cut(splits)
        waiting = [splits.in_log(chunk, block) for chunk, block in self._waiting]
        untils = (*bounds.tolist(), None)
        done = 0
        with task_errors_raised():
            for number, rows in groupby(cut.toLocalIterator(), key=attrgetter("range")):
                for until_ms in untils[done:number]:
                    yield RecordRange(until_ms, waiting)
                    waiting = []
                blocks = [RecordBlock.unpacked(packed_block(row.payload)) for row in rows]
                yield RecordRange(untils[number], waiting + blocks)
                waiting, done = [], number + 1
        for until_ms in untils[done:]:
            yield RecordRange(until_ms, waiting)
            waiting = []


def range_bounds(firsts: Int64s, lasts: Int64s, sizes: Int64s, window_ms: int, range_bytes: int) -> Int64s:
    """Return the starts of windows that divide blocks of records into ranges of about so many bytes.

    None is after the last tick: a tick at the last arrival is run with the last range only.

    Parameters
    ----------
    firsts, lasts, sizes : numpy.ndarray of int64, shape (n_blocks,)
        First and last tick of each block, and its bytes, which are taken to lie evenly between them.
    window_ms : int
    range_bytes : int
    """
    if window_ms == 0 or len(sizes) == 0:
        return np.empty(0, np.int64)
    base = int(firsts.min())
    starts = (firsts - base).astype(float)
    stops = np.maximum((lasts - base).astype(float), starts + 1)
    rates = sizes / (stops - starts)
    moments = np.concatenate([starts, stops])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    rate = np.cumsum(np.concatenate([rates, -rates])[order])
    total = np.append(0, np.cumsum(np.maximum(rate[:-1], 0) * np.diff(moments)))
    targets = np.arange(1, int(total[-1] // max(range_bytes, 1)) + 1) * max(range_bytes, 1)
    bounds = np.rint(np.interp(targets, total, moments)).astype(np.int64) + base
    bounds = np.unique(bounds // window_ms * window_ms)
    found: Int64s = bounds[(bounds > base) & (bounds <= lasts.max())]
    return found


@dataclass(frozen=True)
class CutRecordsTask:
    """Sends the records of chunks to the ranges of time in which they are read, as parts of the log; picklable.

    Attributes
    ----------
    way
        Number of the way whose records are cut.
    bounds
        Where ranges end, but for the last.
    splits
        The `ChunkSplits` of the log.
    slots
        For each range, its slot in the shuffle.
    interval_ms
        Interval of the ticks.
    """

    way: int
    bounds: Int64s
    splits: SentBytes
    slots: Sequence[int]
    interval_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each block and range that it has records in."""
        splits = ChunkSplits.from_ipc(self.splits.buffer)
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("way", "first_ms", "chunk", "number"))
            payloads = batch.column("payload")
            for row, (way, first_ms, chunk, number) in enumerate(zip(*columns, strict=True)):
                if way != self.way or first_ms == TIMES:
                    continue
                block = RecordBlock.unpacked(packed_block(payloads[row].as_buffer()))
                ranges = np.searchsorted(self.bounds, splits.read_ms(chunk, block), side="right")
                block = splits.in_log(chunk, block)
                for of_range in np.unique(ranges).tolist():
                    part = block.where(ranges == of_range)
                    payload = pa.py_buffer(part.packed(self.interval_ms))
                    yield _CUT_RECORDS.row(self.slots[of_range], of_range, chunk, number, payload)


def _ranges_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[RecordBlock]]]:
    """Yield the ranges in a task's input, and the blocks of each."""
    rows = row_values(batches, "range", "payload")
    for number, of_range in groupby(rows, key=itemgetter(0)):
        yield number, (RecordBlock.unpacked(packed_block(payload)) for _, payload in of_range)


@dataclass(frozen=True)
class MaximaTask:
    """Finds the maximum timestamps of the splits in the task's ranges; picklable.

    Attributes
    ----------
    merge
        A divisible one.
    """

    merge: SplitsMerge

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per range."""
        for number, blocks in _ranges_of(batches):
            yield _OF_RANGES.row(number, packed_integers(self.merge.maxima(blocks)).tobytes())


@dataclass(frozen=True, eq=False)
class RangeMaxima:
    """The maximum timestamps of the splits before each range but the first.

    Parameters
    ----------
    n_splits : int
    offsets : numpy.ndarray of int64, shape (n_ranges,)
        Those before range i + 1 are packed in offsets[i] up to offsets[i + 1].
    packed : numpy.ndarray of uint8
    """

    n_splits: int
    offsets: Int64s
    packed: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, merge: SplitsMerge, found: Mapping[int, Int64s], n_ranges: int) -> RangeMaxima:
        """Return the maxima before ranges, given those within them, packed; ranges without records have none."""
        maxima = np.full(max(1, merge.n_splits), MIN_TIMESTAMP)
        of_range = np.empty_like(maxima)
        packed = [np.empty(0, np.uint8)]
        for number in range(n_ranges - 1):
            if number in found:
                unpacked_integers(found[number].view(np.uint8), of_range)
                np.maximum(maxima, of_range, out=maxima)
            packed.append(packed_integers(maxima).view(np.uint8))
        return cls(len(maxima), np.cumsum([len(each) for each in packed]), np.concatenate(packed))

    def before(self, number: int) -> Int64s | None:
        """Return the maxima before a range; None before the first."""
        if number == 0:
            return None
        maxima = np.empty(self.n_splits, np.int64)
        unpacked_integers(self.packed[self.offsets[number - 1] : self.offsets[number]], maxima)
        return maxima

    def to_ipc(self) -> bytes:
        """Return them as an Arrow IPC stream."""
        columns = {"offsets": self.offsets, "packed": self.packed}
        return write_columns("RangeMaxima", {"n_splits": self.n_splits}, columns)

    @classmethod
    def from_ipc(cls, data: Any) -> RangeMaxima:
        """Return what `to_ipc` wrote, without a copy of this buffer."""
        scalars, columns = read_columns("RangeMaxima", data)
        return cls(scalars["n_splits"], columns["offsets"].to_numpy(), columns["packed"].to_numpy())


@dataclass(frozen=True)
class MergeRangesTask:
    """Merges the splits in the task's ranges; picklable.

    Attributes
    ----------
    merge
        A divisible one.
    bounds
        Where ranges end, but for the last.
    maxima
        The `RangeMaxima`.
    """

    merge: SplitsMerge
    bounds: Int64s
    maxima: SentBytes

    def merged(self, number: int, blocks: Iterable[RecordBlock], maxima: Int64s | None) -> RangeMerge:
        """Merge the blocks of a range, given the maxima before it."""
        since_ms = int(self.bounds[number - 1]) if number else None
        until_ms = int(self.bounds[number]) if number < len(self.bounds) else None
        return self.merge.merged_range(blocks, since_ms, until_ms, maxima)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per range."""
        maxima = RangeMaxima.from_ipc(self.maxima.buffer)
        for number, blocks in _ranges_of(batches):
            yield _OF_RANGES.row(number, self.merged(number, blocks, maxima.before(number)).to_ipc())


def all_ranges(
    task: MergeRangesTask, maxima: RangeMaxima, rows: Iterator[Any]
) -> Iterator[tuple[RangeMerge, Int64s | None]]:
    """Yield each range with the maxima before it, given the rows of the task: ranges without records have none."""
    number = 0
    for row in chain(rows, [None]):
        stop = len(task.bounds) + 1 if row is None else row.range
        for empty in range(number, stop):
            before = maxima.before(empty)
            yield task.merged(empty, [], before), before
        if row is not None:
            yield RangeMerge.from_ipc(bytes(row.payload)), maxima.before(stop)
            number = stop + 1
