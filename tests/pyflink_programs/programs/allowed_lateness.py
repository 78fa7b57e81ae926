"""A window that fired fires again for each element that is late but allowed."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

PACED = True

EVENTS = [
    ("a", 100),
    ("a", 200),
    ("a", 1_100),
    ("a", 300),
    ("a", 400),
    ("a", 1_700),
    ("a", 500),
    ("a", 2_999),
    ("a", 1_200),
]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Listed(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        times = ",".join(str(time) for _, time in elements)
        yield key, context.window().start, times


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    windows = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .allowed_lateness(500)
        .process(Listed(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()]))
    )
    with windows.execute_and_collect() as results:
        return list(results)
