"""The driver with most tips of each hour: windows per driver, then a window over all of them."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

MINUTE = 60_000
FARES = [
    (1, 1 * MINUTE, 5.0), (2, 5 * MINUTE, 6.5), (1, 59 * MINUTE, 3.0), (2, 61 * MINUTE, 1.0), (3, 70 * MINUTE, 1.25),
    (1, 185 * MINUTE, 10.0),
]  # fmt: skip


class FareTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Tips(ProcessWindowFunction[tuple, tuple, int, TimeWindow]):
    def process(
        self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        yield context.window().end, key, sum(tip for _, _, tip in elements)


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FareTime())
    most = (
        env.from_collection(FARES, Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda fare: fare[0], key_type=Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .process(Tips(), Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
        .window_all(TumblingEventTimeWindows.of(Time.hours(1)))
        .reduce(lambda a, b: max(a, b, key=lambda tips: tips[2]))
    )
    with most.execute_and_collect() as results:
        return list(results)
