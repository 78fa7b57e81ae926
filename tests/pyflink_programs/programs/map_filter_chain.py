"""A chain of maps and filters, as functions and as lambdas."""

from pyflink.common import Types
from pyflink.datastream import FilterFunction, FlatMapFunction, MapFunction, StreamExecutionEnvironment


class Add(MapFunction):
    def __init__(self, summand):
        self.summand = summand

    def open(self, runtime_context):
        self.calls = 0

    def map(self, value):
        self.calls += 1
        return value + self.summand


class Even(FilterFunction):
    def filter(self, value):
        return value % 2 == 0


class Repeat(FlatMapFunction):
    def flat_map(self, value):
        for time in range(value % 3):
            yield value, time


def run(env: StreamExecutionEnvironment):
    chained = (
        env.from_collection(list(range(12)), Types.INT())
        .map(Add(3), Types.INT())
        .filter(Even())
        .filter(lambda value: value != 8)
        .flat_map(Repeat(), Types.TUPLE([Types.INT(), Types.INT()]))
        .map(lambda pair: f"{pair[0]}/{pair[1]}", Types.STRING())
    )
    with chained.execute_and_collect() as results:
        return list(results)
