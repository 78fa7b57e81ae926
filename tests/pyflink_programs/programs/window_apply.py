"""A window function that sees all elements of its window."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

ORDERED = False

EVENTS = [("a", 0, 4), ("b", 10, 3), ("a", 900, 2), ("a", 1_000, 7), ("b", 1_100, 5), ("a", 1_999, 7)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Median(WindowFunction[tuple, tuple, str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[tuple]):
        values = sorted(value for _, _, value in inputs)
        return [(key, window.start, window.end, values[len(values) // 2])]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    medians = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .apply(Median(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT()]))
    )
    with medians.execute_and_collect() as results:
        return list(results)
