"""A trigger of one's own for time windows: early at the first large value, and at the end of the window."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TimeWindow, Trigger, TriggerResult, TumblingEventTimeWindows

ORDERED = False

BIDS = [("a", 100, 5), ("a", 200, 90), ("a", 300, 95), ("b", 400, 7), ("a", 1_200, 99), ("b", 1_900, 3)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class EarlyOnce(Trigger[tuple, TimeWindow]):
    def __init__(self):
        self.descriptor = ValueStateDescriptor("early", Types.BOOLEAN())

    def on_element(self, element, timestamp, window, ctx: "Trigger.TriggerContext"):
        ctx.register_event_time_timer(window.max_timestamp())
        early = ctx.get_partitioned_state(self.descriptor)
        if element[2] >= 90 and not early.value():
            early.update(True)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(self.descriptor).clear()


class Largest(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        elements = list(elements)
        return [(key, context.window().start, len(elements), max(element[2] for element in elements))]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    windows = (
        env.from_collection(BIDS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda bid: bid[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .trigger(EarlyOnce())
        .process(Largest(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT(), Types.INT()]))
    )
    with windows.execute_and_collect() as results:
        return list(results)
