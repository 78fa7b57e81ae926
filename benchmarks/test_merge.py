"""The merge of many splits into one timeline: time per step of a split, and peak memory against their number.

The summaries of the chunks are more than may stay in memory, and so go through a temporary file. What grows with the
steps is the timeline, and a few numbers for each split of a chunk: four times the steps take little more memory.
`FLINKCORE_BENCH_EVENTS` sets the number of steps of all splits together (20 M), of which each has up to 2,000; or
`FLINKCORE_BENCH_SPLITS` (10,000), `FLINKCORE_BENCH_STEPS` (500,2000) and `FLINKCORE_BENCH_CHUNKS` (100) do. 1,000
splits, 432000 steps and 333 chunks are a day of a month in 10,000 chunks.

`test_merge_by_ranges` does it as driver and executors of Spark do, with two processes as executors.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest

from benchmarks.measuring import median_run, reported_clock, reported_rounds
from benchmarks.merge_process import merge_in_process
from benchmarks.processes import found_by
from benchmarks.sizes import size

SPLITS = int(os.environ.get("FLINKCORE_BENCH_SPLITS", max(100, size(20_000_000) // 2_000)))
STEPS = [int(steps) for steps in os.environ.get("FLINKCORE_BENCH_STEPS", "500,2000").split(",")]
CHUNKS = int(os.environ.get("FLINKCORE_BENCH_CHUNKS", 100))
RECORD_BYTES = 8 << 20
WORKERS = 2

_peaks: dict[int, int] = {}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.benchmark(group=f"merge of {SPLITS:,} splits", timer=reported_clock)
def test_merge(benchmark: Any, steps: int) -> None:
    merges = reported_rounds(benchmark, lambda: merge_in_process(SPLITS, steps, CHUNKS, RECORD_BYTES))
    peak = max(merge.peak_bytes for merge in merges)
    assert peak <= 1.5 * _peaks.setdefault(SPLITS, peak)
    median = median_run(merges)
    benchmark.extra_info |= {
        "splits": SPLITS,
        "steps": steps,
        "timeline_steps": median.timeline_steps,
        "ns_per_step": median.seconds / (SPLITS * steps) * 1e9,
        "cpu_ns_per_step": median.cpu_seconds / (SPLITS * steps) * 1e9,
        "packed_bytes_per_step": median.packed_bytes / (SPLITS * steps),
        "peak_mib": peak / 2**20,
        "mib_before": max(merge.bytes_before for merge in merges) / 2**20,
    }


@pytest.mark.benchmark(group=f"merge by ranges of {SPLITS:,} splits")
def test_merge_by_ranges(benchmark: Any) -> None:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    arguments = SPLITS, STEPS[-1], CHUNKS, RECORD_BYTES, WORKERS
    found = benchmark.pedantic(found_by, ("benchmarks.ranges_process", *arguments), rounds=1)
    names = (
        "driver_cpu_seconds",
        "driver_bytes",
        "worker_bytes",
        "ranges",
        "timeline_steps",
        "timeline_bytes",
    )
    benchmark.extra_info |= {
        "splits": SPLITS,
        "steps": STEPS[-1],
        "chunks": CHUNKS,
        **dict(zip(names, found, strict=True)),
    }
