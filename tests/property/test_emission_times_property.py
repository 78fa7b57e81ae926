"""What `emitted_at` means: a row is among the results of the log cut behind that arrival, and of none cut before."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from equipment.example_counts import examples
from equipment.memory_disk import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import Duration, Row, Time, Watermark, WatermarkGenerator, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.functions import ProcessJoinFunction, ProcessWindowFunction
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

Job = Callable[[KeyedStream], DataStream]


class Told(KeyedProcessFunction):
    """Gives what the clock shows at elements and at timers of both kinds."""

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        timers.register_event_time_timer(value.ts + value.n)
        timers.register_processing_time_timer(timers.current_processing_time() + 3 * value.n)
        yield value.key, value.n, timers.current_processing_time()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), -timestamp, ctx.timer_service().current_processing_time()


class ToldInBatches(KeyedBatchProcessFunction):
    """Does so over batches."""

    min_event_time_delay_ms = 0
    min_processing_time_delay_ms = 0

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        timers, numbers = ctx.timer_service(), elements["n"].to_numpy()
        timers.register_event_time_timers(elements.key_ids, elements.timestamps + numbers)
        timers.register_processing_time_timers(elements.key_ids, elements.processing_times + 3 * numbers)
        yield from self.told(elements, elements["key"].to_numpy(), numbers)

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        yield from self.told(timers, timers.keys["key"].to_numpy(), -timers.timestamps)

    def told(self, subject: Any, keys: Any, numbers: Any) -> Iterator[Any]:
        yield subject.results({"key": keys, "n": numbers, "clock": subject.processing_times})


class ToldByKeys(ToldInBatches):
    """Gives them key by key, in two parts."""

    def told(self, subject: Any, keys: Any, numbers: Any) -> Iterator[Any]:
        rows = np.argsort(subject.key_ids, kind="stable")
        for half in np.array_split(rows, 2):
            clock = subject.processing_times[half]
            yield subject.results({"key": keys[half], "n": numbers[half], "clock": clock}, half)


class Clock(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield key, len(list(elements)), context.current_processing_time()


class Pair(ProcessJoinFunction[Row, Row]):
    def process_element(self, left: Row, right: Row, ctx: Any) -> Iterator[Any]:
        yield left.key, left.n * 100 + right.n, max(left.at, right.at)


class AtEachEvent(WatermarkGenerator[Any]):
    """Emits with events and with ticks."""

    def __init__(self) -> None:
        self.greatest = -(2**62)

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.greatest = max(self.greatest, event_timestamp)
        if event_timestamp % 2:
            output.emit_watermark(Watermark(self.greatest - 3))

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(Watermark(self.greatest - 2))

    def snapshot_state(self) -> Any:
        return self.greatest

    def restore_state(self, state: Any) -> None:
        self.greatest = state


GIVEN = pa.schema({"key": pa.int64(), "n": pa.int64(), "clock": pa.int64()})


def over_columns(assigner: Any, trigger: Any = None, mode: str = "accumulating", lateness: int = 12) -> Job:
    def job(keyed: KeyedStream) -> DataStream:
        windowed = keyed.window(assigner)
        if trigger is not None:
            windowed = windowed.trigger(trigger)
        if lateness:
            windowed = windowed.allowed_lateness(Time.milliseconds(lateness))
        results: DataStream = getattr(windowed, mode)().aggregate(rows=count(), total=sum_("n"))
        return results.with_emitted_at()

    return job


def joined(keyed: KeyedStream) -> DataStream:
    pairs = keyed.interval_join(keyed).between(Time.milliseconds(-4), Time.milliseconds(6))
    return pairs.process(Pair(), GIVEN).with_emitted_at()


def in_a_row(keyed: KeyedStream) -> DataStream:
    hours = over_columns(TumblingEventTimeWindows.of(Time.milliseconds(10)))(keyed)
    larger = hours.key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
    return larger.allowed_lateness(Time.milliseconds(9)).aggregate(rows=sum_("rows")).with_emitted_at()


def function_behind(keyed: KeyedStream) -> DataStream:
    hours = over_columns(SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(6)))(keyed)
    renamed = hours.with_columns(n=pc.field("rows"), ts=pc.field("window_end"))
    return renamed.key_by("key").process(Told(), GIVEN).with_emitted_at()


JOBS: dict[str, Job] = {
    "tumbling": over_columns(TumblingEventTimeWindows.of(Time.milliseconds(10))),
    "sliding": over_columns(SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(5))),
    "slices": over_columns(
        SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(4)), lateness=9
    ),
    "retracting": over_columns(TumblingEventTimeWindows.of(Time.milliseconds(10)), mode="retracting"),
    "sessions": over_columns(EventTimeSessionWindows.with_gap(Time.milliseconds(5)), mode="retracting"),
    "continuous": over_columns(
        TumblingEventTimeWindows.of(Time.milliseconds(20)),
        ContinuousEventTimeTrigger.of(Time.milliseconds(6)),
    ),
    "counted": over_columns(GlobalWindows.create(), CountTrigger(2), lateness=0),
    "count windows": lambda keyed: keyed.count_window(3, 2).aggregate(rows=count()).with_emitted_at(),
    "count slices": lambda keyed: keyed.count_window(4, 2).aggregate(rows=count()).with_emitted_at(),
    "window function": lambda keyed: (
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .allowed_lateness(Time.milliseconds(7))
        .process(Clock(), GIVEN)
        .with_emitted_at()
    ),
    "process function": lambda keyed: keyed.process(Told(), GIVEN).with_emitted_at(),
    "function over batches": lambda keyed: keyed.process(ToldInBatches(), GIVEN).with_emitted_at(),
    "function over batches, by key": lambda keyed: keyed.process(ToldByKeys(), GIVEN).with_emitted_at(),
    "join": joined,
    "in a row": in_a_row,
    "function behind windows": function_behind,
}

events = st.lists(
    st.tuples(st.integers(0, 15), st.sampled_from("AB"), st.integers(-25, 12), st.integers(0, 2)), max_size=14
)


def log_of(drawn: list[tuple[int, str, int, int]]) -> list[dict[str, Any]]:
    """Both splits have an event at first: a shorter log knows them, too."""
    rows, at = [], 0
    for number, (pause, split, disorder, key) in enumerate([(0, "A", 0, 0), (0, "B", 0, 0), *drawn]):
        at += pause
        rows.append({"at": at, "split": split, "ts": at + disorder, "key": key, "n": number})
    return rows


def keyed_of(rows: list[dict[str, Any]], interval: int, punctuated: bool, parallelism: int) -> KeyedStream:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    strategy = (
        WatermarkStrategy.for_generator(AtEachEvent)
        if punctuated
        else WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(4)).with_idleness(
            Duration.of_millis(20)
        )
    )
    schema = pa.schema({name: pa.string() if name == "split" else pa.int64() for name in rows[0]})
    log = pa.Table.from_pylist(rows, schema)
    stream = env.from_event_log(log, timestamp="ts", integer_times=True, arrival="at", split="split")
    return stream.assign_timestamps_and_watermarks(strategy).key_by("key")


def rows_by_key(stream: DataStream, **checkpoints: Any) -> dict[int, list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in stream.execute(**checkpoints).to_arrow().to_pylist():
        found[row["key"]].append(row)
    return found


@settings(max_examples=examples(20), deadline=None)
@given(
    st.sampled_from(sorted(JOBS)),
    events,
    st.sampled_from([1, 4, 10]),
    st.booleans(),
    st.sampled_from([1, 3]),
    st.lists(st.integers(0, 99), min_size=1, max_size=3),
)
def test_a_row_is_known_from_its_time_on_and_not_before(
    name: str,
    drawn: list[tuple[int, str, int, int]],
    interval: int,
    punctuated: bool,
    parallelism: int,
    cuts: list[int],
) -> None:
    log = log_of(drawn)

    def job(rows: list[dict[str, Any]]) -> DataStream:
        return JOBS[name](keyed_of(rows, interval, punctuated, parallelism))

    whole = rows_by_key(job(log))
    ends = [number for number in range(2, len(log)) if log[number]["at"] > log[number - 1]["at"]]
    for stop in {ends[cut * len(ends) // 100] if ends else len(log) for cut in cuts}:
        last = log[stop - 1]["at"]
        with TemporaryDirectory(dir=MEMORY) as folder:
            known = rows_by_key(job(log[:stop]), stop_with_checkpoint=Path(folder, "checkpoint"))
        for key, rows in whole.items():
            assert known[key] == rows[: len(known[key])]
            times = [row["emitted_at"] for row in rows]
            assert all(at is not None and at <= last for at in times[: len(known[key])])
            assert all(at is None or at >= last for at in times[len(known[key]) :])
    given_by = [row for rows in whole.values() for row in rows]
    assert all(row["emitted_at"] in (row.get("clock", row["emitted_at"]), None) for row in given_by)
