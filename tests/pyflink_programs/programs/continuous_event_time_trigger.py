"""A day's window that tells its sum every ten seconds of event time."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import ContinuousEventTimeTrigger, TumblingEventTimeWindows

PACED = True

SALES = [
    ("a", 1_000, 1),
    ("a", 9_000, 2),
    ("a", 12_000, 4),
    ("a", 19_000, 8),
    ("a", 35_000, 16),
    ("a", 36_000, 32),
]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    sums = (
        env.from_collection(SALES, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda sale: sale[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .trigger(ContinuousEventTimeTrigger.of(Time.seconds(10)))
        .reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))
    )
    with sums.execute_and_collect() as results:
        return list(results)
