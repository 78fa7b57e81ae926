"""Hot items: views per item and sliding window, then the two items with most views of each window."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ListStateDescriptor
from pyflink.datastream.window import SlidingEventTimeWindows, TimeWindow

VIEWS = [
    ("pen", 1_000), ("ink", 2_000), ("pen", 4_000), ("cup", 6_000), ("ink", 7_000), ("ink", 8_000), ("cup", 11_000),
    ("pen", 12_000), ("cup", 13_000), ("cup", 14_000), ("map", 19_000),
]  # fmt: skip


class ViewTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithWindowEnd(ProcessWindowFunction[int, tuple, str, TimeWindow]):
    def process(self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]):
        yield key, context.window().end, next(iter(elements))


class TopItems(KeyedProcessFunction):
    def __init__(self, n: int):
        self.n = n

    def open(self, runtime_context):
        descriptor = ListStateDescriptor("items", Types.TUPLE([Types.STRING(), Types.LONG()]))
        self.items = runtime_context.get_list_state(descriptor)

    def process_element(self, value, ctx):
        self.items.add((value[0], value[2]))
        ctx.timer_service().register_event_time_timer(value[1] + 1)

    def on_timer(self, timestamp, ctx):
        ranked = sorted(self.items.get(), key=lambda item: (-item[1], item[0]))
        self.items.clear()
        for rank, (item, count) in enumerate(ranked[: self.n], start=1):
            yield timestamp - 1, rank, item, count


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ViewTime())
    top = (
        env.from_collection(VIEWS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda view: view[0], key_type=Types.STRING())
        .window(SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)))
        .aggregate(
            Count(),
            WithWindowEnd(),
            accumulator_type=Types.LONG(),
            output_type=Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]),
        )
        .key_by(lambda item: item[1], key_type=Types.LONG())
        .process(TopItems(2), Types.TUPLE([Types.LONG(), Types.INT(), Types.STRING(), Types.LONG()]))
    )
    with top.execute_and_collect() as results:
        return list(results)
