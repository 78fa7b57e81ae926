"""Counts words as they come: every word goes out with the count that it has by then."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TEXT = [
    "To be, or not to be,--that is the question:--",
    "Whether 'tis nobler in the mind to suffer",
    "The slings and arrows of outrageous fortune",
    "Or to take arms against a sea of troubles,",
]


def split(line):
    yield from line.lower().split()


def run(env: StreamExecutionEnvironment):
    counts = (
        env.from_collection(TEXT, Types.STRING())
        .flat_map(split, output_type=Types.STRING())
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    with counts.execute_and_collect() as results:
        return list(results)
