"""Running sums per key: over numbers, over a field of tuples and over a field of rows."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    tuples = (
        env.from_collection(
            [("a", 1), ("a", 2), ("b", 1), ("b", 5), ("a", 4)], Types.TUPLE([Types.STRING(), Types.INT()])
        )
        .key_by(lambda value: value[0])
        .sum(1)
    )
    rows = (
        env.from_collection(
            [Row("a", 1.5), Row("b", 2.0), Row("a", -0.5)],
            Types.ROW_NAMED(["name", "price"], [Types.STRING(), Types.DOUBLE()]),
        )
        .key_by(lambda value: value[0])
        .sum("price")
    )
    numbers = env.from_collection([1, 1, 2, 1, 2], Types.INT()).key_by(lambda value: value).sum()
    collected = {}
    for name, stream in {"tuples": tuples, "rows": rows, "numbers": numbers}.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
