"""A keyed stream is collected with its keys."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    pair = Types.TUPLE([Types.STRING(), Types.INT()])

    def pairs():
        return env.from_collection([("a", 1), ("b", 2), ("a", 3)], pair)

    with pairs().key_by(lambda value: value[0], Types.STRING()).execute_and_collect() as results:
        by_name = list(results)
    numbers = pairs().map(lambda value: value[1], Types.INT())
    with numbers.key_by(lambda value: value % 2 == 0, Types.BOOLEAN()).execute_and_collect() as results:
        by_parity = list(results)
    limited = pairs().key_by(lambda value: value[1], Types.INT()).execute_and_collect(limit=2)
    return {"by name": by_name, "by parity": by_parity, "limited": limited}
