"""Sessions with a fixed gap, counted by a process function that looks at the window."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows, TimeWindow

ORDERED = False

CLICKS = [
    ("hi", 1), ("hi", 2), ("you", 2), ("hi", 3), ("hi", 4), ("hi", 8), ("hi", 9), ("hi", 15), ("you", 21),
]  # fmt: skip


class MyTimestampAssigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class CountWindowProcessFunction(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ) -> Iterable[tuple]:
        return [(key, context.window().start, context.window().end, len(list(elements)))]


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(MyTimestampAssigner())
    sessions = (
        env.from_collection(CLICKS, type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda x: x[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .process(
            CountWindowProcessFunction(),
            Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()]),
        )
    )
    with sessions.execute_and_collect() as results:
        return list(results)
