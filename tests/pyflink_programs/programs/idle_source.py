"""A stream that ends up empty does not hold back the other one: windows over both, with idleness."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDERED = False


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def run(env: StreamExecutionEnvironment):
    event = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])

    def strategy():
        return (
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
            .with_idleness(Duration.of_seconds(30))
            .with_timestamp_assigner(SecondField())
        )

    busy = env.from_collection([("a", 100, 1), ("b", 900, 2), ("a", 1_500, 3), ("a", 200, 4)], event)
    quiet = env.from_collection([("a", 0, -1)], Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
    quiet = quiet.filter(lambda value: value[2] > 0)
    sums = (
        busy.assign_timestamps_and_watermarks(strategy())
        .union(quiet.assign_timestamps_and_watermarks(strategy()))
        .key_by(lambda value: value[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda a, b: (a[0], min(a[1], b[1]), a[2] + b[2]))
    )
    with sums.execute_and_collect() as results:
        return list(results)
