"""Merges the timelines of many splits in a process of its own, whose peak memory is then the merge's.

The summaries of chunks are made one at a time, as tasks would send them: every split has a step at every tick,
its watermark a random part of the interval behind the clock.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
# The repository comes last, so that an installed flinkcore is measured rather than the source tree.
START = "import sys; sys.path.append(sys.argv[1]); from benchmarks.merge_process import main; main()"

INTERVAL_MS = 200
CHUNKS = 20


class Merge(NamedTuple):
    """Time of the merge alone, without making the summaries; peak memory of the process, and before the merge."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    bytes_before: int
    timeline_steps: int


def merge_in_process(splits: int, steps: int, record_bytes: int) -> Merge:
    """Merge `splits` splits of `steps` steps each, of which `record_bytes` may be held in memory."""
    arguments = [str(ROOT), *map(str, (splits, steps, record_bytes))]
    done = subprocess.run(
        [sys.executable, "-c", START, *arguments], stdout=subprocess.PIPE, check=True, text=True
    )
    return Merge(*json.loads(done.stdout))


def main() -> None:
    from flinkcore.replay.chunk_times import ChunkTimes, GeneratorSpec
    from flinkcore.replay.combine_times import MergeLimits, combine

    splits, steps, record_bytes = map(int, sys.argv[2:])
    random = np.random.default_rng(5)
    made = [0.0, 0.0]  # wall and CPU seconds

    def summaries() -> Iterator[ChunkTimes]:
        for index in range(CHUNKS):
            begin = time.perf_counter(), time.process_time()
            chunk = summary(index, *(steps * at // CHUNKS for at in (index, index + 1)))
            made[0] += time.perf_counter() - begin[0]
            made[1] += time.process_time() - begin[1]
            yield chunk

    def summary(index: int, first: int, stop: int) -> ChunkTimes:
        ticks = np.arange(first + 1, stop + 1) * INTERVAL_MS
        records = np.empty((splits, len(ticks), 2), np.int64)
        records[:, :, 0] = 2 * ticks
        records[:, :, 1] = ticks - random.integers(0, INTERVAL_MS, (splits, len(ticks)), np.int32)
        same = {
            "events": len(ticks) * 10,
            "regressions": 0,
            "first_arrival_ms": ticks[0] - INTERVAL_MS + 1,
            "recorded_arrival_ms": ticks[-1],
            "last_arrival_ms": ticks[-1],
            "n_records": len(ticks),
        }
        times = {name: np.full(splits, value) for name, value in same.items()}
        times |= {"min_timestamp_ms": records[:, 0, 1].copy(), "max_timestamp_ms": records[:, -1, 1].copy()}
        rows = times["events"]
        floors = {"rows": np.array([rows.sum()]), "arrival_ms": times["first_arrival_ms"][:1]}
        return ChunkTimes(
            index, list(range(splits)), rows, rows, times, records.reshape(-1), floors, int(rows.sum())
        )

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    wall, cpu = time.perf_counter(), time.process_time()
    limits = MergeLimits(record_bytes=record_bytes)
    plane = combine(summaries(), GeneratorSpec(0, 60_000), INTERVAL_MS, limits=limits)
    wall, cpu = time.perf_counter() - wall - made[0], time.process_time() - cpu - made[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps([wall, cpu, peak, before, len(plane.timeline.clock_ms)]))
