"""A reduce function that folds as elements come, and a process function that adds the window."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, ReduceFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

ORDERED = False

EVENT = [Types.STRING(), Types.LONG(), Types.INT()]
EVENTS = [("a", 0, 4), ("b", 10, 3), ("a", 900, 2), ("a", 1_000, 7), ("b", 1_100, 5), ("b", 1_200, 1)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Smaller(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 if value1[2] <= value2[2] else value2


class WithStart(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        for smallest in elements:
            yield context.window().start, smallest[0], smallest[2]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    smallest = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(Smaller(), WithStart(), output_type=Types.TUPLE([Types.LONG(), Types.STRING(), Types.INT()]))
    )
    with smallest.execute_and_collect() as results:
        return list(results)
