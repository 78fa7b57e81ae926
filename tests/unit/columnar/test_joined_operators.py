"""Operators that take what others give, on both sides or along with a log, in an embedded replay."""

from collections.abc import Iterator
from threading import enumerate as enumerate_threads
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, max_
from flinkcore.datastream.functions import CoGroupFunction, JoinFunction, ProcessJoinFunction
from flinkcore.errors import DataError, SchemaError, UserCodeError

CLICKS = [("a", 1, 1), ("a", 4, 4), ("b", 5, 5), ("a", 12, 12), ("b", 19, 19), ("b", 18, 21), ("b", 40, 40)]
ORDERS = [("a", 7, 7), ("b", 16, 16), ("b", 17, 17)]
PAIRS = pa.schema({"user": pa.string(), "clicks": pa.int64(), "at": pa.int64()})


def logs(parallelism: int = 1) -> tuple[DataStream, DataStream]:
    """Clicks and orders, each a user, a timestamp and an arrival."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2)).with_idleness(
        Duration.of_millis(30)
    )
    clicks, orders = (
        env.from_event_log(
            pa.table(dict(zip(("user", "ts", "at"), zip(*rows, strict=True), strict=True))),
            timestamp="ts",
            integer_times=True,
            arrival="at",
        ).assign_timestamps_and_watermarks(strategy)
        for rows in (CLICKS, ORDERS)
    )
    return clicks, orders


def counted(stream: DataStream) -> DataStream:
    return stream.key_by("user").window(TumblingEventTimeWindows(10)).aggregate(n=count())


class WithClicks(JoinFunction[Any, Any, Any]):
    def join(self, first: Any, second: Any) -> Any:
        return first.user, first.n, second.ts


class Fails(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        raise ValueError("unlucky")
        yield


class Later(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


class Never(ProcessJoinFunction[Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        return []


@pytest.mark.parametrize("parallelism", [1, 3])
def test_orders_are_joined_with_the_clicks_of_their_window(parallelism: int) -> None:
    clicks, orders = logs(parallelism)
    joined = counted(clicks).join(orders).where("user").equal_to("user").window(TumblingEventTimeWindows(10))
    result = joined.apply(WithClicks(), PAIRS).execute()
    # A window's result has the window's largest timestamp, and so comes into the same window again.
    assert sorted(result.to_arrow().to_pylist(), key=repr) == [
        {"user": "a", "clicks": 2, "at": 7},
        {"user": "b", "clicks": 2, "at": 16},
        {"user": "b", "clicks": 2, "at": 17},
    ]
    report = result.report
    assert (report.events_read, report.windowed, report.passed_on) == (10, 7, 3)
    (later,) = report.later_operators
    assert (later.events_read, later.windowed) == (5 + 3, 8)
    assert "3 straight to later operators" in str(report)
    assert "operator 2: 8 rows\n" in str(report)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_largest_count_of_each_window_finds_who_has_it(parallelism: int) -> None:
    """The counts go two ways: to the largest of each window, and to what is compared with it."""

    class Largest(CoGroupFunction[Any, Any]):
        def co_group(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
            for row in first:
                if row.n == second[0].largest:
                    yield row.user, row.n, row.window_start

    counts = counted(logs(parallelism)[0])
    all_counts = counts.with_columns(end=pc.field("window_end").cast("int64"))
    largest = all_counts.key_by("end").window(TumblingEventTimeWindows(10)).aggregate(largest=max_("n"))
    both = all_counts.co_group(largest).where("end").equal_to("window_end")
    found = both.window(TumblingEventTimeWindows(10)).apply(Largest(), PAIRS)
    assert sorted(found.to_arrow().to_pylist(), key=repr) == [
        {"user": "a", "clicks": 2, "at": 0},
        {"user": "b", "clicks": 1, "at": 40},
        {"user": "b", "clicks": 2, "at": 10},
    ]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_function_that_fails_on_one_way_ends_the_job(parallelism: int) -> None:
    clicks, orders = logs(parallelism)
    before = set(enumerate_threads())
    failing = clicks.key_by("user").process(Fails(), pa.schema({"user": pa.string(), "n": pa.int64()}))
    joined = counted(orders).join(failing).where("user").equal_to("user").window(TumblingEventTimeWindows(10))
    with pytest.raises(UserCodeError, match="unlucky"):
        joined.apply(WithClicks(), PAIRS).to_arrow()
    assert set(enumerate_threads()) <= before


def test_results_without_a_timestamp_are_refused_by_a_join() -> None:
    clicks, orders = logs()
    timed = clicks.key_by("user").process(Later(), pa.schema({"user": pa.string(), "n": pa.int64()}))
    joined = timed.key_by("user").interval_join(orders.key_by("user")).between(-5, 5)
    with pytest.raises(DataError, match="without a timestamp, of the left input, cannot be joined by time"):
        joined.process(Never(), PAIRS).to_arrow()


def test_united_results_have_the_columns_of_the_other_streams() -> None:
    clicks, orders = logs()
    rows = counted(clicks).select("user", at=pc.field("n")).union(orders.select("user", "at"))
    numbers = rows.key_by("user").window(TumblingEventTimeWindows(100)).aggregate(rows=count())
    assert sorted((row["user"], row["rows"]) for row in numbers.to_arrow().to_pylist()) == [
        ("a", 3),
        ("b", 5),
    ]
    unlike = counted(clicks).union(orders).key_by("user").window(TumblingEventTimeWindows(10))
    with pytest.raises(SchemaError, match="streams of a union have the same columns, but stream 1 has"):
        unlike.aggregate(rows=count()).execute()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_union_of_logs_is_connected_with_another_log(parallelism: int) -> None:
    class Both(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
            ctx.timer_service().register_event_time_timer(value.ts + 1)
            yield value.user, 1, value.ts

        def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value.user, 2, value.ts

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            yield ctx.get_current_key(), 0, timestamp

    clicks, orders = logs(parallelism)
    columns = pa.schema({"user": pa.string(), "what": pa.int64(), "ts": pa.int64()})
    both = clicks.union(orders).connect(clicks).key_by("user", "user").process(Both(), columns)
    found = [tuple(row.values()) for row in both.execute().to_arrow().to_pylist()]
    united = [(user, ts) for user, ts, _ in CLICKS + ORDERS]
    assert sorted(found) == sorted(
        [(user, 1, ts) for user, ts in united]
        + [(user, 0, ts + 1) for user, ts in united]
        + [(user, 2, ts) for user, ts, _ in CLICKS]
    )
