"""Running minimum and maximum of a field: the other fields stay those of the key's first element."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

VISITS = [("a", 3, "x"), ("a", 1, "y"), ("b", 7, "z"), ("a", 5, "v"), ("b", 7, "w"), ("a", 1, "u")]


def run(env: StreamExecutionEnvironment):
    collected = {}
    for name in "min", "max":
        keyed = env.from_collection(
            VISITS, Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])
        ).key_by(lambda value: value[0])
        with getattr(keyed, name)(1).execute_and_collect() as results:
            collected[name] = list(results)
    return collected
