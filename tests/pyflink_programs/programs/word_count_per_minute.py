"""Counts words per minute: tumbling windows, a reduce function and keys of text."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDERED = False

WORDS = [("hi", 1, 1_000), ("ho", 1, 2_000), ("hi", 1, 59_999), ("hi", 1, 60_000), ("ho", 1, 130_000)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    counts = (
        env.from_collection(WORDS, Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: value[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .reduce(lambda a, b: (a[0], a[1] + b[1], b[2]))
    )
    with counts.execute_and_collect() as results:
        return list(results)
