"""Operators behind operators in an embedded replay."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from threading import enumerate as enumerate_threads
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.small_batches import read_in_batches_of
from jobs.early_ends import EndsEarly
from jobs.even_timestamps import EvenTimestamps

from flinkcore.columnar.stages import result_batches
from flinkcore.common import MIN_TIMESTAMP, Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TimeDomain,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, max_, sum_
from flinkcore.datastream.functions import KeyedBatchProcessFunction, ProcessWindowFunction, ReduceFunction
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    GlobalWindows,
)
from flinkcore.errors import ConfigurationError, DataError, SchemaError, UserCodeError

SEEN = pa.schema(
    {
        "key": pa.string(),
        "value": pa.int64(),
        "timestamp": pa.int64(),
        "watermark": pa.int64(),
        "clock": pa.int64(),
    }
)


def seen(value: int, ctx: Any) -> tuple[Any, ...]:
    timers = ctx.timer_service()
    times = timers.current_watermark(), timers.current_processing_time()
    return str(ctx.get_current_key()), value, ctx.timestamp(), *times


class Sees(KeyedProcessFunction):
    """Tells what it sees of a column `n`."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield seen(value.n, ctx)


def log(
    rows: list[tuple[str, int, int]], parallelism: int = 1, interval_ms: int = 10, bound_ms: int = 0
) -> DataStream:
    """Rows are user, timestamp and arrival."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval_ms)
    columns = list(zip(*rows, strict=True))
    table = pa.table(dict(zip(("user", "ts", "at"), columns, strict=True)))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return env.from_event_log(
        table, timestamp="ts", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(strategy)


ROWS = [("a", 1, 1), ("b", 2, 2), ("a", 3, 3), ("c", 14, 15), ("b", 5, 16), ("c", 29, 33), ("a", 40, 45)]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_results_of_windows_come_before_the_watermark_that_fires_them_with_their_maximum_timestamps(
    parallelism: int,
) -> None:
    windows = log(ROWS, parallelism).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    counted = windows.aggregate(n=count()).key_by("window_start")
    rows = [tuple(row.values()) for row in counted.process(Sees(), SEEN).to_arrow().to_pylist()]
    # Windows that start at 0 fire at the watermark 13 of the tick at 20, of which the second operator has 2 so far.
    assert sorted(rows) == [
        ("0", 2, 9, 2, 20),
        ("0", 2, 9, 2, 20),
        ("10", 1, 19, 13, 40),
        ("20", 1, 29, 28, 45),
        ("40", 1, 49, 39, 45),
    ]


def test_a_late_event_makes_results_at_its_own_place() -> None:
    windows = log([*ROWS, ("b", 4, 46)], interval_ms=5).key_by("user")
    late = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).allowed_lateness(100)
    rows = late.aggregate(n=count()).filter(pc.field("late_firing")).key_by("user").process(Sees(), SEEN)
    assert [tuple(row.values()) for row in rows.to_arrow().to_pylist()] == [
        ("b", 2, 9, 13, 16),
        ("b", 3, 9, 39, 46),
    ]


class TimerAtNine(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value.user == "timer":
            ctx.timer_service().register_event_time_timer(9)
        return [(0, value.user)]

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return [(0, "of the timer")]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_what_the_watermark_of_an_event_fires_comes_before_a_later_event_that_arrives_with_it(
    parallelism: int,
) -> None:
    others = [f"later{number}" for number in range(6)]
    columns = {"user": ["timer", "event", *others], "ts": [0, 30, *[5] * 6], "at": [0, *[4] * 7]}
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(0)
    read_in_batches_of(1, env)
    events = env.from_event_log(pa.table(columns), timestamp="ts", integer_times=True, arrival="at")
    stream = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(EvenTimestamps))
    given = stream.key_by("user").process(TimerAtNine(), pa.schema({"all": pa.int64(), "user": pa.string()}))
    late = OutputTag("late")
    windows = given.key_by("all").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    collected = windows.side_output_late_data(late).aggregate(users=collect("user")).execute()
    rows = sorted((row["window_end"], row["users"]) for row in collected.to_arrow().to_pylist())
    assert rows == [(10, ["timer", "of the timer"]), (40, ["event"])]
    assert sorted(collected.get_side_output(late).to_arrow()["user"].to_pylist()) == others


@pytest.mark.parametrize("parallelism", [1, 3])
def test_windows_that_the_end_of_the_log_fires_come_behind_a_maximum_watermark_amid_it(
    parallelism: int,
) -> None:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(0)
    columns = {"user": ["a"] * 4, "ts": [1, 3, 5, 7], "at": [1, 2, 3, 4]}
    events = env.from_event_log(pa.table(columns), timestamp="ts", integer_times=True, arrival="at")
    stream = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_generator(partial(EndsEarly, "event", 3))
    )
    windows = stream.key_by("user").window(GlobalWindows.create_with_end_of_stream_trigger())
    rows = windows.aggregate(n=count()).key_by("user").process(Sees(), SEEN).to_arrow().to_pylist()
    assert [(row["value"], row["watermark"] == 2**63 - 1) for row in rows] == [(2, False), (2, True)]


class EndsOfWindows(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield key, context.window().end


class EightLater(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 8)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("by", ["timers", "windows"])
def test_all_that_a_watermark_fires_comes_before_it_however_much_that_is(
    by: str, parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_batches, "BATCH_ROWS", 3)
    schema = pa.schema({"user": pa.string(), "n": pa.int64()})
    keyed = log(
        [(f"u{number}", 1, 1) for number in range(20)] + [("last", 30, 30), ("last", 40, 41)], parallelism
    )
    keyed = keyed.key_by("user")
    given = (
        keyed.process(EightLater(), schema)
        if by == "timers"
        else keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(EndsOfWindows(), schema)
    )
    told = given.key_by("user").process(Sees(), SEEN).to_arrow().to_pylist()
    assert [row["watermark"] for row in told if row["key"] != "last"] == [0] * 20
    counted = (
        given.key_by("n").window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(n_=count())
    )
    assert sum(counted.to_arrow()["n_"].to_pylist()) == len(told)


def test_windows_follow_windows_without_a_strategy_of_their_own() -> None:
    small = log(ROWS).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    large = (
        small.aggregate(n=count()).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
    )
    result = large.aggregate(total=sum_("n"), windows=count()).execute()
    assert sorted(tuple(row.values())[:5] for row in result.to_arrow().to_pylist()) == [
        ("a", 0, 30, 2, 1),
        ("a", 30, 60, 1, 1),
        ("b", 0, 30, 2, 1),
        ("c", 0, 30, 2, 2),
    ]
    (later,) = result.report.later_operators
    assert (result.report.windowed, later.events_read, later.windowed) == (7, 5, 5)
    assert "operator 2: 5 rows from the one before\n               5 in windows" in str(result.report)


def test_sessions_of_results_and_windows_of_functions_may_follow() -> None:
    class Longest(ReduceFunction):
        def reduce(self, value1: Any, value2: Any) -> Any:
            return value1 if value1.n >= value2.n else value2

    counted = log(ROWS).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    sessions = counted.aggregate(n=count()).select("user", "n").key_by("user")
    reduced = sessions.window(EventTimeSessionWindows.with_gap(Time.milliseconds(15))).reduce(Longest())
    rows = reduced.key_by("user").process(Sees(), SEEN).to_arrow().select(["key", "value", "timestamp"])
    assert sorted(tuple(row.values()) for row in rows.to_pylist()) == [
        ("a", 1, 63),
        ("a", 2, 23),
        ("b", 2, 23),
        ("c", 1, 43),
    ]


def test_a_count_makes_results_at_the_row_that_completes_it() -> None:
    windows = log(ROWS).key_by("user").window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    rows = windows.aggregate(n=count()).key_by("user").process(Sees(), SEEN).to_arrow().to_pylist()
    assert [(row["key"], row["value"], row["clock"]) for row in rows] == [
        ("a", 2, 3),
        ("b", 2, 16),
        ("c", 2, 33),
    ]
    assert {row["timestamp"] for row in rows} == {2**63 - 1}


class TellsThreadsAtClose(KeyedProcessFunction):
    """Notes which threads of the replay there are when it is closed."""

    threads: ClassVar[list[str]] = []

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value.user, value.ts

    def close(self) -> None:
        self.threads.extend(each.name for each in enumerate_threads() if each.name.startswith("flinkcore-"))


class Fails(KeyedProcessFunction):
    """Cannot take any element."""

    def process_element(self, value: Any, ctx: Any) -> None:
        raise ValueError("no")


def test_an_operator_is_closed_only_when_no_thread_of_it_runs_any_more_also_where_the_next_one_fails() -> (
    None
):
    env = StreamExecutionEnvironment().set_parallelism(2)
    read_in_batches_of(20, env)
    rows = range(2_000)
    table = pa.table({"user": [f"u{row % 20}" for row in rows], "ts": rows, "at": rows})
    events = env.from_event_log(
        table, timestamp="ts", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    passed_on = events.key_by("user").process(TellsThreadsAtClose(), DELAYED)
    TellsThreadsAtClose.threads.clear()
    with pytest.raises(UserCodeError, match="Fails"):
        passed_on.key_by("user").process(Fails(), DELAYED).to_arrow()
    assert TellsThreadsAtClose.threads == []


class Delays(KeyedProcessFunction):
    """Gives a result when a processing-time timer fires, and tells of the late half of its elements on the side."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 4)
        yield OutputTag("side"), (value.user,)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


DELAYED = pa.schema({"user": pa.string(), "n": pa.int64()})
SIDE = OutputTag("side", pa.schema({"user": pa.string()}))


def test_results_of_processing_time_timers_have_no_timestamp_which_contexts_give_as_the_minimum() -> None:
    delayed = log(ROWS).key_by("user").process(Delays(), DELAYED)
    rows = delayed.key_by("user").process(Sees(), SEEN).to_arrow().to_pylist()
    assert {row["timestamp"] for row in rows} == {MIN_TIMESTAMP}
    assert [(row["value"], row["clock"]) for row in rows] == [(n, n) for n in (5, 6, 7, 19, 20, 37)]
    windows = delayed.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    with pytest.raises(DataError, match="results of processing-time timers have none"):
        windows.aggregate(n=count()).to_arrow()


def test_windows_without_bounds_take_results_without_timestamps() -> None:
    results = log(ROWS).key_by("user").process(Delays(), DELAYED)
    expected = Counter(results.to_arrow()["user"].to_pylist())
    delayed = results.key_by("user")
    for each in (
        delayed.window(GlobalWindows.create_with_end_of_stream_trigger()),
        delayed.window(GlobalWindows.create()).trigger(EventTimeTrigger()),
    ):
        counted = each.aggregate(n=count()).to_arrow()
        assert dict(zip(*(counted[name].to_pylist() for name in ("user", "n")), strict=True)) == expected
    single = delayed.count_window(1).aggregate(n=count()).to_arrow()
    assert Counter(single["user"].to_pylist()) == expected
    continuous = delayed.window(GlobalWindows.create()).trigger(
        ContinuousEventTimeTrigger.of(Time.milliseconds(5))
    )
    with pytest.raises(DataError, match="results of processing-time timers have none"):
        continuous.aggregate(n=count()).to_arrow()


def test_side_outputs_of_all_operators_are_there(tmp_path: Any) -> None:
    late = OutputTag("late")
    delayed = log([*ROWS, ("c", 2, 46)]).key_by("user").process(Delays(), DELAYED, side_outputs=[SIDE])
    stream = delayed.key_by("user").process(Sees(), SEEN)
    result = stream.execute()
    assert sorted(result.get_side_output(SIDE).to_arrow()["user"].to_pylist()) == list("aaabbccc")
    stream.write_parquet(tmp_path / "rows", {SIDE: tmp_path / "side"})
    assert pq.read_table(tmp_path / "side").num_rows == 8
    assert pq.read_table(tmp_path / "rows").num_rows == result.to_arrow().num_rows
    windows = (
        log([*ROWS, ("c", 2, 61)]).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    )
    counted = windows.side_output_late_data(late).aggregate(n=max_("ts")).key_by("user")
    chained = counted.process(Sees(), SEEN).execute()
    assert chained.get_side_output(late).to_arrow()["ts"].to_pylist() == [2]
    with pytest.raises(ConfigurationError, match="no side output is named 'other'; this job has: late"):
        chained.get_side_output(OutputTag("other"))


def test_three_operators_behind_two_logs() -> None:
    class Both(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value.user, 1

        def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value.user, 10

    first = log(ROWS, parallelism=2)
    env = first.get_execution_environment()
    table = pa.table({"user": ["a", "b"], "ts": [4, 41], "at": [4, 44]})
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    second = env.from_event_log(
        table, timestamp="ts", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(strategy)
    both = first.connect(second).key_by("user", "user").process(Both(), DELAYED)
    windows = both.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    result = windows.aggregate(n=sum_("n")).key_by("window_end").process(Sees(), SEEN).execute()
    rows = sorted((row["key"], row["value"]) for row in result.to_arrow().to_pylist())
    assert rows == [("10", 2), ("10", 12), ("20", 1), ("30", 1), ("50", 1), ("50", 10)]
    assert [later.events_read for later in result.report.later_operators] == [9, 6]


def test_an_error_behind_another_operator_names_function_and_element() -> None:
    class Fails(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            raise ValueError("unlucky")

    windows = log(ROWS).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    with pytest.raises(UserCodeError, match=r"Fails.process_element failed at the element Row\(user='b'"):
        windows.aggregate(n=count()).key_by("user").process(Fails(), SEEN).to_arrow()


def test_a_null_key_beside_a_time_that_python_cannot_hold_is_refused() -> None:
    class Nameless(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield None, 1_001

    columns = pa.schema([("user", pa.string()), ("at", pa.timestamp("ns"))])
    stream = log(ROWS).key_by("user").process(Nameless(), columns).key_by("user")
    with pytest.raises(DataError, match=r"key column 'user' .* is null .*\{'user': None, 'at': 1001\}"):
        stream.process(Sees(), SEEN).to_arrow()


def test_a_null_key_between_operators_is_refused() -> None:
    class Nameless(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield None, value.ts

    stream = log(ROWS).key_by("user").process(Nameless(), DELAYED)
    with pytest.raises(DataError, match="key column 'user' of operator 2 is null in a result of operator 1"):
        stream.key_by("user").process(Sees(), SEEN).to_arrow()
    kept = stream.filter(pc.is_valid(pc.field("user"))).key_by("user").process(Sees(), SEEN).execute()
    assert kept.to_arrow().num_rows == 0
    assert kept.report.later_operators[0].filtered == len(ROWS)


def test_what_cannot_follow_an_operator_is_refused() -> None:
    windows = log(ROWS).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    counted = windows.aggregate(n=count())
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    cases: list[tuple[DataStream, type[Exception], str]] = [
        (
            counted.assign_timestamps_and_watermarks(strategy).key_by("user").process(Sees(), SEEN),
            ConfigurationError,
            "assign_timestamps_and_watermarks comes before the first operator",
        ),
        (
            counted.key_by("nobody").process(Sees(), SEEN),
            SchemaError,
            "the key before operator 2: there is no column 'nobody'",
        ),
        (
            counted.key_by("user")
            .process(Delays(), DELAYED, side_outputs=[SIDE])
            .key_by("user")
            .process(Delays(), DELAYED, side_outputs=[SIDE]),
            ConfigurationError,
            "side output 'side' is named for two operators",
        ),
    ]
    for stream, error, message in cases:
        with pytest.raises(error, match=message):
            stream.execute()


class BatchesUntilQuiet(KeyedBatchProcessFunction):
    """A row for each element, and one for each timer, 5 ms after the last element of its key."""

    min_event_time_delay_ms = 5

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        last = elements.last_of_keys()
        timers = ctx.timer_service()
        timers.delete_event_time_timers(elements.key_ids[last])
        timers.register_event_time_timers(elements.key_ids[last], elements.timestamps[last] + 5)
        yield elements.results({"user": elements["user"], "n": elements.timestamps})

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        yield timers.results({"user": timers.keys["user"], "n": -timers.timestamps}, np.arange(len(timers)))


class RowsUntilQuiet(KeyedProcessFunction):
    """The same, row by row."""

    def open(self, runtime_context: Any) -> None:
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if self.timer.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.timer.value())
        self.timer.update(ctx.timestamp() + 5)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)
        yield value.user, ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), -timestamp


class BatchesByTheClock(KeyedBatchProcessFunction):
    """A row for each timer of processing time, 7 ms after an element; two of it for one of event time."""

    min_event_time_delay_ms = 3
    min_processing_time_delay_ms = 7

    def process_batch(self, elements: Any, ctx: Any) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timers(elements.key_ids, elements.processing_times + 7)
        timers.register_event_time_timers(elements.key_ids, elements.timestamps + 3)

    def on_timers(self, timers: Any, ctx: Any) -> Any:
        times = 1 if timers.time_domain is TimeDomain.PROCESSING_TIME else 2
        rows = np.repeat(np.arange(len(timers)), times)
        numbers = timers.timestamps[rows] * 10 + np.tile(np.arange(times), len(timers))
        return timers.results({"user": timers.keys["user"].take(pa.array(rows)), "n": numbers}, rows)


class RowsByTheClock(KeyedProcessFunction):
    """The same, row by row."""

    def process_element(self, value: Any, ctx: Any) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 7)
        timers.register_event_time_timer(ctx.timestamp() + 3)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        for number in range(1 if ctx.time_domain() is TimeDomain.PROCESSING_TIME else 2):
            yield ctx.get_current_key(), timestamp * 10 + number


GIVEN = pa.schema({"user": pa.string(), "n": pa.int64()})


class BatchesAtOneTime(KeyedBatchProcessFunction):
    """Names its keys at the next hundred of ms."""

    min_event_time_delay_ms = 0

    def process_batch(self, elements: Any, ctx: Any) -> None:
        times = elements.timestamps // 100 * 100 + 100
        ctx.timer_service().register_event_time_timers(elements.key_ids, times)

    def on_timers(self, timers: Any, ctx: Any) -> Any:
        return timers.results({"user": timers.keys["user"], "n": timers.timestamps})


def test_timers_of_equal_time_give_their_results_in_one_order_at_any_parallelism_and_cut(
    tmp_path: Path,
) -> None:
    random = Random(3)
    at = sorted(random.randrange(1_000) for _ in range(120))
    rows = [(random.choice("abcdefghijkl"), time, time) for time in at]

    def users(rows: list[Any], parallelism: int) -> DataStream:
        given = log(rows, parallelism).key_by("user").process(BatchesAtOneTime(), GIVEN)
        return (
            given.key_by("n")
            .window(GlobalWindows.create_with_end_of_stream_trigger())
            .aggregate(users=collect("user"))
        )

    def in_order(stream: Any) -> dict[int, list[str]]:
        return {row["n"]: row["users"] for row in stream.to_arrow().to_pylist()}

    whole = in_order(users(rows, 1))
    assert len(whole) == 10
    assert in_order(users(rows, 3)) == whole
    for cut in (30, 60, 90):
        early = users(rows[:cut], 2).execute(stop_with_checkpoint=tmp_path / str(cut))
        assert early.to_arrow().num_rows == 0
        assert in_order(users(rows[cut:], 1).execute(restore_from=tmp_path / str(cut))) == whole


@pytest.mark.parametrize("parallelism", [1, 3])
def test_timers_of_a_function_over_batches_give_results_in_order_as_those_of_single_rows(
    parallelism: int,
) -> None:
    stream = random_log(parallelism)

    def seen_by(function: Any) -> dict[str, list[Any]]:
        given = stream.key_by("user").process(function, GIVEN)
        told = given.key_by("user").process(Sees(), SEEN).to_arrow().to_pylist()
        return {
            key: [row for row in told if row["key"] == key] for key in sorted({row["key"] for row in told})
        }

    found = seen_by(BatchesByTheClock())
    assert found == seen_by(RowsByTheClock())
    assert list(found) == list("abcdefg")


def random_log(parallelism: int) -> DataStream:
    random = Random(7)
    at = sorted(random.randrange(3_000) for _ in range(800))
    rows = [(random.choice("abcdefg"), time - random.randrange(8), time) for time in at]
    return log(rows, parallelism, bound_ms=8)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_results_of_a_function_over_batches_come_to_the_next_operator_as_those_of_single_rows(
    parallelism: int,
) -> None:
    stream = random_log(parallelism)

    def seen_by(function: Any) -> list[Any]:
        given = stream.key_by("user").process(function, GIVEN)
        told = given.key_by("user").process(Sees(), SEEN).to_arrow().to_pylist()
        counted = given.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        windows = counted.aggregate(n=count(), all=collect("n"), last=max_("n")).to_arrow().to_pylist()
        return [sorted(map(str, told)), sorted(map(str, windows))]

    assert seen_by(BatchesUntilQuiet()) == seen_by(RowsUntilQuiet())


def test_a_function_over_batches_says_which_rows_its_results_are_for_where_another_operator_follows() -> None:
    class Gives(KeyedBatchProcessFunction):
        min_event_time_delay_ms = 1_000

        def __init__(self, rows: Any) -> None:
            self.rows = rows

        def process_batch(self, elements: Any, ctx: Any) -> Any:
            batch = {"user": elements["user"], "n": elements.timestamps}
            return batch if self.rows is None else elements.results(batch, self.rows)

    cases: list[tuple[Any, str]] = [
        (None, r"do not say which elements or timers they are for, .*elements\.results\(batch, rows\)"),
        ([0], "gave 7 results, and 1 rows that they are for"),
        ([*range(6), 7], "for the rows 0 to 7, but the batch has 7"),
        ([*range(6), 0.5], "as the rows that results are for. Give their numbers"),
    ]
    for rows, message in cases:
        given = log(ROWS).key_by("user").process(Gives(rows), GIVEN)
        with pytest.raises(UserCodeError, match=message):
            given.key_by("user").process(Sees(), SEEN).to_arrow()
        if rows is None:
            assert given.to_arrow().num_rows == len(ROWS)


def test_a_function_over_batches_behind_another_operator_is_refused() -> None:
    counted = log(ROWS).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    keyed = counted.aggregate(n=count()).key_by("user")
    with pytest.raises(
        ConfigurationError, match="BatchesUntilQuiet is a function over batches, which takes rows of logs"
    ):
        keyed.process(BatchesUntilQuiet(), GIVEN).execute()


def test_a_side_output_that_is_asked_for_need_not_be_named_before() -> None:
    delayed = log(ROWS).key_by("user").process(Delays(), DELAYED)
    names = delayed.key_by("user").process(Delays(), DELAYED).get_side_output(SIDE).to_arrow()
    assert names["user"].to_pylist() == ["a", "b", "a", "c", "b", "c"]
