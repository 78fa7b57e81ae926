"""A source that counts."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def run(env: StreamExecutionEnvironment):
    numbers = env.from_source(
        NumberSequenceSource(1, 10), WatermarkStrategy.for_monotonous_timestamps(), "numbers", Types.LONG()
    )
    with numbers.filter(lambda number: number % 3 == 0).execute_and_collect() as results:
        return list(results)
