"""The execution mode AUTOMATIC: a job whose sources all end by themselves gives final results only."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def run(env):
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    words = env.from_collection([("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)], pair)
    counts = words.key_by(lambda word: word[0], Types.STRING()).reduce(lambda a, b: (a[0], a[1] + b[1]))
    with counts.execute_and_collect() as results:
        counted = list(results)
    numbers = env.from_source(
        NumberSequenceSource(1, 10), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    sums = numbers.key_by(lambda number: number % 3, Types.LONG()).reduce(lambda a, b: a + b)
    with sums.execute_and_collect() as results:
        return {"counts": counted, "sums": list(results)}
