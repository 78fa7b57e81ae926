"""Timers that are registered twice, deleted, due already, and registered by other timers."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment, TimeDomain
from pyflink.datastream.functions import KeyedProcessFunction

PACED = True

EVENTS = [
    ("k", 1_000, "start"), ("k", 1_100, "start"), ("k", 2_000, "register 5000"), ("k", 2_500, "register 5000"),
    ("k", 3_000, "register 6000"), ("k", 3_500, "delete 6000"), ("k", 4_000, "register 100"), ("k", 4_500, "delete 77"),
    ("k", 5_200, "pass"), ("k", 5_500, "register 7000"), ("k", 9_000, "pass"),
]  # fmt: skip


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timers(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        verb, _, time = value[2].partition(" ")
        timers = ctx.timer_service()
        if verb == "register":
            timers.register_event_time_timer(int(time))
        elif verb == "delete":
            timers.delete_event_time_timer(int(time))
        else:
            yield verb, ctx.timestamp(), ctx.get_current_key()

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        event_time = ctx.time_domain() == TimeDomain.EVENT_TIME
        yield "timer" if event_time else "another timer", timestamp, ctx.get_current_key()
        if timestamp == 7_000:
            ctx.timer_service().register_event_time_timer(10_000)
            ctx.timer_service().register_event_time_timer(11_000)
            ctx.timer_service().delete_event_time_timer(11_000)


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    fired = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .process(Timers(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()]))
    )
    with fired.execute_and_collect() as results:
        return list(results)
