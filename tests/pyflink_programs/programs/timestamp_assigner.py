"""Timestamps that a process function sees; later assigners replace earlier ones."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Field(TimestampAssigner):
    def __init__(self, index):
        self.index = index

    def extract_timestamp(self, value, record_timestamp):
        return value[self.index]


class WithTimestamp(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        yield value[0], ctx.timestamp()


def run(env: StreamExecutionEnvironment):
    output = Types.TUPLE([Types.LONG(), Types.LONG()])
    events = env.from_collection([(1, 10), (2, 20), (-3, -30)], Types.TUPLE([Types.LONG(), Types.LONG()]))
    once = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field(0))
    )
    twice = once.assign_timestamps_and_watermarks(
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(Field(1))
    )
    collected = {}
    for name, stream in {"once": once, "twice": twice}.items():
        with stream.process(WithTimestamp(), output).execute_and_collect() as results:
            collected[name] = list(results)
    return collected
