"""Streams of logs and of their single elements as a user writes them; mypy reads them, nobody runs them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import assert_type

from flinkcore.common import OutputTag, Row, Time, Types, WatermarkStrategy
from flinkcore.datastream import (
    AllWindowedLogStream,
    AllWindowedStream,
    BroadcastConnectedLogStream,
    BroadcastStream,
    CoMapFunction,
    ConnectedLogStreams,
    DataStream,
    KeyedCoProcessFunction,
    KeyedLogStream,
    KeyedProcessFunction,
    KeyedStream,
    LogStream,
    ProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WindowedLogStream,
    WindowedStream,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.state import MapStateDescriptor

HOURS = TumblingEventTimeWindows.of(Time.hours(1))
RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules", Types.STRING(), Types.INT())
schema = pa.schema({"user": pa.string()})


class Seen(KeyedProcessFunction):
    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value["user"]


class Words(ProcessFunction):
    def process_element(self, value: Row, ctx: ProcessFunction.Context) -> list[str]:
        return str(value["text"]).split()


class Both(KeyedCoProcessFunction):
    def process_element1(self, value: Row, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        yield value["user"]

    def process_element2(self, value: Row, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        yield value["user"]


class Names(CoMapFunction):
    def map1(self, value: Row) -> Any:
        return value["user"]

    def map2(self, value: Row) -> Any:
        return value["user"]


env = StreamExecutionEnvironment.get_execution_environment()
log = env.from_event_log("clicks", timestamp="ts")
orders = env.from_event_log("orders", timestamp="ts")

# Steps over columns stay streams of the log.
assert_type(log.filter(pc.field("price") > 10), LogStream)
assert_type(log.select("user").with_columns(twice=pc.field("price") * 2), LogStream)
assert_type(log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()), LogStream)
assert_type(log.union(orders), LogStream)
assert_type(log.key_by("user", "day"), KeyedLogStream)
assert_type(log.key_by("user").window(HOURS), WindowedLogStream)
assert_type(log.key_by("user").window(HOURS).aggregate(n=count()), LogStream)
assert_type(log.window_all(HOURS), AllWindowedLogStream)
assert_type(log.key_by("user").process(Seen(), schema).name("seen"), LogStream)
assert_type(log.connect(orders), ConnectedLogStreams)
assert_type(log.connect(orders).key_by("user", "who").process(Both(), schema), LogStream)
assert_type(orders.broadcast(RULES), BroadcastStream[LogStream])
assert_type(log.key_by("user").connect(orders.broadcast(RULES)), BroadcastConnectedLogStream)

# A function of single elements leads to a stream of PyFlink's.
assert_type(log.elements(), DataStream)
assert_type(log.map(lambda row: row.user), DataStream)
assert_type(log.flat_map(lambda row: row.text.split(), Types.STRING()), DataStream)
assert_type(log.process(Words()), DataStream)
assert_type(log.key_by(lambda row: row.user), KeyedStream)
assert_type(log.key_by(lambda row: row.user, Types.STRING()).window(HOURS), WindowedStream)
assert_type(log.key_by("user").elements(), KeyedStream)
assert_type(log.key_by("user").process(Seen()), DataStream)
assert_type(log.connect(orders).map(Names()), DataStream)
assert_type(log.elements().filter(lambda row: row.price > 10), DataStream)
assert_type(log.elements().window_all(HOURS), AllWindowedStream)
assert_type(log.get_side_output(OutputTag("rejected")).elements(), DataStream)

# Each of these is a mistake that mypy must see; warn_unused_ignores makes a missed one an error.
log.map(str).to_arrow()  # type: ignore[attr-defined]
log.map(str).with_columns(x=pc.field("x"))  # type: ignore[attr-defined]
log.key_by("user").process(Seen()).execute()  # type: ignore[attr-defined]
log.elements().why("ada")  # type: ignore[attr-defined]
log.rebalance()  # type: ignore[attr-defined]
log.key_by("user").sum("price")  # type: ignore[attr-defined]
log.union(log.map(str))  # type: ignore[arg-type]
log.connect(log.map(str))  # type: ignore[call-overload]
log.key_by("user").retracting()  # type: ignore[attr-defined]
log.get_side_output(OutputTag("rejected")).filter(pc.field("x") > 1)  # type: ignore[attr-defined]
