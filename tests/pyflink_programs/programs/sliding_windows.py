"""A moving average: windows of ten seconds every five, an aggregate function."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows

ORDERED = False

READINGS = [
    ("hall", 0, 18.0),
    ("hall", 4_000, 20.0),
    ("yard", 6_000, -4.0),
    ("hall", 11_000, 25.0),
    ("yard", 16_500, -6.5),
]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Average(AggregateFunction):
    def create_accumulator(self):
        return "", 0.0, 0

    def add(self, value, accumulator):
        return value[0], accumulator[1] + value[2], accumulator[2] + 1

    def get_result(self, accumulator):
        return accumulator[0], accumulator[1] / accumulator[2]

    def merge(self, acc_a, acc_b):
        return acc_a[0], acc_a[1] + acc_b[1], acc_a[2] + acc_b[2]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    averages = (
        env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda reading: reading[0], key_type=Types.STRING())
        .window(SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)))
        .aggregate(
            Average(),
            accumulator_type=Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.LONG()]),
            output_type=Types.TUPLE([Types.STRING(), Types.DOUBLE()]),
        )
    )
    with averages.execute_and_collect() as results:
        return list(results)
