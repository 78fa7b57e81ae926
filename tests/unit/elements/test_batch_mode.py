"""The execution mode BATCH: what operators are handed, and when; tests/pyflink_programs compares it with PyFlink."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from equipment.timestamped_source import TimestampedSource

from flinkcore.common import Duration, Time, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from flinkcore.common.watermark_strategy import TimestampAssigner
from flinkcore.datastream import (
    BroadcastProcessFunction,
    DataStream,
    KeyedProcessFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WindowedStream,
)
from flinkcore.datastream.aggregates import count, first, sum_
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkcore.datastream.window import CountTrigger
from flinkcore.errors import ConfigurationError

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
NUMBERS = [(3, 30), (1, 10), (2, 20), (1, 5), (3, 1)]


class Timestamps(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Timestamps())


@pytest.fixture(params=[1, 3])
def env(request: pytest.FixtureRequest) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(request.param)
    return env.set_runtime_mode(RuntimeExecutionMode.BATCH)


class Timers(KeyedProcessFunction):
    """Registers timers in every way, and gives what happens."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        self.count.update((self.count.value() or 0) + 1)
        timers.register_event_time_timer(value[1])
        timers.register_event_time_timer(1000)
        timers.register_processing_time_timer(timers.current_processing_time() + 60_000)
        yield value[0], "element", value[1], timers.current_watermark()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        timers = ctx.timer_service()
        timers.delete_event_time_timer(1000)
        timers.register_event_time_timer(timestamp + 1)
        timers.register_processing_time_timer(timers.current_processing_time() + 1)
        domain = ctx.time_domain().name
        at = timestamp if domain == "EVENT_TIME" else self.count.value()
        yield ctx.get_current_key(), domain, at, timers.current_watermark()


def by_key(results: list[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, *rest in results:
        found.setdefault(key, []).append(tuple(rest))
    return found


def test_a_key_ends_with_its_timers_and_timers_of_timers_are_dropped(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection(NUMBERS).assign_timestamps_and_watermarks(TIMED)
    with numbers.key_by(lambda value: value[0]).process(Timers()).execute_and_collect() as results:
        found = list(results)
    low, high = -(2**63), 2**63 - 1
    expected = {
        1: [
            ("element", 5, low),
            ("element", 10, low),
            ("EVENT_TIME", 5, high),
            ("EVENT_TIME", 10, high),
            *[("PROCESSING_TIME", 2, high)] * 1,
        ],
        2: [("element", 20, low), ("EVENT_TIME", 20, high), ("PROCESSING_TIME", 1, high)],
        3: [
            ("element", 1, low),
            ("element", 30, low),
            ("EVENT_TIME", 1, high),
            ("EVENT_TIME", 30, high),
            ("PROCESSING_TIME", 2, high),
        ],
    }
    assert by_key(found) == expected
    if env.get_parallelism() == 1:
        assert [key for key, *_ in found] == sorted(key for key, *_ in found)


class TimersAgain(KeyedProcessFunction):
    """Registers timers anew that a timer has deleted, and others that are registered."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        now = timers.current_processing_time()
        for time in (10, 20, 30):
            timers.register_event_time_timer(time)
            timers.register_processing_time_timer(now + 60_000 + time)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        timers = ctx.timer_service()
        if ctx.time_domain().name == "EVENT_TIME":
            delete, register = timers.delete_event_time_timer, timers.register_event_time_timer
        else:
            delete, register = timers.delete_processing_time_timer, timers.register_processing_time_timer
        delete(timestamp + 10)
        for later in (0, 10, 20):
            register(timestamp + later)
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp % 100


def test_a_timer_that_a_timer_deletes_and_registers_anew_is_dropped(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([(1, 0), (2, 0)]).assign_timestamps_and_watermarks(TIMED)
    with numbers.key_by(lambda value: value[0]).process(TimersAgain()).execute_and_collect() as results:
        found = by_key(list(results))
    for key in (1, 2):
        assert [domain for domain, _ in found[key]] == ["EVENT_TIME"] * 2 + ["PROCESSING_TIME"] * 2
        times = [time for _, time in found[key]]
        assert times[:2] == [10, 30]
        assert (times[3] - times[2]) % 100 == 20


def test_elements_of_a_source_have_the_timestamps_of_the_assigner(env: StreamExecutionEnvironment) -> None:
    class Times(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
            yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    source = TimestampedSource({"a": [((1, 50), 3), ((2, 40), None)], "b": [((3, 60), 4)]})
    times = env.from_source(source, TIMED, "source").process(Times()).execute_and_collect()
    assert sorted(times) == [((1, 50), 50, -(2**63)), ((2, 40), 40, -(2**63)), ((3, 60), 60, -(2**63))]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ([300, 2, -1, 0], [0, 2, 300, -1]),
        (["b", "aa", "a"], ["a", "b", "aa"]),
        ([(2, 1), (1, 2)], [(2, 1), (1, 2)]),
        ([True, 1.5, None, "x"], [True, 1.5, None, "x"]),
        ([[2], [1], {"a": 1}], [[2], [1], {"a": 1}]),
    ],
    ids=["numbers", "texts", "tuples", "mixed", "lists"],
)
def test_keys_come_as_their_bytes_are_sorted_or_in_the_order_of_their_first_elements(
    keys: list[Any], order: list[Any]
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.configure({"execution.runtime-mode": "batch"})

    class Key(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            yield ctx.get_current_key()

    stream = env.from_collection([*keys, *keys]).key_by(lambda key: key).process(Key())
    with stream.execute_and_collect() as results:
        assert list(results) == [key for key in order for _ in range(2)]


def test_elements_wait_for_all_that_is_broadcast(env: StreamExecutionEnvironment) -> None:
    class Ruled(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value, ctx.get_broadcast_state(RULES).get("last")

        def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            ctx.get_broadcast_state(RULES).put("last", value)
            yield from ()

    rules = env.from_collection(range(100), Types.LONG()).broadcast(RULES)
    stream = env.from_collection([1, 2, 3], Types.LONG()).connect(rules).process(Ruled())
    with stream.execute_and_collect() as results:
        assert sorted(results) == [(1, 99), (2, 99), (3, 99)]


def rides() -> pa.Table:
    """Two windows of a key; the second row of the first one comes when that is over."""
    return pa.table({"time": [1, 500, 2, 501], "key": [1, 1, 1, 2], "n": [1, 2, 3, 4]})


def windows_of(env: StreamExecutionEnvironment, strategy: WatermarkStrategy) -> WindowedStream:
    rows = env.from_event_log(rides(), timestamp="time", integer_times=True).assign_timestamps_and_watermarks(
        strategy
    )
    return rows.key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(100)))


class AtOnce(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: Any) -> None:
        """Emit nothing."""


@pytest.mark.parametrize(
    "strategy",
    [
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.for_generator(AtOnce),
    ],
    ids=["periodic", "at once"],
)
def test_windows_over_columns_fire_at_the_end_and_no_row_is_late(
    env: StreamExecutionEnvironment, strategy: WatermarkStrategy
) -> None:
    env.get_config().set_auto_watermark_interval(1)
    result = windows_of(env, strategy).aggregate(rows=count(), total=sum_("n")).execute()
    found = result.to_arrow().select(["key", "window_start", "rows", "total", "watermark"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (1, 0, 2, 4, 2**63 - 1),
        (1, 500, 1, 2, 2**63 - 1),
        (2, 500, 1, 4, 2**63 - 1),
    ]
    assert result.report.late == 0
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    assert windows_of(env, strategy).aggregate(rows=count()).execute().report.late == 1


def test_columns_are_refused_where_the_order_of_rows_would_show(env: StreamExecutionEnvironment) -> None:
    windows = windows_of(env, WatermarkStrategy.for_monotonous_timestamps())
    for refused, reason in (
        (windows.aggregate(n=first("n")), r"the aggregate first\(n\)"),
        (windows.trigger(CountTrigger.of(2)).aggregate(n=count()), "triggers and evictors"),
        (windows.reduce(lambda a, b: a), "functions"),
    ):
        with pytest.raises(ConfigurationError, match=f"sorted by time, .* which {reason} would show"):
            refused.execute()
    aligned = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "g", Duration.of_seconds(1)
    )
    with pytest.raises(ConfigurationError, match="BATCH has no watermarks to align"):
        windows_of(env, aligned).aggregate(n=count()).execute()


def test_the_mode_automatic_is_batch_where_all_sources_end(env: StreamExecutionEnvironment) -> None:
    class Endless(SourceFunction):
        def run(self, ctx: Any) -> None:
            for number in NUMBERS[1:4]:
                ctx.collect(number)

        def cancel(self) -> None:
            """Nothing goes on."""

    env.set_parallelism(1).set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)

    def sums(stream: DataStream) -> list[Any]:
        reduced = stream.key_by(lambda value: value[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
        with reduced.execute_and_collect() as results:
            return list(results)

    bounded = env.from_collection(NUMBERS[1:4])
    assert sums(bounded) == [(1, 15), (2, 20)]
    assert sums(env.add_source(Endless())) == [(1, 10), (2, 20), (1, 15)]
    assert sums(bounded.union(env.add_source(Endless())))[-1] in [(1, 30), (2, 40)]
    rows = env.from_event_log(rides(), timestamp="time", integer_times=True).map(lambda row: (row.key, row.n))
    assert len(sums(rows)) == 4
    windows = windows_of(env, WatermarkStrategy.for_monotonous_timestamps())
    assert windows.aggregate(n=first("n")).execute().to_arrow().num_rows == 3


def test_functions_are_opened_and_fail_as_ever(env: StreamExecutionEnvironment) -> None:
    class Sum(ReduceFunction):
        def reduce(self, value1: Any, value2: Any) -> Any:
            raise ValueError("no sum")

    numbers = env.from_collection(NUMBERS).key_by(lambda value: value[0])
    with pytest.raises(Exception, match="no sum"):
        list(numbers.reduce(Sum()).execute_and_collect())
    with pytest.raises(Exception, match="key selector"):
        list(env.from_collection(NUMBERS).key_by(lambda value: value[5]).reduce(Sum()).execute_and_collect())
