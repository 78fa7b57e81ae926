"""Counts per key, told when nothing has come for a minute of event time: rows with attributes, moments as times."""

import datetime

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PACED = True

START = datetime.datetime(2021, 3, 14, 12)
EVENTS = [(0, "a"), (10, "b"), (30, "a"), (69, "a"), (71, "b"), (200, "a"), (500, "b")]


class CountWithTimeoutFunction(KeyedProcessFunction):
    def __init__(self):
        self.state = None

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("my_state", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        current = self.state.value()
        if current is None:
            current = Row(value.f1, 0, 0)
        current[1] += 1
        current[2] = ctx.timestamp()
        self.state.update(current)
        ctx.timer_service().register_event_time_timer(current[2] + 60_000)

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        result = self.state.value()
        if timestamp == result[2] + 60_000:
            yield result[0], result[1]


class MyTimestampAssigner(TimestampAssigner):
    def __init__(self):
        self.epoch = datetime.datetime(1970, 1, 1)

    def extract_timestamp(self, value, record_timestamp) -> int:
        return int((value.f0 - self.epoch).total_seconds() * 1000)


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(MyTimestampAssigner())
    counts = (
        env.from_collection(EVENTS, Types.TUPLE([Types.INT(), Types.STRING()]))
        .map(lambda event: Row(f0=START + datetime.timedelta(seconds=event[0]), f1=event[1]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: value[1])
        .process(CountWithTimeoutFunction())
    )
    with counts.execute_and_collect() as results:
        return list(results)
