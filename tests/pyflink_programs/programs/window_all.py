"""Windows over a whole stream: the cheapest offer of each second, and all offers of it."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

OFFERS = [("pen", 100, 3), ("ink", 200, 2), ("cup", 1_500, 9), ("map", 1_600, 9), ("pen", 3_000, 4)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Names(ProcessAllWindowFunction[tuple, tuple, TimeWindow]):
    def process(self, context: "ProcessAllWindowFunction.Context", elements: Iterable[tuple]):
        yield context.window().start, ",".join(name for name, _, _ in elements)


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    windows = (
        env.from_collection(OFFERS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .window_all(TumblingEventTimeWindows.of(Time.seconds(1)))
    )
    cheapest = windows.reduce(lambda a, b: a if a[2] <= b[2] else b)
    names = windows.process(Names(), Types.TUPLE([Types.LONG(), Types.STRING()]))
    collected = {}
    for name, stream in {"cheapest": cheapest, "names": names}.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
