"""Merges the records of a dense log as a driver does, in a process of its own, whose peak memory is then the merge's.

    python -m benchmarks.merge_process SPLITS TICKS CHUNKS RECORD_BYTES

Chunks are made one at a time, as tasks would send them, each of all splits in a stretch of time. Every split has a step
at every tick of 200 ms, its watermark a random part of the interval behind the clock. 1,000 splits and 432,000 ticks
are a day; what executors would keep on their disks is in a temporary file.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.processes import found_by

INTERVAL_MS = 200


class Merge(NamedTuple):
    """Time without making and packing the records; peak memory of the process, and before; bytes of packed records."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    bytes_before: int
    packed_bytes: int
    timeline_steps: int


def merge_in_process(splits: int, ticks: int, chunks: int, record_bytes: int) -> Merge:
    """Merge `chunks` chunks of `splits` splits, of which `record_bytes` packed bytes may be held in memory."""
    return Merge(*found_by("benchmarks.merge_process", splits, ticks, chunks, record_bytes))


def peak_bytes() -> int:
    """Peak memory of this program; `getrusage` would count that of the process from which it was started."""
    found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    from flinkcore.time_plane.chunk_times import ChunkTimes
    from flinkcore.time_plane.combine_times import combine
    from flinkcore.time_plane.generator_spec import GeneratorSpec
    from flinkcore.time_plane.log_records import LogRecords
    from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits

    splits, ticks, chunks, record_bytes = map(int, sys.argv[1:])
    random = np.random.default_rng(5)
    limits = RecordLimits(record_bytes=record_bytes)
    window_ms = limits.window_ticks * INTERVAL_MS
    records = LogRecords(INTERVAL_MS, limits)
    made = [0.0, 0.0]  # wall and CPU seconds
    packed_bytes = 0

    def summaries() -> Iterator[ChunkTimes]:
        nonlocal packed_bytes
        bounds = np.linspace(0, ticks, chunks + 1).astype(np.int64)
        for index, (start, stop) in enumerate(pairwise(bounds)):
            begin = time.perf_counter(), time.process_time()
            chunk_ticks = np.arange(start + 1, stop + 1) * INTERVAL_MS
            for number, ticks_of_window in enumerate(
                np.split(chunk_ticks, np.flatnonzero(np.diff(chunk_ticks // window_ms)) + 1)
            ):
                block = block_of(ticks_of_window)
                packed = block.packed(INTERVAL_MS)
                packed_bytes += packed.nbytes
                records.add_packed(index, number, packed, block.span_ms)
            chunk = summary(index, chunk_ticks)
            made[0] += time.perf_counter() - begin[0]
            made[1] += time.process_time() - begin[1]
            yield chunk

    def block_of(of_ticks: np.ndarray) -> RecordBlock:
        shape = splits, len(of_ticks)
        timestamps = of_ticks - random.integers(0, INTERVAL_MS, shape)
        numbers = np.arange(splits, dtype=np.int32)
        same = (of_ticks[0], of_ticks[-1])
        first, last = (np.full(splits, tick) for tick in same)
        n_records = np.full(splits, len(of_ticks) - 1)
        ticks_of_records = np.broadcast_to(of_ticks[:-1], (splits, len(of_ticks) - 1)).ravel()
        return RecordBlock(
            numbers,
            first,
            last,
            timestamps[:, -1].copy(),
            n_records,
            ticks_of_records,
            timestamps[:, :-1].ravel(),
        )

    def summary(index: int, of_ticks: np.ndarray) -> ChunkTimes:
        first, last = of_ticks[0] - INTERVAL_MS + 1, of_ticks[-1]
        same = {
            "events": len(of_ticks) * 10,
            "regressions": 0,
            "raised": 0,
            "least_arrival_ms": 0,
            "first_arrival_ms": first,
            "recorded_arrival_ms": last,
            "last_arrival_ms": last,
            "min_timestamp_ms": first,
            "max_timestamp_ms": last,
        }
        times = {name: np.full(splits, value) for name, value in same.items()}
        rows = times["events"]
        floors = {"rows": rows[:1], "arrival_ms": times["first_arrival_ms"][:1]}
        values = [f"partition-{split:05}" for split in range(splits)]
        found = ChunkTimes(index, values, rows, rows, times, floors, rows_read=int(rows.sum()))
        return ChunkTimes.from_ipc(found.to_ipc())

    before = peak_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    with closing(records):
        plane = combine(summaries(), records, GeneratorSpec(0), INTERVAL_MS, limits=limits)
    wall, cpu = time.perf_counter() - wall - made[0], time.process_time() - cpu - made[1]
    print(json.dumps([wall, cpu, peak_bytes(), before, packed_bytes, len(plane.timeline)]))


if __name__ == "__main__":
    main()
