"""What a flat map may return: a generator, a list or another iterator."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def yielding(value):
    if value > 1:
        yield value
        yield -value


def listing(value):
    return [value] * (value % 3)


def iterating(value):
    return iter((value, value + 100))


def run(env: StreamExecutionEnvironment):
    collected = {}
    for function in yielding, listing, iterating:
        stream = env.from_collection([1, 2, 3], Types.INT()).flat_map(function, Types.INT())
        with stream.execute_and_collect() as results:
            collected[function.__name__] = list(results)
    return collected
