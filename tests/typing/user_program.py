"""A typed program as a user writes it; mypy reads it, nobody runs it."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import assert_type

from flinkcore import JobResult
from flinkcore.common import (
    AscendingTimestampsWatermarks,
    Duration,
    OutputTag,
    Row,
    RowKind,
    Time,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    FILE,
    EventTimeSessionWindows,
    KeyedLogStream,
    KeyedProcessFunction,
    LogStream,
    SideOutputLogStream,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WindowedLogStream,
)
from flinkcore.datastream.aggregates import Aggregate, count, max_by, sum_

late = OutputTag("late")
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_parallelism(64)
env.get_config().set_auto_watermark_interval(100).set_parallelism(1)
assert_type(env, StreamExecutionEnvironment)

log = env.from_event_log("bids/*.parquet", timestamp="ts", arrival="arrived", split=FILE, on_bad_row="drop")
env.from_event_log(["a.csv", "b.csv"], timestamp="ts", split="device", on_bad_row=OutputTag("rejected"))
env.from_event_log(pa.table({"ts": [1]}), timestamp="ts", rate=10, arrival_start_ms=5)
assert_type(log, LogStream)

strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4)).with_idleness(
    Time.minutes(1)
)
assert_type(strategy.idleness_ms, int | None)
assert_type(strategy.out_of_orderness_ms, int | None)


class Punctuated(WatermarkGenerator[str]):
    def on_event(self, event: str, event_timestamp: int, output: WatermarkOutput) -> None:
        if event == "end":
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


class Length(TimestampAssigner):
    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return len(value)


assert_type(
    WatermarkStrategy.for_generator(Punctuated)
    .with_timestamp_assigner(Length())
    .with_watermark_alignment("logs", Duration.of_seconds(20), Time.seconds(1)),
    WatermarkStrategy,
)
WatermarkStrategy.for_generator(lambda: AscendingTimestampsWatermarks())
WatermarkStrategy.for_percentile_out_of_orderness(Time.minutes(1), percentile=0.99, window_size=1000)

keyed = (
    log.filter(pc.field("price") > 10)
    .with_columns(cents=pc.field("price") * 100)
    .select("user", "ts", "cents", day=pc.field("ts"))
    .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner("ts"))
    .key_by("user")
)
assert_type(keyed, KeyedLogStream)
windowed = keyed.window(TumblingEventTimeWindows.of(Time.hours(1), offset=Time.minutes(15)))
assert_type(windowed.allowed_lateness(5), WindowedLogStream)
keyed.window(SlidingEventTimeWindows.of(Duration.of_minutes(1), Time.seconds(10)))
keyed.window(EventTimeSessionWindows.with_gap(Time.minutes(30)))

assert_type(count(), Aggregate)
results = (
    windowed.allowed_lateness(Time.seconds(5))
    .side_output_late_data(late)
    .aggregate(n=count(), spent=sum_("cents"), best=max_by("ts", by="cents"))
)
assert_type(results, LogStream)
assert_type(results.execute(), JobResult)
assert_type(results.get_side_output(late), SideOutputLogStream)
assert_type(results.explain(), str)
results.write_parquet("out", {late: "late"})


class Seen(KeyedProcessFunction):
    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> list[Row]:
        return [Row(user=value.user, cents=value["cents"])]


seen_type = pa.schema({"user": pa.string(), "cents": pa.int64()})
twice = OutputTag("twice", seen_type)
seen = keyed.process(Seen(), seen_type, side_outputs=[twice], timestamp_column="seen_at")
assert_type(seen, LogStream)
assert_type(seen.get_side_output(twice), SideOutputLogStream)
assert_type(Row(1, 2).as_dict(), dict[str, Any])
assert_type(Row("a")(1).get_row_kind(), RowKind)

# Each of these is a mistake that mypy must see; warn_unused_ignores makes a missed one an error.
TumblingEventTimeWindows.of("1 h")  # type: ignore[arg-type]
WatermarkStrategy.for_bounded_out_of_orderness(0.5)  # type: ignore[arg-type]
WatermarkStrategy.for_generator(Punctuated())  # type: ignore[arg-type]
WatermarkStrategy.no_watermarks().with_watermark_alignment("logs", "20 s")  # type: ignore[arg-type]
env.from_event_log(timestamp="ts")  # type: ignore[call-arg]
env.from_event_log("log.csv", timestamp="ts", decode="json")  # type: ignore[arg-type]
env.from_event_log("log.csv", timestamp="ts", on_bad_row="skip")  # type: ignore[arg-type]
windowed.aggregate(n=count)  # type: ignore[call-overload]
windowed.aggregate(count())  # type: ignore[call-overload]
windowed.side_output_late_data("late")  # type: ignore[arg-type]
keyed.process(Seen, seen_type)  # type: ignore[call-overload]
max_by("ts")  # type: ignore[call-arg]
log.window(TumblingEventTimeWindows.of(Time.hours(1)))  # type: ignore[attr-defined]
strategy.idleness_ms = 5  # type: ignore[misc]
