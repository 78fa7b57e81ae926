"""Ranges of a log that are merged apart from each other give the time plane of one merge over all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from equipment.example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models.timed_log import Log, chunk_times, steps
from models.watermarks import Event
from pyspark.sql import Row

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.packed_steps import StepPacker
from flinkcore.spark.columnar.task_summaries import (
    CutRecordsTask,
    MaximaTask,
    MergeRangesTask,
    RangeMaxima,
    all_ranges,
    range_bounds,
)
from flinkcore.spark.exchange.sent_bytes import SentBytes
from flinkcore.spark.exchange.summary_rows import records_row
from flinkcore.time_plane.chunk_splits import ChunkSplits
from flinkcore.time_plane.combine_times import CombinedTimes
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.log_records import LogRecords
from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits
from flinkcore.time_plane.splits_merge import MergedSplits, SplitsMerge, joined_ranges
from flinkcore.time_plane.timeline import TimePlane


class TaskRanges(LogRecords):
    """Records that tasks cut and merge, each with what travels to it: at these bounds, or at those of the limits."""

    def __init__(self, interval_ms: int, limits: RecordLimits, bounds: list[int] | None) -> None:
        super().__init__(interval_ms, limits)
        self._fixed = None if bounds is None else np.array(bounds, np.int64)

    def bounds(self, rows: list[pa.RecordBatch]) -> Int64s:
        if self._fixed is not None:
            return self._fixed
        firsts, lasts = (
            np.array([row[name][0].as_py() for row in rows], np.int64) for name in ("first_ms", "last_ms")
        )
        sizes = np.array([len(row["payload"][0].as_py()) for row in rows], np.int64)
        return range_bounds(firsts, lasts, sizes, self._window_ms, self._limits.packed_range_bytes)

    def merged_apart(self, merge: SplitsMerge, splits: ChunkSplits, packer: StepPacker) -> MergedSplits:
        rows = [
            records_row(
                chunk, order, RecordBlock.unpacked(self._store.values(place, 0, size)), self._interval_ms
            )
            for chunk, order, place, size, *_ in self._blocks
        ]
        bounds = self.bounds(rows)
        sent = SentBytes.of("splits", splits.to_ipc(), None)
        cut_task = CutRecordsTask(0, bounds, sent, range(len(bounds) + 1), self._interval_ms)
        cut = sorted(
            (row for batch in cut_task(iter(rows)) for row in batch.to_pylist()),
            key=lambda row: (row["range"], row["chunk"], row["number"]),
        )
        return joined(merge, bounds, cut, packer)


def joined(
    merge: SplitsMerge,
    bounds: Int64s,
    cut: list[dict[str, Any]],
    packer: StepPacker,
) -> MergedSplits:
    batches = [pa.RecordBatch.from_pylist([row]) for row in cut]
    found = {
        row["range"]: np.frombuffer(row["payload"], np.int64)
        for batch in MaximaTask(merge)(iter(batches))
        for row in batch.to_pylist()
    }
    maxima = RangeMaxima.of(merge, found, len(bounds) + 1)
    task = MergeRangesTask(merge, bounds, SentBytes.of("maxima", maxima.to_ipc(), None))
    merged = (Row(**row) for batch in task(iter(batches)) for row in batch.to_pylist())
    return joined_ranges(merge, all_ranges(task, maxima, merged), packer)


EVENTS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(-40, 90), st.none() | st.integers(-300, 100)),
    min_size=1,
    max_size=60,
)
"""Splits, times since the arrival before, and lags of timestamps behind arrivals; None: without a timestamp."""


@settings(max_examples=examples(200), deadline=None)
@given(
    events=EVENTS,
    delay=st.sampled_from([0, 5, 200, 2**63 - 1]),
    interval_ms=st.sampled_from([1, 7, 50]),
    window_ticks=st.integers(1, 4),
    cuts=st.sets(st.integers(1, 59), max_size=4),
    bounds=st.sets(st.integers(-60, 300), max_size=12) | st.none(),
    range_bytes=st.sampled_from([8, 100, 400]),
    by_arrival=st.booleans(),
    stops=st.booleans(),
    end_ms=st.sampled_from([0, 0, 500]),
)
# The only tick is the last arrival, which no range may end after.
@example(
    events=[("a", 0, 0)],
    delay=0,
    interval_ms=1,
    window_ticks=1,
    cuts=set(),
    bounds=None,
    range_bytes=8,
    by_arrival=True,
    stops=False,
    end_ms=0,
)
def test_ranges_that_are_merged_apart_are_those_of_one_merge(
    events: list[tuple[str, int, int | None]],
    delay: int,
    interval_ms: int,
    window_ticks: int,
    cuts: set[int],
    bounds: set[int] | None,
    range_bytes: int,
    by_arrival: bool,
    stops: bool,
    end_ms: int,
) -> None:
    clock, rows = 0, []
    for split, stride, lag in events:
        clock += stride
        rows.append(Event(split, clock, MIN_TIMESTAMP if lag is None else clock + lag))
    generator = GeneratorSpec(delay)
    limits = RecordLimits(window_ticks=window_ticks, piece_bytes=100, packed_range_bytes=range_bytes)
    window_ms = window_ticks * interval_ms
    found = []
    last_tick = -max(row.arrival_ms or 0 for row in rows) // interval_ms * -interval_ms
    starts = (
        None
        if bounds is None
        else sorted({min(bound, last_tick) // window_ms * window_ms for bound in bounds})
    )
    for records in (LogRecords(interval_ms, limits), TaskRanges(interval_ms, limits, starts)):
        times = [
            chunk_times(
                batches,
                generator,
                interval_ms,
                index=index,
                records=records,
                limits=limits,
                by_arrival=by_arrival,
            )
            for index, batches in enumerate(Log(rows, cuts, {20, 40}).chunks())
        ]
        log_times = CombinedTimes(
            times, generator, interval_ms, by_arrival=by_arrival, limits=limits, stops=stops
        )
        assert log_times.replay_range is not None
        first, last = log_times.replay_range
        found.append(content(log_times.time_plane(records, (first - end_ms, last + end_ms))))
    assert found[0] == found[1]


def content(plane: TimePlane) -> dict[str, Any]:
    return {
        "steps": steps(plane),
        "holders": list(zip(*(column.tolist() for column in vars(plane.holders).values()), strict=True)),
        "final": plane.splits.final_watermark_ms.tolist(),
        "cut": None if plane.cut is None else [column.tolist() for column in plane.cut.columns.values()],
    }
