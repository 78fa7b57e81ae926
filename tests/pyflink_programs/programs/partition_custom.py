"""A partitioner of one's own chooses the subtask."""

from pyflink.common import Types
from pyflink.datastream import Partitioner, StreamExecutionEnvironment

ORDERED = False


class ByRemainder(Partitioner):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % num_partitions


def run(env: StreamExecutionEnvironment):
    numbers = env.from_collection([(1, "a"), (2, "b"), (5, "c")], Types.TUPLE([Types.INT(), Types.STRING()]))
    by_class = numbers.partition_custom(ByRemainder(), lambda value: value[0])
    by_lambda = numbers.partition_custom(lambda key, partitions: key % partitions, lambda value: value[0])
    collected = {}
    for name, stream in {"class": by_class, "lambda": by_lambda}.items():
        with stream.map(lambda value: value[1] * value[0], Types.STRING()).execute_and_collect() as results:
            collected[name] = list(results)
    return collected
