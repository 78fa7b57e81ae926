"""The order of rows that lie in none, on Spark: it sorts what is compared of them, and they stay in their files.

Rows of the shuffle to the task that sorts a split, and of the one back to the chunk. Each chunk has a row -1, too, with
the pickled chunk, so that one without rows is not lost, and a task gets the chunks whose ranks it gets::

    slot | split_is_set | split | key_0_is_set | key_0 | ... | chunk | row | pickled
    slot | chunk | row | rank | is_tied | pickled
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle

from flinkcore.log.order.content_order import content_numbers
from flinkcore.log.order.row_order import RankedChunk, RowOrder, codes_of, ranks_of_sorted
from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.exchange.row_format import RowFormat, row_values
from flinkcore.spark.logs.dataframe_log import quoted
from flinkcore.spark.logs.kept_rows import KeptRows
from flinkcore.spark.logs.log_input import AboutChunks, ChunkSource, FileInput, TaskChunks, TaskInput
from flinkcore.spark.shipping.shared_values import Shared
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable, unpickled

_NO_ROW: Final = -1
_TYPES: Final = {pa.bool_(): "boolean", pa.int64(): "long", pa.binary(): "binary"}
_NOTHING: Final[dict[pa.DataType, Any]] = {pa.bool_(): False, pa.int64(): 0, pa.binary(): b""}

_RANKS: Final = RowFormat("slot int, chunk long, row long, rank long, is_tied boolean, pickled binary")
_PACKED: Final = RowFormat("chunk long, is_tied boolean, ranks binary, pickled binary")


def _compared_rows(order: RowOrder) -> RowFormat:
    compared = [f"{field.name} {_TYPES[field.type]}" for field in order.schema]
    return RowFormat(", ".join(["slot int", *compared, "chunk long", "row long", "pickled binary"]))


@dataclass(frozen=True)
class RowOrderTask:
    """Reads what is compared of the rows of chunks, and sends it to the task of their split; picklable.

    Attributes
    ----------
    order
        Order of the rows.
    source
        Gives the task its chunks.
    slots
        For each partition, its slot in the shuffle.
    """

    order: RowOrder
    source: ChunkSource
    slots: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the shuffle for the chunks of the task."""
        sent, slots = _compared_rows(self.order), np.array(self.slots, np.int32)
        for chunk in (chunk for group in self.source.of_task(batches) for chunk in group.chunks):
            nothing = [_NOTHING[kind] for kind in self.order.schema.types]
            yield sent.row(self.slots[0], *nothing, chunk.index, _NO_ROW, cloudpickle.dumps(chunk))
            first_row = 0
            for compared in self.order.read(chunk):
                n_rows = compared.num_rows
                partitions = content_numbers(compared.select(compared.schema.names[:2])) % len(slots)
                columns = [pa.array(slots[partitions]), *compared.columns, pa.repeat(chunk.index, n_rows)]
                columns += [pa.array(np.arange(first_row, first_row + n_rows)), pa.nulls(n_rows, pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, schema=sent.schema)
                first_row += n_rows


@dataclass(frozen=True)
class RankTask:
    """Counts the rows of splits, which come in order, and sends their ranks back to their chunks; picklable.

    Attributes
    ----------
    order
        Order of the rows.
    first_chunks
        For each task that gets chunks back, the first of them.
    slots
        For each such task, its slot in the shuffle.
    """

    order: RowOrder
    first_chunks: tuple[int, ...]
    slots: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the shuffle for the rows of the task's splits."""
        names = self.order.schema.names
        before, rank = pa.RecordBatch.from_pylist([], schema=self.order.schema), 0
        for batch in batches:
            is_row = pc.not_equal(batch.column("row"), _NO_ROW)
            rows, no_rows = batch.filter(is_row), batch.filter(pc.invert(is_row))
            if no_rows.num_rows:
                yield self._sent(no_rows, np.zeros(no_rows.num_rows, np.int64), is_tied=False)
            if rows.num_rows == 0:
                continue
            compared = rows.select(names)
            ranks, is_tied = ranks_of_sorted(codes_of(pa.Table.from_batches([before, compared])), rank)
            ranks = ranks[before.num_rows :]
            before, rank = compared.slice(rows.num_rows - 1), int(ranks[-1])
            yield self._sent(rows, ranks, is_tied)

    def _sent(self, rows: pa.RecordBatch, ranks: Any, is_tied: bool) -> pa.RecordBatch:
        chunks = rows.column("chunk")
        tasks = np.searchsorted(self.first_chunks, chunks.to_numpy(), side="right") - 1
        slots = pa.array(np.array(self.slots, np.int32)[tasks])
        columns = [slots, chunks, rows.column("row"), pa.array(ranks), pa.repeat(is_tied, rows.num_rows)]
        columns.append(rows.column("pickled"))
        return pa.RecordBatch.from_arrays(columns, schema=_RANKS.schema)


def packed_ranks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the ranks of chunks, which come in the order of their rows, as rows of few: a task."""
    for batch in batches:
        chunks, rows, ranks = (batch.column(name).to_numpy() for name in ("chunk", "row", "rank"))
        ties = batch.column("is_tied").to_numpy(zero_copy_only=False)
        bounds = np.flatnonzero(np.diff(chunks)) + 1
        for start, stop in pairwise([0, *bounds.tolist(), len(chunks)] if len(chunks) else []):
            of_rows = ranks[start:stop][rows[start:stop] != _NO_ROW]
            pickled = batch.column("pickled")[start].as_py()
            yield _PACKED.row(int(chunks[start]), bool(ties[start:stop].any()), of_rows.tobytes(), pickled)


@dataclass(frozen=True)
class RankedInput:
    """Chunks of files and the ranks of their rows, which Spark keeps; a `LogInput`.

    Attributes
    ----------
    files
        The chunks.
    order
        Order of their rows.
    rows
        The chunks and ranks, as `packed_ranks` gives them.
    """

    files: FileInput
    order: RowOrder
    rows: Any

    @property
    def size_bytes(self) -> int | None:
        """About how much the tasks read; None if that is not known."""
        return self.files.size_bytes

    def for_tasks(self, spark: Any, about: AboutChunks | None = None) -> TaskInput:
        """Return the input of tasks; see `LogInput`."""
        return TaskInput(RankedChunks(self.order, Shared(about)), self.rows)


@dataclass(frozen=True)
class RankedChunks:
    """Unpickles the chunks of a task with the ranks of their rows; a `ChunkSource`.

    Attributes
    ----------
    order
        Order of the rows.
    about
        Facts about the chunks of all tasks, or None.
    """

    order: RowOrder
    about: Shared[AboutChunks | None]

    def of_task(self, batches: Iterator[pa.RecordBatch]) -> Iterator[TaskChunks]:
        """Yield the chunks of the task."""
        rows = row_values(batches, "chunk", "ranks", "pickled")
        first = next(rows, None)
        if first is not None:
            yield TaskChunks(first[0], self._chunks(chain([first], rows)), self.about.value)

    def _chunks(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[Chunk]:
        for _, packed in groupby(rows, key=itemgetter(0)):
            of_chunk = list(packed)
            ranks = [np.frombuffer(each, np.int64) for _, each, _ in of_chunk]
            yield RankedChunk.of(unpickled(of_chunk[0][2]), self.order, partial(np.concatenate, ranks))


def kept_ranks(spark: Any, files: FileInput, order: RowOrder) -> KeptRows:
    """Find the ranks of all rows; Spark keeps them, those of a chunk in one partition.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    files : FileInput
        All chunks of the log.
    order : RowOrder
        Order of its rows.
    """
    kept = _evaluated(spark, files, order)
    with task_errors_raised():
        ties = kept.dataframe.where("is_tied").select(quoted("chunk")).collect()
    if not ties:
        return kept
    kept.release()
    return _evaluated(spark, files, replace(order, by_content=True))


def _evaluated(spark: Any, files: FileInput, order: RowOrder) -> KeptRows:
    given, tasks = files.for_tasks(spark), files.tasks
    slots = tuple(partition_slots(len(tasks), chooses_partitions(given.dataframe)))
    first_chunks = tuple(files.all_chunks[task.start].index for task in tasks)
    compare, rank = RowOrderTask(order, given.source, slots), RankTask(order, first_chunks, slots)
    compared = given.dataframe.mapInArrow(portable(spark, compare), _compared_rows(order).struct_type)
    ordered = to_partitions(compared, len(tasks), "slot").sortWithinPartitions(*order.schema.names)
    ranked = ordered.mapInArrow(portable(spark, rank), _RANKS.struct_type)
    by_chunk = to_partitions(ranked, len(tasks), "slot").sortWithinPartitions("chunk", "row")
    return KeptRows.evaluated(
        by_chunk.mapInArrow(portable(spark, packed_ranks), _PACKED.struct_type),
        "the order of the rows of a log for a replay: write them in their order, and leave position= out",
    )
