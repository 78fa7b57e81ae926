"""Rows with large payloads, collected in parts: never all of them are in the driver's memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
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
"""of so many rows of each partition,"""

SMALL_PARTITIONS = 16
"""and of so many partitions: 128 MiB at most, however many there are."""

_NUMBERS_OF_PARTITION: Final = 1 << 33
"""By which Spark numbers rows: the partition, and the row within it."""

COLLECTED_BYTES = 4 << 20
"""Bytes of further rows that are collected at once, roughly; Spark takes some ten times as many to pass them on."""

Place: TypeAlias = tuple[Any, ...]
"""Values of the columns that order rows."""


class KeptPayloads:
    """Rows of a DataFrame, computed once and kept on disk by the executors until they are released.

    One job computes all rows and collects the first payloads of the first partitions, if they are small. Another job
    deals out the other rows in order, and collects a part at a time, as they are asked for.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
        With a binary column `payload`.
    *order : str
        Columns of integers or binaries by which the rows are ordered, together unique in each row.
    small_partitions : int
        Partitions whose first payloads are collected.
    is_kept : bool
        Whether Spark keeps the rows already, until others release them.

    Attributes
    ----------
    index : list
        All rows in order, each with the size of its payload as `size`, and the payload itself if it has been collected,
        otherwise None.
    """

    def __init__(
        self, dataframe: Any, *order: str, small_partitions: int = SMALL_PARTITIONS, is_kept: bool = False
    ) -> None:
        size = F.length("payload")
        number = F.monotonically_increasing_id()
        is_first = number % _NUMBERS_OF_PARTITION < SMALL_ROWS
        is_early = (
            (size <= SMALL_PAYLOAD_BYTES) & is_first & (number < small_partitions * _NUMBERS_OF_PARTITION)
        )
        self._kept = dataframe.withColumn("is_early", is_early)
        self._is_persistent = not is_kept
        if self._is_persistent:
            self._kept = self._kept.persist(StorageLevel.DISK_ONLY)
        self._order = order
        try:
            with task_errors_raised():
                early = F.when(F.col("is_early"), F.col("payload")).alias("payload")
                others = [name for name in dataframe.columns if name != "payload"]
                self.index = self._kept.select(*others, early, size.alias("size")).collect()
        except BaseException:
            self.close()
            raise
        self.index.sort(key=self._place)

    def _place(self, row: Any) -> Place:
        return tuple(row[name] for name in self._order)

    @property
    def dataframe(self) -> Any:
        """All rows, with their payloads."""
        return self._kept.drop("is_early")

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """Yield rows with their payloads in order: those with these places in the index."""
        rows = self.index[start:stop]
        starts = _starts_of_parts([(self._place(row), row.size) for row in rows if row.payload is None])
        early = [row for row in rows if row.payload is not None]
        if not starts:
            yield from early
            return
        last = self._place(rows[-1])
        late = self._kept.where("NOT is_early").drop("is_early")
        with task_errors_raised():
            yield from merge(early, _rows_of_parts(late, self._order, starts, last), key=self._place)

    def close(self) -> None:
        """Release what the executors hold."""
        if self._is_persistent:
            self._kept.unpersist()


def collected_in_parts(dataframe: Any, *order: str) -> Generator[Any, None, None]:
    """Yield the rows of a DataFrame in an order; close the generator to release what the executors hold.

    Parameters as of `KeptPayloads`.
    """
    with closing(KeptPayloads(dataframe, *order)) as kept:
        yield from kept.rows()


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


def _rows_of_parts(rows: Any, order: Sequence[str], starts: list[Place], last: Place) -> Iterator[Any]:
    slots = tuple(partition_slots(len(starts), chooses_partitions(rows)))
    schema = StructType([StructField("part", IntegerType()), *rows.schema.fields])
    deal = _DealTask(tuple(order), starts, last, slots)
    dealt = rows.mapInArrow(portable(rows.sparkSession, deal), schema)
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
        The places at which the parts begin; rows before the first are left out.
    last
        The place of the last row of the last part.
    slots
        For each part, its slot in the shuffle.
    """

    order: tuple[str, ...]
    starts: list[Place]
    last: Place
    slots: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the slots of their parts in front."""
        for batch in batches:
            places = list(zip(*(batch.column(name).to_pylist() for name in self.order), strict=True))
            wanted = [row for row, place in enumerate(places) if self.starts[0] <= place <= self.last]
            slots = [self.slots[bisect_right(self.starts, places[row]) - 1] for row in wanted]
            if len(wanted) < len(places):
                batch = batch.take(pa.array(wanted, pa.int64()))
            columns = [pa.array(slots, pa.int32()), *batch.columns]
            yield pa.RecordBatch.from_arrays(columns, ["part", *batch.schema.names])
