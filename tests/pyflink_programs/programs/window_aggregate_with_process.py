"""The mean of a window, computed as elements come, and a process function that adds the key and the window."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

READINGS = [("s1", 1_000, 2), ("s2", 1_500, 7), ("s1", 4_000, 4), ("s1", 6_000, 10), ("s2", 9_999, 1)]


class AverageAggregate(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: tuple[str, int, int], accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]


class MyProcessWindowFunction(ProcessWindowFunction[float, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], averages: Iterable[float]
    ) -> Iterable[tuple[str, int, float]]:
        yield key, context.window().start, next(iter(averages))


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    means = (
        env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda reading: reading[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .aggregate(
            AverageAggregate(),
            window_function=MyProcessWindowFunction(),
            accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG()]),
            output_type=Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]),
        )
    )
    with means.execute_and_collect() as results:
        return sorted(results)
