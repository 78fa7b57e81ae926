"""A window join by hand: both streams in one, tagged; each window pairs what it holds of the two."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

ORDERED = False

TAGGED = Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT(), Types.LONG()])
EVENT = Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])


class LastField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[3]


class Pairs(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        elements = list(elements)
        for _, left, _, _ in [each for each in map(self.swapped, elements) if each[0] == "bid"]:
            for _, right, _, _ in [each for each in map(self.swapped, elements) if each[0] == "ask"]:
                yield key, context.window().start, left, right

    @staticmethod
    def swapped(element):
        tag, key, value, time = element
        return tag, value, key, time


def run(env: StreamExecutionEnvironment):
    bids = env.from_collection(
        [("x", 10, 1_000), ("y", 20, 2_000), ("x", 11, 6_000), ("x", 12, 4_999)], EVENT
    )
    asks = env.from_collection([("x", 5, 0), ("x", 6, 3_000), ("y", 7, 5_000), ("x", 8, 9_999)], EVENT)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(LastField())
    env.get_config().set_auto_watermark_interval(3_600_000)  # one watermark, at the end
    pairs = (
        bids.map(lambda bid: ("bid", *bid), TAGGED)
        .union(asks.map(lambda ask: ("ask", *ask), TAGGED))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[1], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .process(Pairs(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT(), Types.INT()]))
    )
    with pairs.execute_and_collect() as results:
        return list(results)
