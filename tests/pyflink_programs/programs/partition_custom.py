"""A partitioner of one's own chooses the subtask; the job writes what comes out to a file."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types
from pyflink.datastream import Partitioner, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink

ORDERED = False

NUMBERS = [(1, "a"), (2, "b"), (5, "c")]


class ByRemainder(Partitioner):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % num_partitions


def run(env: StreamExecutionEnvironment):
    # PyFlink 2.3 tells a partitioner how many partitions there are where a job has a sink, not in execute_and_collect.
    collected = {}
    for name, partitioner in {"class": ByRemainder(), "lambda": lambda key, count: key % count}.items():
        with tempfile.TemporaryDirectory() as folder:
            numbers = env.from_collection(NUMBERS, Types.TUPLE([Types.INT(), Types.STRING()]))
            (
                numbers.partition_custom(partitioner, lambda value: value[0])
                .map(lambda value: value[1] * value[0], Types.STRING())
                .sink_to(FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build())
            )
            env.execute("partition")
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            collected[name] = [line for path in files for line in path.read_text().splitlines()]
    return collected
