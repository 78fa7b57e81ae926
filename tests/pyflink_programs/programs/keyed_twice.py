"""Keyed by word, then by length: running totals of running counts."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

WORDS = ["pen", "ink", "pen", "desk", "lamp", "pen", "desk"]


def run(env: StreamExecutionEnvironment):
    totals = (
        env.from_collection(WORDS, Types.STRING())
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .sum(1)
        .map(lambda pair: (len(pair[0]), pair[1]), Types.TUPLE([Types.INT(), Types.INT()]))
        .key_by(lambda pair: pair[0], key_type=Types.INT())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    with totals.execute_and_collect() as results:
        return list(results)
