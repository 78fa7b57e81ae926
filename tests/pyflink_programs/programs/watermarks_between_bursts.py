"""Elements in bursts: in the pauses the periodic watermark fires what it has passed; what is behind it is late."""

import time

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction

CLOCK = "system"
PAUSE = -1
EVENTS = [30, PAUSE, 20, 60, PAUSE, 50, 70]


class ValueIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


def without_pauses(value):
    if value == PAUSE:
        time.sleep(1)
    return value != PAUSE


class Passed(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        late = value <= ctx.timer_service().current_watermark()
        if not late:
            ctx.timer_service().register_event_time_timer(value - 1)
        yield f"{value}{' is late' if late else ''}"

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"{timestamp + 1} has passed"


def run(env: StreamExecutionEnvironment):
    env.set_buffer_timeout(0)
    env.get_config().set_auto_watermark_interval(50)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ValueIsTime())
    passed = (
        env.from_collection(EVENTS, Types.INT())
        .filter(without_pauses)
        .rebalance()  # a source's task rarely lets timers run
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: 0, key_type=Types.INT())
        .process(Passed(), Types.STRING())
    )
    with passed.execute_and_collect() as results:
        return list(results)
