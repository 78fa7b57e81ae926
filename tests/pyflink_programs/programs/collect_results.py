"""The ways to take results: all, a limited number, one by one."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    numbers = env.from_collection([1, 2, 3, 4, 5], Types.INT()).map(lambda value: -value, Types.INT())
    limited = numbers.execute_and_collect(limit=2)
    named = numbers.execute_and_collect("a job with a name")
    first = next(named)
    second = named.next()
    named.close()
    with numbers.execute_and_collect() as results:
        every = list(results)
    return {"limited": limited, "one by one": [first, second], "all": every}
