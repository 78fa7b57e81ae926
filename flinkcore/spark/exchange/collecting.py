"""Rows with large payloads, collected in parts: never all of them are in the driver's memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable

SMALL_PAYLOAD_BYTES = 32 << 10
"""Payloads of up to this size are collected by the job that computes them,"""

SMALL_ROWS = 256
"""of so many rows of each partition."""

_NUMBERS_OF_PARTITION: Final = 1 << 33
"""By which Spark numbers rows: the partition, and the row within it."""

COLLECTED_BYTES = 64 << 20
"""Bytes of further rows that are collected at once, roughly."""

Place: TypeAlias = tuple[Any, ...]
"""Values of the columns that order rows."""


def collected_in_parts(dataframe: Any, *order: str) -> Generator[Any, None, None]:
    """Yield the rows of a DataFrame in an order; close the generator to release what the executors hold.

    One job computes all rows and collects the first of each partition, if they have small payloads. The executors keep
    the others on disk. If there are any, another job deals them out in order, and collects a part at a time, as they
    are asked for.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
        With a binary column `payload`.
    *order : str
        Columns of integers or binaries by which the rows are ordered, together unique in each row.
    """
    size = F.length("payload")
    number = F.monotonically_increasing_id() % _NUMBERS_OF_PARTITION
    is_early = (size <= SMALL_PAYLOAD_BYTES) & (number < SMALL_ROWS)
    kept = dataframe.withColumn("is_early", is_early).persist(StorageLevel.DISK_ONLY)

    def place(row: Any) -> Place:
        return tuple(row[name] for name in order)

    try:
        with task_errors_raised():
            early = F.when(F.col("is_early"), F.col("payload")).alias("payload")
            others = [name for name in dataframe.columns if name != "payload"]
            rows = kept.select(*others, early, size.alias("size")).collect()
            rows.sort(key=place)
            starts = _starts_of_parts([(place(row), row.size) for row in rows if row.payload is None])
            rows = [row for row in rows if row.payload is not None]
            late = kept.where("NOT is_early").drop("is_early")
            in_parts = _rows_of_parts(late, order, starts) if starts else iter(())
            yield from merge(rows, in_parts, key=place)
    finally:
        kept.unpersist()


def _starts_of_parts(sized: list[tuple[Place, int]]) -> list[Place]:
    """Return the places at which parts begin; each has at most COLLECTED_BYTES of payloads, or a single row."""
    starts: list[Place] = []
    held = 0
    for place, size in sized:
        if not starts or held + size > COLLECTED_BYTES:
            starts.append(place)
            held = 0
        held += size
    return starts


def _rows_of_parts(rows: Any, order: Sequence[str], starts: list[Place]) -> Iterator[Any]:
    slots = tuple(partition_slots(len(starts), chooses_partitions(rows)))
    schema = StructType([StructField("part", IntegerType()), *rows.schema.fields])
    dealt = rows.mapInArrow(portable(rows.sparkSession, _DealTask(tuple(order), starts, slots)), schema)
    parts = to_partitions(dealt, len(starts), "part").sortWithinPartitions(*order)
    collected: Iterator[Any] = parts.toLocalIterator()
    return collected


@dataclass(frozen=True)
class _DealTask:
    """Sends each row to the part that it belongs to; picklable.

    Attributes
    ----------
    order
        Columns that order the rows.
    starts
        The places at which the parts begin.
    slots
        For each part, its slot in the shuffle.
    """

    order: tuple[str, ...]
    starts: list[Place]
    slots: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the slots of their parts in front."""
        for batch in batches:
            places = zip(*(batch.column(name).to_pylist() for name in self.order), strict=True)
            slots = [self.slots[bisect_right(self.starts, place) - 1] for place in places]
            columns = [pa.array(slots, pa.int32()), *batch.columns]
            yield pa.RecordBatch.from_arrays(columns, ["part", *batch.schema.names])
