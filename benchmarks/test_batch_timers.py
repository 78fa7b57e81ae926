"""Timers of functions over batches: by key, as they are kept, against the timer heap, in three shapes.

A `KeyedBatchProcessFunction` gets one timer of a key at a time, and its batches are cut where a timer of their own key
is due: for each element it is asked when the next timer of that key comes, and never which timer of all keys is next.
`KeyTimers` has the first timer of each key in a column and finds due keys by reading it; no order across keys is kept.
`TimerHeap`, where timers of row functions and of operators live, orders all of them, as those fire one by one across
keys: a timer costs a place in the heap and one in the map of its key group, even if it is replaced before it is due.
That shows where timers are replaced and where few keys set the same timer again; where most timers fire, the two cost
about the same.

The heap does not have to do here what it cannot: nobody asks it for the timers of one key, `replaced` names the timer
to delete, and one call takes all that are due. Functions over batches need the timers by key besides.

A heap of keys was tried in place of both: the first timer of each key in a column, the others in a sorted list, and in
the heap an entry per key that is put right only when it is due. It needed 1.5 to 2.3 times the CPU time of `KeyTimers`
in these shapes, and three times that of `TimerHeap` to register a million random timers, which a map finds by one look.

Caveats: they are of the stores alone. Of a replay over batches timers are a tenth to a quarter.
Compared are CPU times; a round includes the growth of an empty store, on both sides. `FLINKCORE_BENCH_EVENTS` sets
the number of events (1 M).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.measuring import measure
from benchmarks.sizes import size
from flinkcore._native.key_timers import KeyTimers
from flinkcore._native.timers import TimerHeap

EVENTS = size(1_000_000)
EVENTS_PER_MS = 10
BATCH_ROWS = 32_768
GAP_MS = 3_000
WINDOW_MS = 10_000
SPREAD_MS = 2_000
KEY_GROUPS = 128
SHAPES = ("replaced", "window", "many")

Fired = tuple[int, int]
"""Number of timers that fired, and the sum of their times."""

_cpu_ns: dict[tuple[str, int, str], float] = {}
_fired: dict[tuple[str, int], Fired] = {}


@dataclass(frozen=True)
class Batch:
    """Timers to register, those to delete before (or none), and the watermark that follows."""

    keys: np.ndarray
    key_groups: np.ndarray
    times_ms: np.ndarray
    replaced_ms: np.ndarray | None
    watermark_ms: int


def batches(shape: str, n_keys: int) -> Iterator[Batch]:
    """Timers that elements of random keys register: one that the key's next one replaces, per window, or each."""
    random = np.random.default_rng(5)
    last_ms = np.zeros(n_keys, np.int64)
    for first in range(0, EVENTS, BATCH_ROWS):
        times_ms = np.arange(first, min(first + BATCH_ROWS, EVENTS)) // EVENTS_PER_MS
        keys = random.integers(0, n_keys, len(times_ms))
        watermark_ms = int(times_ms[-1]) - 1
        replaced_ms = None
        if shape == "replaced":
            keys, from_end = np.unique(keys[::-1], return_index=True)
            times_ms = times_ms[::-1][from_end] + GAP_MS
            replaced_ms = last_ms[keys]
            last_ms[keys] = times_ms
        elif shape == "window":
            times_ms = times_ms - times_ms % WINDOW_MS + WINDOW_MS
        else:
            times_ms = times_ms + GAP_MS + random.integers(0, SPREAD_MS, len(times_ms))
        yield Batch(keys, (keys % KEY_GROUPS).astype(np.int32), times_ms, replaced_ms, watermark_ms)


class Store(Protocol):
    """Timers of one domain."""

    def register(self, batch: Batch) -> None: ...

    def fire(self, watermark_ms: int) -> Fired: ...


class ByKey:
    """As functions over batches use them: the first timer of each key that is due, again and again."""

    def __init__(self, n_keys: int) -> None:
        self.timers = KeyTimers()
        self.timers.grow(n_keys)

    def register(self, batch: Batch) -> None:
        if batch.replaced_ms is not None:
            self.timers.delete_all(batch.keys)
        self.timers.register(batch.keys, batch.times_ms)

    def fire(self, watermark_ms: int) -> Fired:
        count = total = 0
        keys = self.timers.due_keys(watermark_ms)
        while len(keys):
            times_ms, exist = self.timers.first(keys)
            due = exist & (times_ms <= watermark_ms)
            keys, times_ms = keys[due], times_ms[due]
            self.timers.poll(keys)
            count += len(keys)
            total += int(times_ms.sum())
        return count, total


class OnHeap:
    """The batch verbs of the heap."""

    def __init__(self, n_keys: int) -> None:
        self.timers = TimerHeap(KEY_GROUPS)

    def register(self, batch: Batch) -> None:
        if batch.replaced_ms is not None:
            self.timers.delete(self._timers(batch, batch.replaced_ms))
        self.timers.register(self._timers(batch, batch.times_ms))

    def fire(self, watermark_ms: int) -> Fired:
        fired = pa.record_batch(self.timers.advance(watermark_ms))
        return fired.num_rows, int(fired["timestamp_ms"].to_numpy().sum())

    def _timers(self, batch: Batch, times_ms: np.ndarray) -> pa.RecordBatch:
        columns = {
            "timestamp_ms": times_ms,
            "key": batch.keys,
            "key_group": batch.key_groups.astype(np.int32),
        }
        return pa.record_batch(columns | {"namespace": np.zeros(len(times_ms), np.int64)})


STORES: dict[str, Callable[[int], Store]] = {"heap": OnHeap, "by-key": ByKey}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("n_keys", [10_000, 300_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_timers_of_functions_over_batches(benchmark: Any, shape: str, n_keys: int, store: str) -> None:
    benchmark.group = f"timers of batches, {shape}, {n_keys:,} keys"
    todo = list(batches(shape, n_keys))

    def run() -> Fired:
        timers = STORES[store](n_keys)
        count = total = 0
        for batch in todo:
            timers.register(batch)
            fired = timers.fire(batch.watermark_ms)
            count, total = count + fired[0], total + fired[1]
        return count, total

    fired = measure(benchmark, sum(len(batch.keys) for batch in todo), "timer", run)
    assert fired == _fired.setdefault((shape, n_keys), fired)
    _cpu_ns[shape, n_keys, store] = benchmark.extra_info["cpu_ns_per_timer"]
    if (shape, n_keys, "heap") in _cpu_ns and store != "heap":
        faster = _cpu_ns[shape, n_keys, "heap"] / _cpu_ns[shape, n_keys, store]
        benchmark.extra_info["times_faster_than_heap"] = round(faster, 1)
