"""Functions over windows as a user writes them; mypy reads them, nobody runs them."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa
from typing_extensions import assert_type

from flinkcore.common import OutputTag, Row, Time
from flinkcore.datastream import (
    AggregateFunction,
    AllWindowFunction,
    DataStream,
    KeyedLogStream,
    KeyedStream,
    LogStream,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.state import ReducingStateDescriptor
from flinkcore.datastream.window import (
    CountEvictor,
    EventTimeTrigger,
    GlobalWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    WindowAssigner,
)

keyed = StreamExecutionEnvironment().from_event_log("visits.csv", timestamp="at").key_by("user")
assert_type(keyed, KeyedLogStream)
counts = pa.schema({"user": pa.string(), "n": pa.int64()})
late = OutputTag("late")


class Count(AggregateFunction[Row, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Row, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithUser(ProcessWindowFunction[int, tuple[str, int], str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterator[tuple[str, int]]:
        assert_type(context.window(), TimeWindow)
        assert_type(context.current_watermark(), int)
        yield key, next(iter(elements))


class OfAll(ProcessAllWindowFunction[Row, tuple[str, int], TimeWindow]):
    def process(
        self, context: ProcessAllWindowFunction.Context[TimeWindow], elements: Iterable[Row]
    ) -> Iterator[tuple[str, int]]:
        yield "all", len(list(elements))


class Applied(AllWindowFunction[Row, tuple[str, int], TimeWindow]):
    def apply(self, window: TimeWindow, inputs: Iterable[Row]) -> list[tuple[str, int]]:
        return [("all", window.end - window.start)]


class Larger(ReduceFunction[Row]):
    def reduce(self, value1: Row, value2: Row) -> Row:
        return max(value1, value2, key=lambda row: int(row.cents))


class AtFive(Trigger[Row, TimeWindow]):
    SEEN: ReducingStateDescriptor[int] = ReducingStateDescriptor("seen", lambda a, b: a + b)

    def on_element(
        self, element: Row, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        seen = ctx.get_partitioned_state(self.SEEN)
        seen.add(1)
        return TriggerResult.FIRE if seen.get() == 5 else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.SEEN).clear()


class Days(WindowAssigner[Row, TimeWindow]):
    def assign_windows(
        self, element: Row, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        start = TimeWindow.get_window_start_with_offset(timestamp, 0, 86_400_000)
        return [TimeWindow(start, start + 86_400_000)]

    def get_default_trigger(self, env: Any = None) -> Trigger[Row, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


windowed = keyed.window(SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(10)))
assert_type(windowed.aggregate(Count(), WithUser(), output_type=counts), LogStream)
assert_type(windowed.reduce(Larger()), LogStream)
assert_type(windowed.reduce(lambda a, b: a), LogStream)
assert_type(windowed.allowed_lateness(5).side_output_late_data(late).process(WithUser(), counts), LogStream)
assert_type(keyed.window(Days()).trigger(AtFive()).evictor(CountEvictor.of(2)).reduce(Larger()), LogStream)
assert_type(keyed.window_all(GlobalWindows.create()).process(OfAll(), counts), LogStream)
assert_type(keyed.window_all(Days()).apply(Applied(), counts), LogStream)
assert_type(keyed.count_window(5, 2).reduce(Larger()), LogStream)

# Without a schema, the results of a function are single elements.
assert_type(windowed.process(WithUser()), DataStream)
assert_type(windowed.aggregate(Count(), WithUser()), DataStream)
by_function = keyed.key_by(lambda row: row.user)
assert_type(by_function, KeyedStream)
assert_type(by_function.count_window(5).reduce(Larger()), DataStream)

# Each of these is a mistake that mypy must see; warn_unused_ignores makes a missed one an error.
windowed.process(OfAll(), counts)  # type: ignore[call-overload]
windowed.apply(WithUser(), counts)  # type: ignore[call-overload]
windowed.aggregate(Larger(), output_type=counts)  # type: ignore[call-overload]
windowed.trigger(TriggerResult.FIRE)  # type: ignore[arg-type]
keyed.count_window("five")  # type: ignore[arg-type]
windowed.process(WithUser(), counts).map(str).to_arrow()  # type: ignore[attr-defined]
by_function.count_window(5).aggregate(n=5)  # type: ignore[call-arg]
