"""Reads a log once more, and counts how many events are late under which bound of out-of-orderness; anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.event_log import rows_by_split
from flinkcore._native.lateness import LatenessCounter
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime, window_bounds, window_timestamps
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.common.rowtime_watermarks import RowtimeWatermarksSupplier
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.window import (
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.chunk_clock import ChunkClock
from flinkcore.time_plane.chunk_times import TimeColumns, TimesBySplit
from flinkcore.time_plane.kept_times import KeptChunk
from flinkcore.time_plane.timeline import Timeline, TimePlane

KIND: Final = "LatenessCounts"


def require_time_windows(window: WindowAssigner[Any, Any]) -> WindowsByTime:
    """Return the windows, if lateness for them has a closed form; else raise a ConfigurationError."""
    if not isinstance(window, WindowsByTime):
        raise ConfigurationError(
            "lateness is counted for tumbling, sliding and cumulative windows of event time, not for "
            f"{window.in_words}, whose bounds depend on more than the timestamp: replay the job with several "
            "strategies, by what_if([...])"
        )
    if isinstance(window, TumblingEventTimeWindows) and window.window_stagger is not WindowStagger.ALIGNED:
        raise ConfigurationError(
            f"lateness is counted for windows that begin together, not for {window.in_words}: leave the stagger out"
        )
    return window


def bound_of(strategy: WatermarkStrategy) -> int | None:
    """Return the bound of out-of-orderness of a strategy in ms, or None if it has none.

    SQL's watermark is the largest rowtime minus a delay, without the 1 ms that bounded out-of-orderness subtracts.
    """
    supplier = strategy.generator_supplier
    if isinstance(supplier, RowtimeWatermarksSupplier):
        return supplier.delay_ms - 1
    return strategy.out_of_orderness_ms


def require_bound(strategy: WatermarkStrategy) -> int:
    """Return the bound of a strategy in ms; raise a ConfigurationError if it has no bound of out-of-orderness."""
    bound = bound_of(strategy)
    if bound is None:
        raise ConfigurationError(
            f"lateness under every bound is that of bounded out-of-orderness, but the strategy is: {strategy}. Take "
            "for_bounded_out_of_orderness or for_monotonous_timestamps; to compare other strategies, replay the job "
            "with them, by what_if([...])"
        )
    if bound < 0:
        raise ConfigurationError(
            f"the watermark is the rowtime itself or later ({strategy}), and lateness is counted from a delay of "
            "1 ms on. Declare WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND"
        )
    return bound


def highest_exact_bound(time_plane: TimePlane) -> int:
    """Return the highest bound under which no event of a log has the watermark -2**63, whose generator emits none."""
    least = int(time_plane.splits.min_timestamp_ms.min(initial=MAX_TIMESTAMP))
    return max(0, least - MIN_TIMESTAMP - 2)


@dataclass(frozen=True)
class CountLateness:
    """Counts the events of a chunk; picklable.

    Attributes
    ----------
    plan
        Plan of the log.
    time_plane
        Time plane of the log, for reading.
    timeline
        Under the strategy's bound.
    own_bound_ms
        Bound of the strategy.
    bounds_ms : numpy.ndarray of int64, shape (n_bounds,)
        Among them the strategy's own.
    groups : numpy.ndarray of int32, shape (n_bounds + 1,)
        As of `LatenessCounter`.
    windows
        For which events may be late.
    allowed_lateness_ms
        Allowed latenesses of all windows.
    """

    plan: LogPlan
    time_plane: TimePlane
    timeline: Timeline
    own_bound_ms: int
    bounds_ms: Int64s
    groups: Int32s
    windows: tuple[WindowsByTime, ...]
    allowed_lateness_ms: tuple[int, ...]

    @classmethod
    def of(
        cls,
        plan: LogPlan,
        time_plane: TimePlane,
        bounds_ms: Int64s,
        groups: Int32s,
        windows: Sequence[WindowsByTime],
        allowed_lateness_ms: Sequence[int],
    ) -> CountLateness:
        """Return what reads no more of a log than lateness needs.

        Raises
        ------
        DataError
            If a window would overflow.
        """
        splits = time_plane.splits
        least = int(splits.min_timestamp_ms.min(initial=0))
        greatest = int(splits.max_timestamp_ms.max(initial=0))
        for window in windows:
            lowest, highest = window_timestamps(window)
            if least < lowest or greatest > highest:
                raise DataError(
                    f"timestamps from {dated(least)} to {dated(greatest, ' ms')}: {window.in_words} have bounds within "
                    f"64 bits for those from {lowest} to {highest} ms; filter other rows out before timestamps are "
                    "assigned"
                )
        own_bound_ms = require_bound(plan.strategy)
        return cls(
            replace(plan, read=frozenset()).narrowed(),
            time_plane.for_reading(),
            time_plane.timeline,
            own_bound_ms,
            bounds_ms,
            groups,
            tuple(windows),
            tuple(allowed_lateness_ms),
        )

    def counter(self) -> LatenessCounter:
        """Return a counter of no events yet."""
        own = int(np.searchsorted(self.bounds_ms, self.own_bound_ms))
        splits = len(self.time_plane.split_values)
        counter = LatenessCounter(self.timeline.steps, self.bounds_ms, self.groups, own, splits)
        for window in self.windows:
            counter.add_windows(
                **window_bounds(window), allowed_lateness_ms=np.array(self.allowed_lateness_ms, np.int64)
            )
        return counter

    def __call__(self, chunk: Chunk) -> Iterator[bytes]:
        """Yield what has been counted, for `add_counts`."""
        counter = self._counter_of(chunk.index)
        filtered = rejected = 0
        if self.plan.takes_all_events:
            clock = self.time_plane.enter(chunk.index)
            rows_read = 0
            for batch in self.plan.reader(None, is_placed=False).read(chunk):
                _count(counter, clock, clock.by_split(batch))
                filtered += batch.filtered
                rejected += batch.rejected.total
                rows_read += batch.rows_read
            self.time_plane.check_chunk(clock, chunk, rows_read)
        else:
            splits = np.arange(len(self.time_plane.split_values), dtype=np.int32)
            reader = ChunkReader(self.plan, self.time_plane)
            for read in reader.read(chunk):
                events = read.events
                offsets, arrivals, _ = rows_by_split(read.splits, len(splits), read.arrivals, None, None)
                counter.arrived(splits, offsets, arrivals)
                times = rows_by_split(events.splits, len(splits), events.arrivals, events.timestamps, None)
                counter.update(splits, *times)
            filtered, rejected = reader.counts.filtered, reader.counts.rejected.total()
        yield _counted(counter, filtered, rejected)

    def of_kept(self, index: int, kept: KeptChunk) -> Iterator[bytes]:
        """Yield the same of a chunk whose times have been kept."""
        counter, clock = self._counter_of(index), self.time_plane.enter(index)
        columns = TimeColumns()
        for batch in kept.batches:
            _count(counter, clock, batch.times(columns))
        yield _counted(counter, kept.filtered, kept.rejected)

    def _counter_of(self, index: int) -> LatenessCounter:
        counter = self.counter()
        if not self.time_plane.by_arrival:
            starts = self.time_plane.starts
            entries = starts.entries(index)
            counter.begin(starts.split[entries], starts.arrival_ms[entries])
        return counter


def _count(counter: LatenessCounter, clock: ChunkClock, times: TimesBySplit) -> None:
    """Count the events of a batch, all of which the operator takes."""
    splits, arrivals = clock.order_by_split(times)
    counter.arrived(splits, times.offsets, clock.arrived_ms)
    counter.update(splits, times.offsets, arrivals, times.timestamp_ms)


def _counted(counter: LatenessCounter, filtered: int, rejected: int) -> bytes:
    return write_columns(KIND, {"filtered": filtered, "rejected": rejected}, counter.counts())


def add_counts(counter: LatenessCounter, data: bytes) -> tuple[int, int]:
    """Add what has been counted of a chunk; return how many of its rows were filtered out and how many rejected."""
    header, columns = read_columns(KIND, data)
    counter.add({name: column.to_numpy() for name, column in columns.items()})
    return header["filtered"], header["rejected"]
