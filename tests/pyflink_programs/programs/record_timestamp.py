"""An assigner that builds on the timestamp that a record has already."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Itself(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 10


class Later(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return record_timestamp + 1


class WithTimestamp(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        yield value, ctx.timestamp()


def run(env: StreamExecutionEnvironment):
    stream = (
        env.from_collection([1, 2, 3], Types.LONG())
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
        )
        .map(lambda value: value + 100, Types.LONG())
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Later())
        )
        .process(WithTimestamp(), Types.TUPLE([Types.LONG(), Types.LONG()]))
    )
    with stream.execute_and_collect() as results:
        return list(results)
