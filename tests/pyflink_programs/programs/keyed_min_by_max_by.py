"""The element with the smallest and with the largest value of a field so far; the first of equals."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

VISITS = [
    ("a", 3, "x"),
    ("a", 1, "y"),
    ("b", 7, "z"),
    ("a", 5, "v"),
    ("b", 7, "w"),
    ("a", 1, "u"),
    ("a", 5, "t"),
]


def run(env: StreamExecutionEnvironment):
    visits = env.from_collection(VISITS, Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()]))
    keyed = visits.key_by(lambda value: value[0], key_type=Types.STRING())
    with keyed.min_by(1).execute_and_collect() as results:
        smallest = list(results)
    with keyed.max_by(1).execute_and_collect() as results:
        return {"min_by": smallest, "max_by": list(results)}
