"""A process function that yields none, one or several results, or returns a list."""

from pyflink.common import Types
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Yields(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        for number in range(value):
            yield value, number


class Returns(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        return [(value, number) for number in range(value - 1)] if value > 1 else None


def run(env: StreamExecutionEnvironment):
    collected = {}
    for function in Yields(), Returns():
        stream = env.from_collection([0, 1, 3], Types.INT()).process(
            function, Types.TUPLE([Types.INT(), Types.INT()])
        )
        with stream.execute_and_collect() as results:
            collected[type(function).__name__] = list(results)
    return collected
