"""Timestamps and watermarks go through a process function to the windows behind it, those of its timers too."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.window import TumblingEventTimeWindows

ORDERED = False

EVENTS = [("a", 100), ("b", 900), ("a", 1_200), ("b", 3_100)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Echo(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 2_000)
        yield value[0], "e", 1

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), "t", 1


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    echo = Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])
    counts = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .process(Echo(), echo)
        .key_by(lambda event: 0, key_type=Types.INT())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda a, b: ("".join(sorted(a[0] + b[0])), "".join(sorted(a[1] + b[1])), a[2] + b[2]))
    )
    with counts.execute_and_collect() as results:
        return list(results)
