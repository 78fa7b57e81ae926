"""Joins as a user writes them; mypy reads them, nobody runs them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from typing_extensions import assert_type

from flinkcore.common import OutputTag, Row, Time, WatermarkStrategy
from flinkcore.datastream import (
    CoGroupedStreams,
    CoGroupFunction,
    FlatJoinFunction,
    IntervalLogJoined,
    JoinedStreams,
    JoinFunction,
    LogStream,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
    TaggedUnion,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.window import CountEvictor, DynamicEventTimeSessionWindows
from flinkcore.testing import for_interval_join

late = OutputTag("late")
output_type = pa.schema({"user": pa.string(), "item": pa.string()})
in_order = WatermarkStrategy.for_monotonous_timestamps()
env = StreamExecutionEnvironment.get_execution_environment()
clicks = env.from_event_log("clicks", timestamp="ts").assign_timestamps_and_watermarks(in_order)
orders = env.from_event_log("orders", timestamp="ts").assign_timestamps_and_watermarks(in_order)
assert_type(clicks.join(orders), JoinedStreams)
assert_type(clicks.co_group(orders), CoGroupedStreams)


class Pair(JoinFunction[Row, Row, tuple[str, str]]):
    def join(self, first: Row, second: Row) -> tuple[str, str]:
        return first["user"], second["item"]


class FlatPair(FlatJoinFunction[Row, Row]):
    def join(self, first: Row, second: Row) -> Iterator[tuple[str, str]]:
        yield first["user"], second["item"]


class Items(CoGroupFunction[Row, Row]):
    def co_group(self, first: list[Row], second: list[Row]) -> list[Any]:
        return [("nobody" if not first else first[0]["user"], item["item"]) for item in second]


class Near(ProcessJoinFunction[Row, Row]):
    def process_element(self, left: Row, right: Row, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        assert_type(ctx.get_left_timestamp(), int)
        assert_type(ctx.get_timestamp(), int)
        yield left["user"], right["item"]
        yield late, right["item"]


def gap(element: TaggedUnion[Row, Row]) -> int:
    assert_type(element.get_one(), Row | None)
    return 5 if element.is_one() else 10


joined = clicks.join(orders).where("user").equal_to("user").window(TumblingEventTimeWindows.of(Time.hours(1)))
assert_type(joined.allowed_lateness(5).apply(Pair(), output_type), LogStream)
joined.evictor(CountEvictor.of(9)).apply(FlatPair(), output_type, timestamp_column="time")
groups = clicks.co_group(orders).where("user", "day").equal_to("user", "date")
groups.window(DynamicEventTimeSessionWindows(gap)).apply(Items(), output_type)
near = clicks.key_by("user").interval_join(orders.key_by("user")).between(Time.seconds(-5), 5)
assert_type(near.upper_bound_exclusive().side_output_left_late_data(late), IntervalLogJoined)
assert_type(near.process(Near(), output_type), LogStream)
harness = for_interval_join(
    IntervalJoinOperation(-5, 5, Near()), lambda row: row["user"], lambda row: row["user"]
)
harness.process_element1(Row(user="ada"), 7)

# Each of these is a mistake that mypy must see; warn_unused_ignores makes a missed one an error.
joined.apply(Items(), output_type)  # type: ignore[arg-type]
groups.window(TumblingEventTimeWindows.of(Time.hours(1))).apply(Pair(), output_type)  # type: ignore[arg-type]
clicks.key_by("user").interval_join(orders)  # type: ignore[arg-type]
near.process(Pair(), output_type)  # type: ignore[call-overload]
near.side_output_right_late_data("late")  # type: ignore[arg-type]
IntervalJoinOperation(0, 0.5, Near())  # type: ignore[arg-type]
