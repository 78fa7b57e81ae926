"""Timers that are coalesced to full seconds or to the next watermark, moved, and deleted again."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction

PACED = True

EVENTS = [("a", 100, 1_000), ("a", 450, 1_000), ("a", 1_700, -1), ("a", 2_400, 0), ("a", 5_000, 700)]


class Timestamps(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Coalesced(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        _, time, timeout = value
        timers = ctx.timer_service()
        if timeout > 0:
            timers.register_event_time_timer((ctx.timestamp() + timeout) // 1000 * 1000)
        elif timeout == 0:
            timers.register_event_time_timer(timers.current_watermark() + 1)
        else:
            timers.register_event_time_timer(time + 10)
            timers.delete_event_time_timer(time + 10)
            timers.delete_event_time_timer(12_345)
        yield "element", time

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"{ctx.get_current_key()}, {ctx.time_domain().name}", timestamp


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Timestamps())
    told = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], Types.STRING())
        .process(Coalesced(), Types.TUPLE([Types.STRING(), Types.LONG()]))
    )
    with told.execute_and_collect() as results:
        return list(results)
