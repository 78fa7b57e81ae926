"""Counts a key's events until it was quiet for three seconds: one timer per key, moved by every event."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

ORDERED = False
PACED = True

EVENTS = [
    ("a", 0), ("b", 100), ("a", 2_900), ("a", 3_000), ("b", 3_200), ("c", 5_000), ("b", 6_050), ("a", 6_100),
    ("a", 9_200), ("c", 9_300), ("c", 13_000),
]  # fmt: skip


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class CountUntilQuiet(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(
            ValueStateDescriptor("count and timer", Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        count, timer = self.state.value() or (0, None)
        if timer is not None:
            ctx.timer_service().delete_event_time_timer(timer)
        timer = ctx.timestamp() + 3_000
        ctx.timer_service().register_event_time_timer(timer)
        self.state.update((count + 1, timer))

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp, self.state.value()[0]
        self.state.clear()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    quiet = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .process(CountUntilQuiet(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))
    )
    with quiet.execute_and_collect() as results:
        return list(results)
