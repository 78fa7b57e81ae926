"""Warns when a sensor rises without pause for one second; alerts of frost go to a side output."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

ORDERED = False
PACED = True

FROST = OutputTag("frost", Types.STRING())
READINGS = [
    ("s1", 0, 20.0), ("s2", 0, 3.0), ("s1", 400, 21.0), ("s2", 500, -1.0), ("s1", 900, 22.0), ("s1", 1_300, 23.0),
    ("s2", 1_400, 0.5), ("s1", 1_500, 22.5), ("s2", 1_900, 0.25), ("s1", 2_000, 23.0), ("s2", 4_000, 0.5),
]  # fmt: skip


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Rising(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        name, time, degrees = value
        last, timer = self.last.value(), self.timer.value()
        self.last.update(degrees)
        if degrees < 0:
            yield FROST, f"{name} is at {degrees} at {time}"
        if last is None or degrees < last:
            if timer is not None:
                ctx.timer_service().delete_event_time_timer(timer)
                self.timer.clear()
        elif timer is None:
            ctx.timer_service().register_event_time_timer(time + 1_000)
            self.timer.update(time + 1_000)

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp, self.last.value()
        self.timer.clear()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    alerts = (
        env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda reading: reading[0], key_type=Types.STRING())
        .process(Rising(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]))
    )
    collected = {}
    for name, stream in {"rising": alerts, "frost": alerts.get_side_output(FROST)}.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
