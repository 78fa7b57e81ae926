"""Brings events into the order of their timestamps: a buffer in map state and a timer per timestamp."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PACED = True

EVENTS = [
    ("k", 10), ("k", 20), ("k", 50), ("k", 30), ("k", 40), ("k", 100), ("k", 80), ("k", 20), ("k", 90), ("k", 70),
    ("k", 120),
]  # fmt: skip


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Sort(KeyedProcessFunction):
    def open(self, runtime_context):
        self.buffer = runtime_context.get_map_state(MapStateDescriptor("buffer", Types.LONG(), Types.INT()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        if ctx.timestamp() <= ctx.timer_service().current_watermark():
            yield "late", ctx.timestamp(), 1
            return
        self.buffer.put(ctx.timestamp(), (self.buffer.get(ctx.timestamp()) or 0) + 1)
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield "sorted", timestamp, self.buffer.get(timestamp)
        self.buffer.remove(timestamp)


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(30)).with_timestamp_assigner(
        SecondField()
    )
    events = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .process(Sort(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
    )
    with events.execute_and_collect() as results:
        return list(results)
