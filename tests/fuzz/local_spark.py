"""Spark's part of a replay in this process: tasks, and a real exchange between them, without a JVM.

The whole of `flinkcore.spark` runs as it is: only the session, its DataFrames and its shuffle are stood in for. Tasks
travel pickled, rows come in batches of few rows, and the shuffle brings them in an order that it does not promise.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import Row

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.spark import element_pass, time_pass
from flinkcore.spark.environment import SparkExecutor
from flinkcore.spark.shipping import tasks
from flinkcore.spark.shipping.task_errors import told_plainly

BATCH_ROWS = 3
"""Rows that a task gets at once."""

Partition = Callable[[], Iterator[pa.RecordBatch]]


@dataclass
class LocalFrame:
    """A DataFrame: its partitions are computed when they are asked for; what comes to a shuffle is so once."""

    partitions: list[Partition]

    def mapInArrow(self, task: Any, schema: Any) -> LocalFrame:
        def of(partition: Partition) -> Partition:
            return lambda: task(small_batches(partition()))

        return LocalFrame([of(partition) for partition in self.partitions])

    def union(self, other: LocalFrame) -> LocalFrame:
        return LocalFrame(self.partitions + other.partitions)

    def repartitionById(self, partitions: int, column: str) -> LocalFrame:
        @cache
        def shuffled() -> list[pa.RecordBatch]:
            return [batch for partition in reversed(self.partitions) for batch in partition()]

        def of(number: int) -> Partition:
            return lambda: (
                batch.filter(pa.array([slot == number for slot in batch.column(column).to_pylist()]))
                for batch in shuffled()
            )

        return LocalFrame([of(number) for number in range(partitions)])

    def sortWithinPartitions(self, *columns: str) -> LocalFrame:
        def of(partition: Partition) -> Partition:
            def ordered() -> Iterator[pa.RecordBatch]:
                batches = list(partition())
                if batches:
                    rows = pa.Table.from_batches(batches)
                    yield from rows.sort_by([(name, "ascending") for name in columns]).to_batches()

            return ordered

        return LocalFrame([of(partition) for partition in self.partitions])

    def collect(self) -> list[Any]:
        try:
            return [
                Row(**row)
                for partition in self.partitions
                for batch in partition()
                for row in batch.to_pylist()
            ]
        except Exception as error:  # of which Spark brings a text to the driver
            raise PythonException("".join(traceback.format_exception(error))) from error


def small_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


class LocalSpark:
    """A session, as far as replays of files and tables need one."""

    session_id = "in this process"

    class conf:
        @staticmethod
        def get(name: str, default: Any = None) -> Any:
            return default

    def range(self, start: int, end: int, step: int, partitions: int) -> LocalFrame:
        numbers = [
            pa.array(range(start, end, step), pa.int64())[number::partitions] for number in range(partitions)
        ]

        def of(ids: pa.Array) -> Partition:
            return lambda: iter([pa.record_batch({"id": ids})])

        return LocalFrame([of(ids) for ids in numbers])


def local_spark_environment(cores: int) -> StreamExecutionEnvironment:
    """An environment whose jobs run as Spark's tasks in this process."""
    executor = SparkExecutor(LocalSpark())
    executor._cores = cores
    return StreamExecutionEnvironment(executor)


def rows_at_once(frame: LocalFrame, key: str) -> Generator[Any, None, None]:
    """Stands for `rows_by_and_by`, which needs functions of the JVM."""
    with told_plainly():
        rows = frame.collect()
    assert len({row[key] for row in rows}) == len(rows)
    yield from rows


def without_jvm() -> ExitStack:
    """Within this context, jobs of `local_spark_environment` run."""
    stack = ExitStack()
    for module in (element_pass, time_pass):
        stack.enter_context(patch.object(module, "rows_by_and_by", rows_at_once))
    stack.enter_context(patch.object(tasks, "check_executors"))  # there are none
    return stack
