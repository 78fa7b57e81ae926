"""Days of another time zone: tumbling windows with an offset, elements before the epoch among them."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

HOUR = 3_600_000
TIMES = [-30 * HOUR, -8 * HOUR - 1, -8 * HOUR, 0, 15 * HOUR, 16 * HOUR - 1, 16 * HOUR, 41 * HOUR]


class Itself(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Days(ProcessWindowFunction[int, tuple, int, TimeWindow]):
    def process(self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]):
        window = context.window()
        yield window.start, window.end, window.max_timestamp(), len(list(elements))


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    days = (
        env.from_collection(TIMES, Types.LONG())
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda time: 0, key_type=Types.INT())
        .window(TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8)))
        .process(Days(), Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.INT()]))
    )
    with days.execute_and_collect() as results:
        return list(results)
