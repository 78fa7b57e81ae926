"""Spark's part of a replay in this process: tasks, and a real exchange between them, without a JVM.

The whole of `flinkcore.spark` runs as it is: only the session, its DataFrames and its shuffle are stood in for. Tasks
travel pickled, rows come in batches of few rows, and the shuffle brings them in an order that it does not promise.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any, ClassVar
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PythonException
from pyspark.sql import Row
from pyspark.sql.types import StructField, StructType

from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore.errors import SchemaError
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar import element_pass, task_summaries, time_pass
from flinkcore.spark.columns.spark_types import SparkSchema
from flinkcore.spark.elements import element_run
from flinkcore.spark.logs import kept_rows
from flinkcore.spark.logs.dataframe_log import log_schema
from flinkcore.spark.shipping import sent_files
from flinkcore.spark.shipping.task_errors import task_errors_raised

BATCH_ROWS = 3
"""Rows that a task gets at once."""

Partition = Callable[[], Iterator[pa.RecordBatch]]


@dataclass
class LocalFrame:
    """A DataFrame: its partitions are computed when they are asked for; what comes to a shuffle is so once."""

    isStreaming: ClassVar[bool] = False
    sparkSession: ClassVar[Any] = None

    partitions: list[Partition]
    schema: Any = None

    @classmethod
    def of(cls, table: pa.Table, partitions: int) -> LocalFrame | None:
        """The rows of a table; None where Spark has other types for them."""
        plain = plain_schema(table.schema)
        try:
            frame = cls([], SparkSchema(plain).struct_type)
        except SchemaError:
            return None
        if log_schema(frame) != plain:
            return None
        rows = table.cast(plain)
        bounds = [rows.num_rows * number // partitions for number in range(partitions + 1)]
        frame.partitions += [
            partial(iter, rows.slice(start, stop - start).to_batches()) for start, stop in pairwise(bounds)
        ]
        return frame

    @property
    def columns(self) -> list[str]:
        return [] if self.schema is None else list(self.schema.names)

    def inputFiles(self) -> list[str]:
        return []

    def select(self, *columns: str) -> LocalFrame:
        names = [column[1:-1].replace("``", "`") for column in columns]

        def of(partition: Partition) -> Partition:
            return lambda: (batch.select(names) for batch in partition())

        schema = None if self.schema is None else StructType([self.schema[name] for name in names])
        return LocalFrame([of(partition) for partition in self.partitions], schema)

    def toDF(self, *names: str) -> LocalFrame:
        """The same columns by other names."""

        def of(partition: Partition) -> Partition:
            return lambda: (batch.rename_columns(list(names)) for batch in partition())

        fields = [
            StructField(name, field.dataType, field.nullable)
            for name, field in zip(names, self.schema, strict=True)
        ]
        return LocalFrame([of(partition) for partition in self.partitions], StructType(fields))

    def localCheckpoint(self) -> LocalFrame:
        """The rows of this evaluation."""
        try:
            kept = [list(partition()) for partition in self.partitions]
        except Exception as error:  # of which Spark brings a text to the driver
            raise PythonException("".join(traceback.format_exception(error))) from error
        return LocalFrame([partial(iter, batches) for batches in kept])

    def where(self, condition: str) -> LocalFrame:
        """Rows where a boolean column is true, or with NOT false."""
        wanted = not condition.startswith("NOT ")

        def of(partition: Partition) -> Partition:
            return lambda: (
                batch.filter(pc.equal(batch.column(condition.removeprefix("NOT ")), wanted))
                for batch in partition()
            )

        return LocalFrame([of(partition) for partition in self.partitions])

    def toArrow(self) -> pa.Table:
        batches = [batch for partition in self.partitions for batch in partition()]
        # Spark takes no table without a batch, if it has nested columns.
        schema = log_schema(self)
        return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()

    def mapInArrow(self, task: Any, schema: Any) -> LocalFrame:
        def of(number: int, partition: Partition) -> Partition:
            return lambda: running(number, task(small_batches(partition())))

        return LocalFrame([of(*each) for each in enumerate(self.partitions)])

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

    def persist(self, level: Any) -> LocalFrame:
        return self.localCheckpoint()

    def unpersist(self) -> None:
        """Nothing is kept elsewhere."""

    def toLocalIterator(self) -> Iterator[Any]:
        yield from self.collect()


class LocalTask:
    """Stands for `pyspark.TaskContext`: tells tasks their partition."""

    current: ClassVar[list[int]] = []

    @classmethod
    def get(cls) -> LocalTask:
        return cls()

    def partitionId(self) -> int:
        return self.current[-1]


def running(partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task gives, which is told its partition while it works."""
    batches = iter(batches)
    while True:
        LocalTask.current.append(partition)
        try:
            batch = next(batches, None)
        finally:
            LocalTask.current.pop()
        if batch is None:
            return
        yield batch


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

    def range(self, start: int, end: int | None = None, step: int = 1, partitions: int = 1) -> LocalFrame:
        start, end = (0, start) if end is None else (start, end)
        numbers = [
            pa.array(range(start, end, step), pa.int64())[number::partitions] for number in range(partitions)
        ]

        def of(ids: pa.Array) -> Partition:
            return lambda: iter([pa.record_batch({"id": ids})])

        return LocalFrame([of(ids) for ids in numbers])


LocalFrame.sparkSession = LocalSpark()


def local_spark_environment(cores: int) -> SparkExecutionEnvironment:
    """An environment whose jobs run as Spark's tasks in this process."""
    env = SparkExecutionEnvironment(LocalSpark())
    env.executor._cores = cores
    return env


class LocalPayloads:
    """Stands for `KeptPayloads`, which needs functions of the JVM: every second payload is not collected at first."""

    def __init__(self, frame: LocalFrame, *order: str, is_kept: bool = False) -> None:
        def place(row: Any) -> tuple[Any, ...]:
            return tuple(row[name] for name in order)

        with task_errors_raised():
            self.dataframe = frame.localCheckpoint()
            self._rows = sorted(self.dataframe.collect(), key=place)
        assert len({place(row) for row in self._rows}) == len(self._rows)
        self.index = [
            Row(
                **(
                    row.asDict()
                    | {"size": len(row.payload or b""), "payload": row.payload if at % 2 else None}
                )
            )
            for at, row in enumerate(self._rows)
        ]

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        yield from self._rows[start:stop]

    def close(self) -> None:
        pass


def rows_at_once(frame: LocalFrame, *order: str) -> Generator[Any, None, None]:
    """Stands for `collected_in_parts`."""
    yield from LocalPayloads(frame, *order).rows()


def without_jvm() -> ExitStack:
    """Within this context, jobs of `local_spark_environment` run."""
    stack = ExitStack()
    for module in (element_pass, element_run, task_summaries):
        stack.enter_context(patch.object(module, "collected_in_parts", rows_at_once))
    stack.enter_context(patch.object(time_pass, "KeptPayloads", LocalPayloads))
    stack.enter_context(patch.object(sent_files, "executor_reports", lambda *_: []))
    stack.enter_context(patch.object(kept_rows, "TaskContext", LocalTask))
    return stack
