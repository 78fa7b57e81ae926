"""The valve and the watermark generators, per watermark and per event.

The valve's baselines are what one writes without a library: a list of watermarks, or a numpy array, and its
minimum for every watermark. They put out the same, but know neither statuses nor alignment, and so do less.
With many channels they get the first watermarks only: what one costs does not change over the run. The
generators' baseline is numpy's running maximum, for one split and without idleness. All run in this process.
`FLINKCORE_BENCH_EVENTS` sets the number of events (4 M); there are a quarter as many watermarks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.measuring import measure
from benchmarks.sizes import size
from flinkcore._native.event_log import order_events, rows_by_split
from flinkcore._native.time_summary import TimeSummary
from flinkcore._native.valve import StatusWatermarkValve
from flinkcore.time_plane.chunk_times import ChunkTimes
from flinkcore.time_plane.combine_times import combine
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.log_records import LogRecords
from flinkcore.time_plane.record_blocks import DEFAULT_LIMITS, RecordBlock

EVENTS = size(4_000_000)
WATERMARKS = EVENTS // 4
BATCH_ROWS = 1 << 17
MIN_TIMESTAMP = -(2**63)

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


# ---- valve -----------------------------------------------------------------------------------------------


def watermarks(channels: int) -> Columns:
    """Channels in random order, each advancing with the clock of the log, out of step with the others."""
    random = np.random.default_rng(7)
    timestamps = np.arange(WATERMARKS) * 10 + random.integers(0, 10 * channels, WATERMARKS)
    return (
        random.integers(0, channels, WATERMARKS).astype(np.int32),
        np.zeros(WATERMARKS, np.int8),
        timestamps,
    )


def with_a_list(channels: int, rows: list[tuple[int, int]]) -> list[int]:
    last, current, emitted = [MIN_TIMESTAMP] * channels, MIN_TIMESTAMP, []
    for channel, timestamp in rows:
        if timestamp > last[channel]:
            last[channel] = timestamp
            minimum = min(last)
            if minimum > current:
                current = minimum
                emitted.append(current)
    return emitted


def with_numpy(channels: int, rows: list[tuple[int, int]]) -> list[int]:
    last, current, emitted = np.full(channels, MIN_TIMESTAMP), MIN_TIMESTAMP, []
    for channel, timestamp in rows:
        if timestamp > last[channel]:
            last[channel] = timestamp
            minimum = last.min()
            if minimum > current:
                current = int(minimum)
                emitted.append(current)
    return emitted


def one_by_one(channels: int, rows: list[tuple[int, int]]) -> list[int]:
    valve, emitted = StatusWatermarkValve(channels), []
    for channel, timestamp in rows:
        emitted += (merged for _, merged in valve.input_watermark(channel, timestamp))
    return emitted


SIDES = {"list": with_a_list, "numpy": with_numpy, "native-single": one_by_one}
_ns: dict[tuple[str, int], float] = {}


@pytest.mark.benchmark(group="valve")
@pytest.mark.parametrize("channels", [1, 100, 10_000])
@pytest.mark.parametrize("side", [*SIDES, "native-batch"])
def test_valve(benchmark: Any, side: str, channels: int) -> None:
    columns = watermarks(channels)
    if side == "native-batch":
        count = WATERMARKS
        measure(
            benchmark,
            count,
            "watermark",
            lambda valve: valve.input_batch(*columns),
            lambda: StatusWatermarkValve(channels),
        )
    else:
        count = min(100_000, 20_000_000 // channels) if side == "list" else 100_000
        rows = list(zip(columns[0][:count].tolist(), columns[2][:count].tolist(), strict=True))
        emitted = measure(benchmark, count, "watermark", lambda: SIDES[side](channels, rows))
        expected = StatusWatermarkValve(channels).input_batch(*(column[:count] for column in columns))[2]
        assert emitted == expected.tolist()
    if benchmark.stats:
        _ns[side, channels] = benchmark.extra_info["ns_per_watermark"]
        if side.startswith("native"):
            for baseline in ("list", "numpy"):
                if (baseline, channels) in _ns:
                    ratio = _ns[baseline, channels] / _ns[side, channels]
                    benchmark.extra_info[f"times_faster_than_{baseline}"] = ratio


# ---- generators ------------------------------------------------------------------------------------------


def log(splits: int) -> Columns:
    """Splits, arrivals and timestamps: 100 events per ms of random splits, out of order by up to 4 s."""
    random = np.random.default_rng(11)
    arrivals = np.arange(EVENTS) // 100
    timestamps = arrivals - random.integers(0, 4_000, EVENTS)
    return random.integers(0, splits, EVENTS).astype(np.int32), arrivals, timestamps


def summary(splits: int, interval_ms: int = 200) -> TimeSummary:
    made = TimeSummary(interval_ms=interval_ms, idleness_ms=5_000, steps=True)
    made.reserve(splits)
    return made


def update(
    made: TimeSummary, codes: np.ndarray, numbers: np.ndarray, arrivals: np.ndarray, timestamps: np.ndarray
) -> None:
    """As a chunk is read: batch by batch, of each the events of a split together."""
    for start in range(0, len(codes), BATCH_ROWS):
        batch = slice(start, start + BATCH_ROWS)
        times = arrivals[batch], timestamps[batch]
        if len(numbers) == 1:
            made.update(numbers, np.array([0, len(times[0])]), *times)
        else:
            made.update(numbers, *rows_by_split(codes[batch], len(numbers), *times, None))


@pytest.mark.benchmark(group="watermark generators")
@pytest.mark.parametrize("interval_ms", [200, 1])
@pytest.mark.parametrize("splits", [1, 10, 100, 1_000, 10_000])
def test_generators(benchmark: Any, splits: int, interval_ms: int) -> None:
    codes, arrivals, timestamps = log(splits)
    numbers = np.arange(splits, dtype=np.int32)
    measure(
        benchmark,
        EVENTS,
        "event",
        lambda made: update(made, codes, numbers, arrivals, timestamps),
        lambda: summary(splits, interval_ms),
    )


@pytest.mark.benchmark(group="watermark generators")
def test_generator_with_numpy(benchmark: Any) -> None:
    _, arrivals, timestamps = log(1)

    def run() -> np.ndarray:
        ticks = np.arange(0, arrivals[-1] + 200, 200)
        return np.maximum.accumulate(timestamps)[np.searchsorted(arrivals, ticks, side="right") - 1]

    measure(benchmark, EVENTS, "event", run)


@pytest.mark.benchmark(group="total order")
@pytest.mark.parametrize("splits", [1, 100, 10_000])
def test_order_of_events(benchmark: Any, splits: int) -> None:
    codes, arrivals, _ = log(splits)
    numbers, positions = np.arange(splits, dtype=np.int32), np.arange(EVENTS)
    bases = np.zeros(splits, np.int64)
    measure(
        benchmark,
        EVENTS,
        "event",
        lambda running: order_events(arrivals, positions, codes, numbers, numbers, bases, running),
        lambda: np.full(splits, MIN_TIMESTAMP),
    )


@pytest.mark.benchmark(group="timeline")
@pytest.mark.parametrize("splits", [1, 100, 1_000])
def test_combine(benchmark: Any, splits: int) -> None:
    """A log in which most events are a step of their split: little but steps to combine, in eight chunks."""
    random = np.random.default_rng(13)
    arrivals = np.arange(EVENTS) * 200 // splits
    timestamps, codes = (
        arrivals - random.integers(0, 50, EVENTS),
        random.integers(0, splits, EVENTS).astype(np.int32),
    )
    numbers, rows = np.arange(splits, dtype=np.int32), np.zeros(splits, np.int64)
    steps, chunks, records = 0, [], LogRecords(200, DEFAULT_LIMITS)
    for index, part in enumerate(np.array_split(np.arange(EVENTS), 8)):
        made = summary(splits)
        update(made, codes[part], numbers, arrivals[part], timestamps[part])
        floors = {"rows": np.array([len(part)]), "arrival_ms": arrivals[part[:1]]}
        block = RecordBlock(*made.take())
        records.add(index, block)
        steps += len(block) + len(block.tick_ms)
        times = made.finish()
        times["least_arrival_ms"] = times["first_arrival_ms"]
        chunks.append(ChunkTimes(index, list(range(splits)), rows, rows, times, floors, len(part)))
    measure(benchmark, steps, "step", lambda: combine(chunks, records, GeneratorSpec(4_000, 5_000), 200))
