"""Summaries of the chunks of a log that tasks have made, as the driver reads them.

Times of all chunks come first. Few records come to the driver as they are. Many stay with the executors, which cut them
by ranges of time and exchange them; then the driver reads one range after the other, or the executors merge them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.time_summary import window_length
from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.exchange.summary_rows import TIMES, packed_block
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.log_records import LogRecords, RecordRange
from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits
from flinkcore.time_plane.time_pass import TimePass

_CUT_RECORDS: Final = RowFormat("slot int, range int, chunk long, number int, payload binary")
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
    """What tasks have given back about the chunks of a log that is used on several ways.

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

    def ranges(self, floors: Mapping[int, Int64s]) -> Iterator[RecordRange]:
        """Yield all ranges, as of `RecordRanges`."""
        start, stop = self._places
        index = self._payloads.index[start:stop]
        sizes = (
            np.array([row.size for row in index], np.int64) if self._payloads.dataframe is not None else None
        )
        if sizes is not None and sizes.sum() > self._limits.collected_bytes:
            spans = np.array([(row.first_ms, row.last_ms) for row in index], np.int64).T
            yield from self._cut_ranges(floors, spans[0], spans[1], sizes)
            return
        with closing(LogRecords(self._interval_ms, self._limits)) as here:
            for chunk, block in self._waiting:
                here.add(chunk, block)
            for row in self._payloads.rows(start, stop):
                here.add_packed(row.chunk, row.number, packed_block(row.payload), (row.first_ms, row.last_ms))
            yield from here.ranges(floors)

    def _cut_ranges(
        self, floors: Mapping[int, Int64s], firsts: Int64s, lasts: Int64s, sizes: Int64s
    ) -> Iterator[RecordRange]:
        window_ms = window_length(self._interval_ms, self._limits.window_ticks)
        bounds = range_bounds(firsts, lasts, sizes, window_ms, self._limits.packed_range_bytes)
        dataframe = self._payloads.dataframe
        slots = tuple(partition_slots(len(bounds) + 1, chooses_partitions(dataframe)))
        task = CutRecordsTask(self._way, bounds, dict(floors), slots, self._interval_ms)
        cut = dataframe.mapInArrow(portable(dataframe.sparkSession, task), _CUT_RECORDS.struct_type)
        parts = to_partitions(cut, len(slots), "slot").sortWithinPartitions(*_CUT_ORDER)
        untils = (*bounds.tolist(), None)
        done = 0
        with task_errors_raised():
            for number, rows in groupby(parts.toLocalIterator(), key=attrgetter("range")):
                for until_ms in untils[done:number]:
                    yield RecordRange(until_ms, self._waiting_once())
                blocks = self._waiting_once()
                blocks += [(row.chunk, RecordBlock.unpacked(packed_block(row.payload))) for row in rows]
                yield RecordRange(untils[number], blocks)
                done = number + 1
        for until_ms in untils[done:]:
            yield RecordRange(until_ms, self._waiting_once())

    def _waiting_once(self) -> list[tuple[int, RecordBlock]]:
        waiting, self._waiting = self._waiting, []
        return waiting


def range_bounds(firsts: Int64s, lasts: Int64s, sizes: Int64s, window_ms: int, range_bytes: int) -> Int64s:
    """Return the starts of windows that divide blocks of records into ranges of about so many bytes.

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
    bounds = np.interp(targets, total, moments).astype(np.int64) + base
    bounds = np.unique(bounds // window_ms * window_ms)
    found: Int64s = bounds[bounds > base]
    return found


@dataclass(frozen=True)
class CutRecordsTask:
    """Sends the records of chunks to the ranges of time in which they are read; picklable.

    Attributes
    ----------
    way
        Number of the way whose records are cut.
    bounds
        Where ranges end, but for the last.
    floors
        As of `RecordRanges.ranges`.
    slots
        For each range, its slot in the shuffle.
    interval_ms
        Interval of the ticks.
    """

    way: int
    bounds: Int64s
    floors: Mapping[int, Int64s]
    slots: Sequence[int]
    interval_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each block and range that it has records in."""
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("way", "first_ms", "chunk", "number"))
            payloads = batch.column("payload")
            for row, (way, first_ms, chunk, number) in enumerate(zip(*columns, strict=True)):
                if way != self.way or first_ms == TIMES:
                    continue
                block = RecordBlock.unpacked(packed_block(payloads[row].as_buffer()))
                read_ms = block.first_tick_ms
                if chunk in self.floors:
                    read_ms = np.maximum(read_ms, self.floors[chunk][block.split])
                ranges = np.searchsorted(self.bounds, read_ms, side="right")
                for of_range in np.unique(ranges).tolist():
                    part = block.where(ranges == of_range)
                    payload = pa.py_buffer(part.packed(self.interval_ms))
                    yield _CUT_RECORDS.row(self.slots[of_range], of_range, chunk, number, payload)
