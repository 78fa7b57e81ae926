"""One job in several forms: count a key's elements until it was quiet for three seconds.

Every element deletes the timer of its key and registers it again, so that one fires only where a key falls silent; then
the count goes out and the key's state is cleared. All forms put out the same rows. Of timers that are due at the same
time the loop takes that of the least key first, the others the one that was registered first.
"""

from __future__ import annotations

import heapq
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.cached_log import CACHE
from benchmarks.job_plans import planned
from flinkcore.common import WatermarkStrategy
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from flinkcore.datastream.functions import (
    BatchResults,
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    Results,
    RuntimeContext,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.process_operators import KeyedProcessOperator
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

EXAMPLE = Path(__file__).parents[1] / "flinkcore" / "examples" / "native_inactivity"

GAP_MS = 3_000
EVENTS_PER_MS = 10
WATERMARK_INTERVAL_MS = 200
BETWEEN_WATERMARKS = EVENTS_PER_MS * WATERMARK_INTERVAL_MS

Row = tuple[int, int]
"""A key and how many elements it had."""


@dataclass(frozen=True)
class Clicks:
    """Events of random keys in order of time; the watermark follows every 200 ms, as it does in Flink."""

    events: int
    keys: int
    seed: int = 5

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(self.seed)
        return random.integers(0, self.keys, self.events), np.arange(self.events) // EVENTS_PER_MS

    def elements(self) -> list[tuple[tuple[int, int], int]]:
        """Pairs of an element, whose first part is its key, and its timestamp."""
        keys, timestamps_ms = (column.tolist() for column in self.columns())
        return [((key, timestamp), timestamp) for key, timestamp in zip(keys, timestamps_ms, strict=True)]

    def batches(self) -> list[pa.RecordBatch]:
        """The events between two watermarks each."""
        keys, timestamps_ms = self.columns()
        whole = pa.record_batch({"key": keys, "timestamp_ms": timestamps_ms})
        return [whole.slice(first, BETWEEN_WATERMARKS) for first in range(0, self.events, BETWEEN_WATERMARKS)]


# ---- a loop ------------------------------------------------------------------------------------------------


def bare_loop(elements: list[tuple[tuple[int, int], int]]) -> list[Row]:
    """A dict and heapq; a deleted timer stays in the heap, and is known by the key's state when it comes."""
    counts: dict[int, Row] = {}
    timers: list[Row] = []
    rows: list[Row] = []
    for first in range(0, len(elements), BETWEEN_WATERMARKS):
        for element, timestamp_ms in elements[first : first + BETWEEN_WATERMARKS]:
            key = element[0]
            held = counts.get(key)
            timer_ms = timestamp_ms + GAP_MS
            counts[key] = (1 if held is None else held[0] + 1, timer_ms)
            heapq.heappush(timers, (timer_ms, key))
        watermark_ms = timestamp_ms - 1
        while timers and timers[0][0] <= watermark_ms:
            timer_ms, key = heapq.heappop(timers)
            held = counts.get(key)
            if held is not None and held[1] == timer_ms:
                rows.append((key, held[0]))
                del counts[key]
    return rows


# ---- a process function ------------------------------------------------------------------------------------


class CountUntilQuiet(KeyedProcessFunction):
    """The job as a user of PyFlink writes it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("count and timer"))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Results:
        timers = ctx.timer_service()
        held = self._state.value()
        if held is None:
            count = 1
        else:
            count = held[0] + 1
            timers.delete_event_time_timer(held[1])
        timer_ms = ctx.timestamp() + GAP_MS
        timers.register_event_time_timer(timer_ms)
        self._state.update((count, timer_ms))
        return None

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Results:
        yield ctx.get_current_key(), self._state.value()[0]
        self._state.clear()


class Rows:
    """An output that keeps values of records."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def collect(self, record: StreamRecord[Any]) -> None:
        self.values.append(record.value)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        raise AssertionError(output_tag)

    def emit_watermark(self, watermark: Watermark) -> None:
        pass

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        pass

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        pass


def process_function(elements: list[tuple[tuple[int, int], int]]) -> list[Row]:
    """The operator of process functions, fed with records one by one."""
    output, clock = Rows(), DrivenProcessingTimeService(0)
    state = KeyedStateBackend(KeyContext(), clock)
    operator = KeyedProcessOperator(CountUntilQuiet(), lambda element: element[0], output, state, clock)
    operator.open(StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(state)))
    process_element = operator.process_element
    for first in range(0, len(elements), BETWEEN_WATERMARKS):
        for element, timestamp_ms in elements[first : first + BETWEEN_WATERMARKS]:
            process_element(StreamRecord(element, timestamp_ms))
        operator.process_watermark(Watermark(timestamp_ms - 1))
    return output.values


# ---- over batches -------------------------------------------------------------------------------------------


class CountBatchesUntilQuiet(KeyedBatchProcessFunction):
    """The job over batches of elements and timers of many keys."""

    min_event_time_delay_ms = GAP_MS

    def open(self, runtime_context: RuntimeContext) -> None:
        self._counts = runtime_context.get_column_state("count", np.int64)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> None:
        np.add.at(self._counts.array, elements.key_ids, 1)
        last = elements.last_of_keys()
        key_ids = elements.key_ids[last]
        timers = ctx.timer_service()
        timers.delete_event_time_timers(key_ids)
        timers.register_event_time_timers(key_ids, elements.timestamps[last] + GAP_MS)

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> BatchResults:
        yield {
            "key": timers.keys["key"],
            "count": self._counts[timers.key_ids],
            "fired": timers.timestamps,
        }
        self._counts.clear(timers.key_ids)


# ---- replays -------------------------------------------------------------------------------------------------


def keyed_log(clicks: Clicks) -> KeyedStream:
    """The events as an Arrow table, by key, to be replayed in one thread.

    An event arrives 1 ms after its timestamp, so that a tick of the replay clock sees those that the others see.
    """
    keys, timestamps_ms = clicks.columns()
    log = pa.table({"key": keys, "ts": timestamps_ms, "at": timestamps_ms + 1})
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(WATERMARK_INTERVAL_MS)
    return (
        env.from_event_log(log, timestamp="ts", arrival="at")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("key")
    )


def replay(clicks: Clicks) -> Callable[[], list[Row]]:
    """A replay of the process function; what the end of the log fires is left out."""
    schema = pa.schema({"key": pa.int64(), "count": pa.int64()})
    stream = keyed_log(clicks).process(CountUntilQuiet(), schema, timestamp_column="fired")
    job = planned(lambda: stream, "embedded replay, parallelism 1,", ways={"columnar", "rows"})
    return lambda: rows_fired(job(), clicks)


def replay_of_batches(clicks: Clicks) -> Callable[[], list[Row]]:
    """The same with the function over batches."""
    schema = pa.schema({"key": pa.int64(), "count": pa.int64(), "fired": pa.int64()})
    stream = keyed_log(clicks).process(CountBatchesUntilQuiet(), schema)
    job = planned(lambda: stream, "embedded replay, parallelism 1,", "called for batches of rows and timers")
    return lambda: rows_fired(job(), clicks)


def rows_fired(stream: DataStream, clicks: Clicks) -> list[Row]:
    """Run a job; its rows but for those that the end of the log fires."""
    last_watermark_ms = (clicks.events - 1) // EVENTS_PER_MS - 1
    fired = stream.to_arrow().filter(pc.field("fired").cast(pa.int64()) <= last_watermark_ms)
    return list(zip(fired["key"].to_pylist(), fired["count"].to_pylist(), strict=True))


# ---- Cython ------------------------------------------------------------------------------------------------


def native_example() -> ModuleType:
    """The module of flinkcore/examples/native_inactivity, built for the flinkcore that is imported here."""
    import flinkcore

    folder = CACHE / "native_inactivity"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("*.so", "*.c", "build"))
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    installed = str(Path(flinkcore.__file__).parents[1])
    subprocess.run(build, cwd=folder, env=os.environ | {"PYTHONPATH": installed}, check=True)
    (built,) = folder.glob("inactivity.*.so")
    spec = importlib.util.spec_from_file_location("inactivity", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def native_batches(example: ModuleType, batches: list[pa.RecordBatch], last_ms: list[int]) -> list[Row]:
    """The example's kernel, a call per batch and per watermark."""
    counts = example.InactivityCounts(batches[0].schema, ["key"], "timestamp_ms", GAP_MS)
    fired = []
    for batch, timestamp_ms in zip(batches, last_ms, strict=True):
        counts.process(batch)
        fired.append(counts.advance(timestamp_ms - 1))
    keys = pa.record_batch(counts.key_columns())["key"].to_numpy()
    key_ids, _, numbers = (np.concatenate(columns) for columns in zip(*fired, strict=True))
    return list(zip(keys[key_ids].tolist(), numbers.tolist(), strict=True))
