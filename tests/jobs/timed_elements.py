"""Elements with times, and functions that say all that they see of them, for jobs that run in two ways."""

import random
from typing import Any

from flinkcore.common import Duration, OutputTag, TimestampAssigner, Types, WatermarkStrategy
from flinkcore.datastream import (
    BroadcastProcessFunction,
    DataStream,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor

LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())


class First(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[0])


STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(40)).with_timestamp_assigner(
    First()
)


class ValueIsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ValueIsTime())


def events(seed: int, number: int = 120) -> list[tuple[int, str, int]]:
    chosen = random.Random(seed)
    return [
        (max(0, 10 * at - chosen.randrange(80)), chosen.choice("abcdef"), chosen.randrange(9))
        for at in range(number)
    ]


class Timers(KeyedProcessFunction):
    """Says all that it sees, and sets timers of both times."""

    def open(self, runtime_context: Any) -> None:
        self.index = runtime_context.get_index_of_this_subtask()
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        timers = ctx.timer_service()
        timers.register_event_time_timer(value[0] + 35)
        timers.register_processing_time_timer(timers.current_processing_time() + value[2])
        timers.register_processing_time_timer(timers.current_processing_time() - 1)
        yield "element", value, seen, self.index, timers.current_watermark(), timers.current_processing_time()
        if value[2] == 8:
            yield LATE, value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        timers = ctx.timer_service()
        now, watermark = timers.current_processing_time(), timers.current_watermark()
        yield "timer", ctx.get_current_key(), timestamp, ctx.time_domain().name, watermark, now


class Windows(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        window = context.window()
        yield window.max_timestamp(), key, sum(element[2] for element in elements)


def timed(env: StreamExecutionEnvironment, seed: int) -> DataStream:
    env.get_config().set_auto_watermark_interval(7)
    return env.from_collection(events(seed)).assign_timestamps_and_watermarks(STRATEGY)


class Joined(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value, self.last.value()

    def process_element2(self, value: Any, ctx: Any) -> Any:
        self.last.update(value)


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Ruled(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value[1], value[2] * (ctx.get_broadcast_state(RULES).get(value[1]) or 0)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)
