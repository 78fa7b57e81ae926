"""The watermark that elements and timers of a keyed process function see."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction

PACED = True

EVENTS = [("k", 1_000), ("k", 1_000), ("k", 3_000), ("k", 2_000), ("k", 9_000), ("k", 4_000), ("k", 9_500)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Watermarks(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1_500)
        if ctx.timestamp() > 1_000:  # the first two may come before the first watermark
            yield "element", ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield "timer", ctx.timestamp(), ctx.timer_service().current_watermark()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(500)
    ).with_timestamp_assigner(SecondField())
    seen = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .process(Watermarks(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))
    )
    with seen.execute_and_collect() as results:
        return list(results)
