"""Merges the timelines of many splits in a process of its own, whose peak memory is then the merge's.

The summaries of chunks are made one at a time, as tasks would send them, each of a stretch of some splits. Every
split has a step at every tick, its watermark a random part of the interval behind the clock.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.processes import found_by

INTERVAL_MS = 200
SPLITS_OF_CHUNK = 100
STEPS_OF_CHUNK = 500


class Merge(NamedTuple):
    """Time of the merge alone, without making the summaries; peak memory of the process, and before the merge."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    bytes_before: int
    timeline_steps: int


def merge_in_process(splits: int, steps: int, record_bytes: int) -> Merge:
    """Merge `splits` splits of `steps` steps each, of which `record_bytes` may be held in memory."""
    return Merge(*found_by("benchmarks.merge_process", splits, steps, record_bytes))


def peak_bytes() -> int:
    """Peak memory of this program; `getrusage` would count that of the process from which it was started."""
    found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    from flinkcore.time_plane.chunk_times import ChunkTimes
    from flinkcore.time_plane.combine_times import MergeLimits, combine
    from flinkcore.time_plane.generator_spec import GeneratorSpec

    splits, steps, record_bytes = map(int, sys.argv[1:])
    random = np.random.default_rng(5)
    made = [0.0, 0.0]  # wall and CPU seconds

    def summaries() -> Iterator[ChunkTimes]:
        stretches = product(range(0, splits, SPLITS_OF_CHUNK), range(0, steps, STEPS_OF_CHUNK))
        for index, (split, step) in enumerate(stretches):
            begin = time.perf_counter(), time.process_time()
            chunk = summary(
                index,
                list(range(split, min(split + SPLITS_OF_CHUNK, splits))),
                np.arange(step + 1, min(step + STEPS_OF_CHUNK, steps) + 1) * INTERVAL_MS,
            )
            made[0] += time.perf_counter() - begin[0]
            made[1] += time.process_time() - begin[1]
            yield chunk

    def summary(index: int, values: list[int], ticks: np.ndarray) -> ChunkTimes:
        shape = len(values), len(ticks)
        records = np.empty((*shape, 2), np.int64)
        records[:, :, 0] = 2 * ticks
        records[:, :, 1] = ticks - random.integers(0, INTERVAL_MS, shape)
        same = {
            "events": len(ticks) * 10,
            "regressions": 0,
            "least_arrival_ms": 0,
            "first_arrival_ms": ticks[0] - INTERVAL_MS + 1,
            "recorded_arrival_ms": ticks[-1],
            "last_arrival_ms": ticks[-1],
            "n_records": len(ticks),
        }
        times = {name: np.full(len(values), value) for name, value in same.items()}
        times |= {"min_timestamp_ms": records[:, 0, 1].copy(), "max_timestamp_ms": records[:, -1, 1].copy()}
        rows = times["events"]
        floors = {"rows": rows[:1], "arrival_ms": times["first_arrival_ms"][:1]}
        return ChunkTimes(
            index, values, rows, rows, times, records.reshape(-1), floors, rows_read=int(rows.sum())
        )

    before = peak_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    limits = MergeLimits(record_bytes=record_bytes)
    plane = combine(summaries(), GeneratorSpec(0, 60_000), INTERVAL_MS, limits=limits)
    wall, cpu = time.perf_counter() - wall - made[0], time.process_time() - cpu - made[1]
    print(json.dumps([wall, cpu, peak_bytes(), before, len(plane.timeline)]))


if __name__ == "__main__":
    main()
