"""Sessions that grow element by element and are reduced; none of them merges two that have elements already."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

ORDERED = False

PAGES = [
    ("ann", 0, 3), ("ann", 400, 2), ("bob", 500, 1), ("ann", 1_200, 5), ("bob", 1_499, 4), ("bob", 2_499, 7),
    ("ann", 2_200, 1),
]  # fmt: skip


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    sessions = (
        env.from_collection(PAGES, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda page: page[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
        .reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]))
    )
    with sessions.execute_and_collect() as results:
        return list(results)
