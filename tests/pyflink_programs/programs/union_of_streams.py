"""Three streams as one; their elements come in no particular order."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

ORDERED = False


def run(env: StreamExecutionEnvironment):
    small = env.from_collection([1, 2, 3], Types.INT())
    large = env.from_collection([100, 200], Types.INT())
    none = env.from_collection([4, 5], Types.INT()).filter(lambda value: value > 10)
    union = small.union(large, none).map(lambda value: value * 2, Types.INT())
    with union.execute_and_collect() as results:
        return list(results)
