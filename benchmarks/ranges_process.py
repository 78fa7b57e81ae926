"""Merges the records of a dense log by ranges of time, as a driver and its executors do, without Spark.

    python -m benchmarks.ranges_process SPLITS TICKS CHUNKS RANGE_BYTES WORKERS

This process is the driver: it takes in the times of all chunks, asks for the maxima of each range, then for its merge,
and joins them. Processes beside it do what Spark's tasks do, each range twice; they make the records of a range, which
tasks read from a shuffle. CPU time of the driver is without making the times of chunks.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from benchmarks.dense_log import INTERVAL_MS, DenseLog
from benchmarks.merge_process import peak_bytes
from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.time_summary import window_length
from flinkcore.spark.columnar.task_summaries import (
    CutRecordsTask,
    MaximaTask,
    MergeRangesTask,
    RangeMaxima,
    all_ranges,
    range_bounds,
)
from flinkcore.spark.exchange.sent_bytes import SentBytes
from flinkcore.spark.exchange.summary_rows import packed_block, records_row
from flinkcore.time_plane.chunk_splits import ChunkSplits
from flinkcore.time_plane.chunk_times import ChunkTimes
from flinkcore.time_plane.combine_times import CombinedTimes
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.record_blocks import RecordLimits
from flinkcore.time_plane.splits_merge import MergedSplits, SplitsMerge, joined_ranges


class RangesMerge(NamedTuple):
    """CPU time and peak memory of the driver, peak memory of the largest worker, number of ranges and steps."""

    driver_cpu_seconds: float
    driver_bytes: int
    worker_bytes: int
    ranges: int
    timeline_steps: int
    timeline_bytes: int


class Broadcasts:
    """Stands for Spark's context: the only executor writes what is broadcast to its file at once."""

    def broadcast(self, value: Any) -> Broadcasts:
        pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        return self


@dataclass(frozen=True)
class TaskOfRange:
    """A task on one range, which a worker runs."""

    log: DenseLog
    limits: RecordLimits
    cut: CutRecordsTask
    task: MaximaTask | MergeRangesTask

    def __call__(self, number: int) -> tuple[list[dict[str, Any]], int]:
        """Run the task; rows of the range, and the worker's peak memory without making the records."""
        rows = list(self._rows_of(number))
        Path("/proc/self/clear_refs").write_text("5")
        found = [row for batch in self.task(iter(rows)) for row in batch.to_pylist()]
        return found, peak_bytes()

    def _rows_of(self, number: int) -> Iterator[pa.RecordBatch]:
        """Rows that all chunks send to a range."""
        log, bounds = self.log, self.cut.bounds
        first = int(bounds[number - 1]) // INTERVAL_MS if number else 0
        last = int(bounds[number]) // INTERVAL_MS if number < len(bounds) else log.ticks
        for chunk in range(
            max(0, first * log.chunks // log.ticks - 1), min(log.chunks, last * log.chunks // log.ticks + 1)
        ):
            for block, ticks in enumerate(log.ticks_of_blocks(chunk, self.limits)):
                if first * INTERVAL_MS <= ticks[-1] and ticks[0] <= last * INTERVAL_MS:
                    sent = records_row(chunk, block, log.block(chunk, block, ticks), INTERVAL_MS)
                    yield from (row for row in self.cut(iter([sent])) if row["range"][0].as_py() == number)


class RangesOfWorkers:
    """Records of a log with workers; `RecordRanges`, as far as those of a dense log need them."""

    def __init__(self, log: DenseLog, limits: RecordLimits, workers: int) -> None:
        self.log = log
        self.limits = limits
        self.worker_bytes = self.ranges_merged = 0
        self._pool = ProcessPoolExecutor(workers, get_context("spawn"))

    def bounds(self) -> Int64s:
        """Return the clocks at which ranges end."""
        log = self.log
        ticks = [each for chunk in range(log.chunks) for each in log.ticks_of_blocks(chunk, self.limits)]
        per_tick = log.block(0, 0, ticks[0]).packed(INTERVAL_MS).nbytes / len(ticks[0])
        firsts, lasts, sizes = np.array(
            [(each[0], each[-1], int(per_tick * len(each))) for each in ticks], np.int64
        ).T
        window_ms = window_length(INTERVAL_MS, self.limits.window_ticks)
        return range_bounds(firsts, lasts, sizes, window_ms, self.limits.packed_range_bytes)

    def merged_apart(self, merge: SplitsMerge, splits: ChunkSplits, packer: StepPacker) -> MergedSplits:
        """Merge all ranges, as `TaskRecords` does it by jobs of Spark."""
        bounds = self.bounds()
        self.ranges_merged = len(bounds) + 1
        sent = SentBytes.of("the splits", splits.to_ipc(), Broadcasts())
        cut = CutRecordsTask(0, bounds, sent, range(len(bounds) + 1), INTERVAL_MS)
        found = {row.range: packed_block(row.payload) for row in self._rows(cut, MaximaTask(merge))}
        maxima = RangeMaxima.of(merge, found, len(bounds) + 1)
        sent = SentBytes.of("the maxima", maxima.to_ipc(), Broadcasts())
        task = MergeRangesTask(merge, bounds, sent)
        return joined_ranges(merge, all_ranges(task, maxima, self._rows(cut, task)), packer)

    def _rows(self, cut: CutRecordsTask, task: MaximaTask | MergeRangesTask) -> Iterator[Any]:
        of_range = TaskOfRange(self.log, self.limits, cut, task)
        for rows, worker_bytes in self._pool.map(of_range, range(self.ranges_merged)):
            self.worker_bytes = max(self.worker_bytes, worker_bytes)
            yield from (Row(**row) for row in rows)


def main() -> None:
    splits, ticks, chunks, range_bytes, workers = map(int, sys.argv[1:])
    log, limits = DenseLog(splits, ticks, chunks), RecordLimits(packed_range_bytes=range_bytes)
    made = 0.0

    def summaries() -> Iterator[ChunkTimes]:
        nonlocal made
        begin = time.process_time()
        for chunk in log.summaries():
            made += time.process_time() - begin
            yield chunk
            begin = time.process_time()

    with tempfile.TemporaryDirectory() as directory:
        os.environ["SPARK_LOCAL_DIRS"] = directory
        records = RangesOfWorkers(log, limits, workers)
        begin = time.process_time()
        plane = CombinedTimes(summaries(), GeneratorSpec(0), INTERVAL_MS, limits=limits).time_plane(records)
        seconds = time.process_time() - begin - made
    steps = plane.timeline.steps
    found = RangesMerge(
        seconds, peak_bytes(), records.worker_bytes, records.ranges_merged, len(steps), steps.buffer.nbytes
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
