"""What a process window function is told: its window and the watermark at which it fires."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

PACED = True

EVENTS = [("a", 100), ("a", 200), ("a", 1_100), ("a", 4_700), ("a", 5_000)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Context(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        yield context.window().start, context.window().end, context.current_watermark()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    windows = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Context(), Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]))
    )
    with windows.execute_and_collect() as results:
        return list(results)
