"""A process window function with state of the window, for its firings, and of the key, for all windows."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

PACED = True

EVENTS = [
    ("a", 0),
    ("a", 100),
    ("a", 1_100),
    ("a", 500),
    ("a", 600),
    ("a", 2_100),
    ("a", 1_900),
    ("a", 5_000),
]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Firings(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def __init__(self):
        self.of_window = ValueStateDescriptor("firings of the window", Types.INT())
        self.of_key = ValueStateDescriptor("firings of the key", Types.INT())

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        of_window = context.window_state().get_state(self.of_window)
        of_key = context.global_state().get_state(self.of_key)
        of_window.update((of_window.value() or 0) + 1)
        of_key.update((of_key.value() or 0) + 1)
        yield context.window().start, len(list(elements)), of_window.value(), of_key.value()

    def clear(self, context: ProcessWindowFunction.Context[TimeWindow]):
        context.window_state().get_state(self.of_window).clear()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    firings = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .allowed_lateness(1_000)
        .process(Firings(), Types.TUPLE([Types.LONG(), Types.INT(), Types.INT(), Types.INT()]))
    )
    with firings.execute_and_collect() as results:
        return list(results)
