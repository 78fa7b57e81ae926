"""Windows one behind the other: sums of each key, the two largest of all keys, and functions over all windows."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import SlidingEventTimeWindows, TimeWindow, TumblingEventTimeWindows

SALES = [("a", 500, 5), ("b", 900, 7), ("a", 1_200, 4), ("c", 4_999, 8), ("b", 6_000, 1), ("c", 7_000, 2)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class TopTwo(ProcessAllWindowFunction[tuple, str, TimeWindow]):
    def process(self, context: ProcessAllWindowFunction.Context[TimeWindow], elements: Iterable[tuple]):
        largest = sorted(elements, key=lambda sale: (-sale[2], sale[0]))[:2]
        yield f"{context.window().start}: {', '.join(f'{key} {total}' for key, _, total in largest)}"


class Sum(AllWindowFunction[tuple, tuple, TimeWindow]):
    def apply(self, window: TimeWindow, inputs: Iterable[tuple]) -> Iterable[tuple]:
        yield window.start, window.end, sum(value[2] for value in inputs)


class Names(AggregateFunction):
    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return accumulator + value[0]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


class WithWindow(ProcessAllWindowFunction[str, tuple, TimeWindow]):
    def process(self, context: ProcessAllWindowFunction.Context[TimeWindow], elements: Iterable[str]):
        for names in elements:
            yield context.window().max_timestamp(), names


def run(env: StreamExecutionEnvironment):
    row = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())

    def sales():
        return env.from_collection(SALES, row).assign_timestamps_and_watermarks(strategy)

    tops = (
        sales()
        .key_by(lambda sale: sale[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .reduce(lambda one, other: (one[0], other[1], one[2] + other[2]))
        .window_all(TumblingEventTimeWindows.of(Time.seconds(5)))
        .process(TopTwo(), Types.STRING())
    )
    outputs = {"top": list(tops.execute_and_collect())}
    sums = (
        sales()
        .window_all(SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2)))
        .apply(Sum(), Types.TUPLE([Types.LONG(), Types.LONG(), Types.INT()]))
    )
    outputs["sums"] = list(sums.execute_and_collect())
    names = (
        sales()
        .window_all(TumblingEventTimeWindows.of(Time.seconds(5)))
        .aggregate(
            Names(),
            WithWindow(),
            accumulator_type=Types.STRING(),
            output_type=Types.TUPLE([Types.LONG(), Types.STRING()]),
        )
    )
    outputs["names"] = list(names.execute_and_collect())
    return outputs
