"""TimerHeap's batch verbs against Flink's HeapPriorityQueueSet and Python's heapq.

Caveats: Flink's side handles a timer per call, as its InternalTimerServiceImpl does, and ours
whole record batches. These show what the heap itself costs. Jobs register batches that come from a checkpoint; their
functions and operators, also the native ones, register, delete and take the timers of this heap one at a time.
`test_single_verbs` shows what a timer at a time costs from Python, `test_inactivity.py` what it costs in a job.
Timestamps are distinct and in random order, the worst case for a heap; a stream's are closer to ascending.
heapq runs at a smaller size, which flatters it. `add` includes the growth of an empty heap, on all sides.
The best round counts, on all sides.

`FLINKCORE_BENCH_EVENTS` sets the number of timers (1 M), of which the smaller size has a quarter; memory is
measured with 2.5 times as many, and at least with a million. Flink's JVM has a heap of 1,536 bytes per timer (1.5 GB).
"""

import heapq
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.peers.flink import FlinkUnavailable, run_java
from benchmarks.sizes import jvm_mib, size
from flinkcore._native.timers import TimerHeap

TIMERS = size(1_000_000)
SIZES = (TIMERS // 4, TIMERS)
HEAPQ_SIZE = min(TIMERS, 200_000)
FEWEST_TIMERS_MEASURED = 1_000_000  # of fewer, batches and NumPy take much of the memory
JVM_BYTES_PER_TIMER = 1_536
JVM_HEAP = f"{jvm_mib(max(256, TIMERS * JVM_BYTES_PER_TIMER >> 20))}m"
BATCH_ROWS = 65_536
WATERMARKS = 1_000
KEY_GROUPS = 128
VERBS = ("add", "duplicate_add", "remove", "poll")

NAMES = ("timestamp_ms", "key", "key_group", "namespace")

Columns = tuple[np.ndarray, ...]


def timer_columns(n: int) -> Columns:
    """Distinct timestamps in random order, keys drawn from n, 10 s windows as namespaces."""
    rng = np.random.default_rng(7)
    timestamps_ms = 1_600_000_000_000 + 7 * rng.permutation(n)
    keys = rng.integers(0, n, n)
    key_groups = (keys * 2_654_435_761 % 2**32 % KEY_GROUPS).astype(np.int32)
    return timestamps_ms, keys, key_groups, timestamps_ms - timestamps_ms % 10_000


def batches(columns: Columns) -> Iterator[pa.RecordBatch]:
    timers = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), NAMES)
    for first in range(0, timers.num_rows, BATCH_ROWS):
        yield timers.slice(first, BATCH_ROWS)


class Verbs:
    """A heap filled or empty, as each verb needs it, and the verb over all n timers."""

    def __init__(self, n: int) -> None:
        self.columns = timer_columns(n)
        order = np.random.default_rng(8).permutation(n)
        self.shuffled = tuple(column[order] for column in self.columns)
        first, last = self.columns[0].min(), self.columns[0].max()
        self.watermarks_ms = np.linspace(first, last, WATERMARKS).astype(np.int64).tolist()

    def heap(self, filled: bool) -> TimerHeap:
        timers = TimerHeap(KEY_GROUPS)
        if filled:
            for batch in batches(self.columns):
                timers.register(batch)
        return timers

    def add(self, timers: TimerHeap) -> int:
        return sum(pa.array(timers.register(batch)).true_count for batch in batches(self.columns))

    def duplicate_add(self, timers: TimerHeap) -> int:
        return sum(pa.array(timers.register(batch)).false_count for batch in batches(self.shuffled))

    def remove(self, timers: TimerHeap) -> int:
        return sum(pa.array(timers.delete(batch)).true_count for batch in batches(self.shuffled))

    def poll(self, timers: TimerHeap) -> int:
        return sum(len(timers.advance(watermark_ms)) for watermark_ms in self.watermarks_ms)

    def poll_all(self, timers: TimerHeap) -> int:
        return len(timers.advance(2**63 - 1))


@pytest.fixture(scope="module", params=SIZES)
def verbs(request: pytest.FixtureRequest) -> Verbs:
    return Verbs(request.param)


@pytest.fixture(scope="module")
def flink() -> dict[int, dict[str, float]] | str:
    """Flink's ns per timer by size and verb, or the reason why it is missing."""
    try:
        options = (f"-Xms{JVM_HEAP}", f"-Xmx{JVM_HEAP}", "-XX:+UseParallelGC")
        output = run_java("TimerQueueBenchmark", "4", *map(str, SIZES), options=options)
    except FlinkUnavailable as reason:
        return str(reason)
    return {line["timers"]: line for line in map(json.loads, output.splitlines())}


@pytest.fixture(scope="module")
def heapq_ns() -> dict[str, float]:
    """heapq with a set of live timers: a removed one stays in the heap until it is popped."""
    timestamps_ms, keys, _, namespaces = timer_columns(HEAPQ_SIZE)
    timers = list(zip(timestamps_ms.tolist(), keys.tolist(), namespaces.tolist(), strict=True))
    shuffled = [timers[i] for i in np.random.default_rng(8).permutation(HEAPQ_SIZE)]
    heap: list[tuple[int, int, int]] = []
    live: set[tuple[int, int, int]] = set()

    def add(rows: list[tuple[int, int, int]]) -> None:
        for row in rows:
            if row not in live:
                live.add(row)
                heapq.heappush(heap, row)

    def poll() -> None:
        while heap:
            live.discard(heapq.heappop(heap))

    def remove() -> None:
        for row in shuffled:
            live.discard(row)

    def nanoseconds(verb: Callable[..., None], *arguments: object) -> float:
        started = time.perf_counter_ns()
        verb(*arguments)
        return (time.perf_counter_ns() - started) / HEAPQ_SIZE

    figures = {
        "add": nanoseconds(add, timers),
        "duplicate_add": nanoseconds(add, shuffled),
        "poll": nanoseconds(poll),
    }
    add(timers)
    return figures | {"remove": nanoseconds(remove)}


def report(
    benchmark: Any, n: int, verb: str, flink: dict[int, dict[str, float]] | str, heapq_ns: dict[str, float]
) -> None:
    ours = benchmark.stats.stats.min / n * 1e9
    benchmark.extra_info["timers"] = n
    benchmark.extra_info["ns_per_timer"] = round(ours, 1)
    benchmark.extra_info["heapq_ns_per_timer"] = round(heapq_ns[verb], 1)
    benchmark.extra_info["times_faster_than_heapq"] = round(heapq_ns[verb] / ours, 1)
    if isinstance(flink, str):
        benchmark.extra_info["flink"] = flink
    else:
        benchmark.extra_info["flink_ns_per_timer"] = flink[n][verb]
        benchmark.extra_info["times_faster_than_flink"] = round(flink[n][verb] / ours, 1)


@pytest.mark.parametrize("verb", [*VERBS, "poll_all"])
def test_batch_verbs(
    benchmark: Any,
    verbs: Verbs,
    verb: str,
    flink: dict[int, dict[str, float]] | str,
    heapq_ns: dict[str, float],
) -> None:
    n = len(verbs.columns[0])
    done = benchmark.pedantic(
        getattr(verbs, verb), setup=lambda: ((verbs.heap(filled=verb != "add"),), {}), rounds=4, iterations=1
    )
    assert done == n
    report(benchmark, n, "poll" if verb == "poll_all" else verb, flink, heapq_ns)


def test_single_verbs(benchmark: Any) -> None:
    """A Python call per timer: add all, poll all."""
    columns = timer_columns(HEAPQ_SIZE)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))

    def add_and_poll() -> None:
        timers = TimerHeap(KEY_GROUPS)
        for row in rows:
            timers.add(*row)
        while timers.poll():
            pass

    benchmark.pedantic(add_and_poll, rounds=3, iterations=1)
    benchmark.extra_info["ns_per_timer"] = round(benchmark.stats.stats.min / len(rows) * 1e9, 1)


def test_flinks_queue_was_measured(flink: dict[int, dict[str, float]] | str) -> None:
    if isinstance(flink, str):
        pytest.skip(flink)
    assert set(flink) == set(SIZES)


def peak_memory() -> int:
    """Bytes resident at this process's peak so far; ru_maxrss would count the parent's before exec."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def fill(n: int) -> None:
    """Registers n timers and prints the bytes per timer by which the process grew at its peak."""
    rng = np.random.default_rng(7)
    TimerHeap().register(next(batches(timer_columns(1))))
    before = peak_memory()
    timers = TimerHeap(KEY_GROUPS)
    while len(timers) < n:
        keys = rng.integers(0, n, min(BATCH_ROWS // 8, n - len(timers)))  # batches take memory, too
        timestamps_ms = rng.integers(0, 2**40, len(keys))
        columns = (
            timestamps_ms,
            keys,
            (keys % KEY_GROUPS).astype(np.int32),
            timestamps_ms - timestamps_ms % 10_000,
        )
        timers.register(pa.RecordBatch.from_arrays(list(map(pa.array, columns)), NAMES))
    print((peak_memory() - before) / n)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_of_timers(benchmark: Any) -> None:
    command = [sys.executable, __file__, str(max(TIMERS * 5 // 2, FEWEST_TIMERS_MEASURED))]
    options = {
        "capture_output": True,
        "text": True,
        "env": os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    }
    done = benchmark.pedantic(subprocess.run, (command,), options, rounds=1)
    assert done.returncode == 0, done.stderr
    benchmark.extra_info["bytes_per_timer"] = round(float(done.stdout), 1)
    assert 0 < float(done.stdout) <= 80


if __name__ == "__main__":
    fill(int(sys.argv[1]))
