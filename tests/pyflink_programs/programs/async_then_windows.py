"""Events are scored by a slow service, and summed by key and window of event time afterwards."""

import asyncio

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AsyncDataStream, AsyncFunction, ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

MODE = "process"
ORDERED = False


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Score(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.02 if value[0] == "a" else 0.001)
        return [(value[0], value[1], value[1] % 7)]


class WithTimestamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], value[2], ctx.timestamp()


def run(env: StreamExecutionEnvironment):
    event = Types.TUPLE([Types.STRING(), Types.LONG()])
    scored = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])

    def scores():
        events = env.from_collection(
            [("a", 100), ("b", 250), ("a", 900), ("b", 1_100), ("a", 400), ("b", 2_700), ("a", 2_950)], event
        )
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
        timed = events.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondField()))
        return AsyncDataStream.unordered_wait(timed, Score(), Time.seconds(20), 4, scored)

    stamped = list(scores().process(WithTimestamp(), scored).execute_and_collect())
    sums = (
        scores()
        .key_by(lambda value: value[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda one, other: (one[0], max(one[1], other[1]), one[2] + other[2]), output_type=scored)
    )
    return {"stamped": stamped, "sums": list(sums.execute_and_collect())}
