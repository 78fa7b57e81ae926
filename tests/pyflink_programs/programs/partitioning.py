"""The ways to spread a stream over subtasks; with one subtask they change nothing."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

ORDERED = False


def run(env: StreamExecutionEnvironment):
    collected = {}
    for name in "rebalance", "shuffle", "rescale", "forward", "broadcast":
        numbers = env.from_collection([1, 2, 3, 4], Types.INT()).map(lambda value: value + 1, Types.INT())
        squares = getattr(numbers, name)().map(lambda value: value * value, Types.INT())
        with squares.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
