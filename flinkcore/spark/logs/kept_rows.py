"""DataFrames that Spark has evaluated once for a replay, and keeps as Arrow blocks.

Spark may compute a DataFrame otherwise each time: adaptive execution merges partitions, a shuffle gives its rows in
another order, `rand()` and external sources other values. So a replay evaluates the columns that it needs once, and
both passes read what was kept. The rows of the kept DataFrame::

    chunk | is_told | payload                                               | others
    ------+---------+-------------------------------------------------------+----------------
    0     | false   | null, so that a partition without rows has a row here |
    0     | false   | rows of partition 0, as Arrow streams, narrowed       |
    0     | false   | more rows of it                                       |
    0     | true    | records of its rows                                   | as of `SUMMARIES`
    0     | true    | times of its rows, or their number per split          | as of `SUMMARIES`
    1     | false   | null                                                  |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyarrow import ipc
from pyspark import TaskContext
from pyspark.errors import PySparkNotImplementedError

from flinkcore._internal.arrow.nested_fields import named_field
from flinkcore._internal.arrow.plain_columns import plain_column
from flinkcore.errors import ConfigurationError
from flinkcore.log.decoding.decoded_chunk import decoded_chunk
from flinkcore.log.event_log import EventLog
from flinkcore.log.formats.bad_records import BAD_RECORD, BAD_RECORD_TYPE
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.table_chunks import TableChunk
from flinkcore.spark.exchange.narrow import narrow_batch, wide_batch
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.exchange.summary_rows import SUMMARIES, records_row, times_row
from flinkcore.spark.logs.counted_batches import counting_session, in_session
from flinkcore.spark.logs.log_input import AboutChunks, TaskChunks, TaskInput
from flinkcore.spark.shipping.shared_values import Shared
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.chunk_times import ChunkCounts
from flinkcore.time_plane.record_blocks import RecordBlock
from flinkcore.time_plane.time_pass import TimePass

PACKED_BYTES = 8 << 20
"""Rows are kept in blocks of about this size."""

HELD_ROWS = 1 << 17
"""Rows of a batch of a partition that is held to be read again."""

_KEPT: Final = RowFormat(
    "is_told boolean, way int, first_ms long, chunk long, number int, last_ms long, payload binary"
)


def _row_to_keep(chunk: int, payload: pa.Buffer | None) -> pa.RecordBatch:
    return _KEPT.row(False, None, None, chunk, None, None, payload)


def _reported(row: pa.RecordBatch) -> pa.RecordBatch:
    """Return a row of the format `SUMMARIES` as one that is kept."""
    return pa.RecordBatch.from_arrays([pa.array([True]), *row.columns], schema=_KEPT.schema)


@dataclass
class RowPacker:
    """Packs batches into blocks, each batch as an Arrow stream of its own, since each is narrowed otherwise."""

    chunk: int
    _sink: pa.BufferOutputStream = field(default_factory=pa.BufferOutputStream)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        if batch.num_rows:
            narrow = narrow_batch(batch)
            with ipc.new_stream(self._sink, narrow.schema) as stream:
                stream.write_batch(narrow)

    def take(self, least_bytes: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield what was added as a row to keep, if it has so many bytes."""
        if self._sink.tell() < least_bytes:
            return
        yield _row_to_keep(self.chunk, self._sink.getvalue())
        self._sink = pa.BufferOutputStream()


def _batches(block: pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the batches that were packed into a block."""
    reader = pa.BufferReader(block)
    while reader.tell() < block.size:
        for batch in ipc.open_stream(reader):
            yield wide_batch(batch)


@dataclass(frozen=True)
class PartitionChunk(Chunk):
    """The rows of a partition, which can be read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    @classmethod
    def of(cls, partition: int, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> PartitionChunk:
        """Return the chunk of a partition; the schema is that of the log."""
        return cls(partition, f"partition {partition} of the DataFrame", None, None, 0, schema, batches)

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        wanted = self.schema if columns is None else [named_field(self.schema, name) for name in columns]
        for batch in self.batches:
            arrays = [plain_column(batch.column(each.name), each.type) for each in wanted]
            plain = pa.RecordBatch.from_arrays(arrays, [each.name for each in wanted])
            for start in range(0, plain.num_rows, batch_rows):
                yield plain.slice(start, batch_rows)

    @property
    def finds_bad_records(self) -> bool:
        return BAD_RECORD in self.schema.names

    @property
    def is_checked(self) -> bool:
        return True

    def held(self, columns: Sequence[str]) -> Chunk:
        batches = list(self.read(columns, HELD_ROWS))
        table = pa.Table.from_batches(
            batches, pa.schema([named_field(self.schema, name) for name in columns])
        )
        return TableChunk(self.index, self.label, table.num_rows, None, 0, table)


@dataclass(frozen=True)
class PackTask:
    """Packs decoded rows of a partition, and reports their times, or their number if arrivals follow from positions.

    Picklable.

    Attributes
    ----------
    time_pass
    names
        Names of the columns that come, which have numbers for Spark.
    kept
        Names of the columns of the log that the job reads.
    """

    time_pass: TimePass
    names: tuple[str, ...]
    kept: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows to keep."""
        context = TaskContext.get()
        assert context is not None
        packer = RowPacker(context.partitionId())
        log = self.time_pass.timed.log
        schema = kept_schema(log)
        named: Iterator[pa.RecordBatch] = (
            pa.RecordBatch.from_arrays(numbered.columns, self.names) for numbered in batches
        )
        if log.decoding:
            chunk = PartitionChunk.of(packer.chunk, log.source.schema, named)
            kept = [*self.kept, *(name for name in schema.names if name == BAD_RECORD)]
            named = decoded_chunk(log.decoding, chunk, log.finds_bad_records).read(kept, HELD_ROWS)

        def packed() -> Iterator[pa.RecordBatch]:
            for batch in named:
                packer.add(batch)
                yield batch

        chunk = PartitionChunk.of(packer.chunk, schema, packed())
        yield _row_to_keep(chunk.index, None)
        if self.time_pass.rate is None:
            for report in self._summaries(chunk):
                yield from packer.take(PACKED_BYTES)
                if report is not None:
                    yield _reported(report)
            yield from packer.take()
            return
        counts = ChunkCounts(chunk.index, {})
        for timed in self.time_pass.reader.read(chunk):
            counts.add(timed)
            yield from packer.take(PACKED_BYTES)
        yield from packer.take()
        yield _reported(times_row(counts))

    def _summaries(self, chunk: Chunk) -> Iterator[pa.RecordBatch | None]:
        """Yield reports, or None between batches."""
        blocks: list[RecordBlock] = []
        builder = self.time_pass.builder(chunk, None, [], blocks.append)
        interval_ms, number = self.time_pass.summary_interval_ms, 0
        for timed in self.time_pass.reader.read(chunk):
            builder.add(timed)
            yield None
            while blocks:
                yield records_row(chunk.index, number, blocks.pop(0), interval_ms)
                number += 1
        times = builder.finish()
        for block in blocks:
            yield records_row(chunk.index, number, block, interval_ms)
            number += 1
        yield times_row(times)


def kept_schema(log: EventLog) -> pa.Schema:
    """Return the columns of rows that are kept, of which a job may lack some."""
    if log.decoding and log.finds_bad_records:
        return log.schema.append(pa.field(BAD_RECORD, BAD_RECORD_TYPE))
    return log.schema


@dataclass(frozen=True)
class KeptInput:
    """Partitions of a DataFrame that Spark keeps; a `LogInput`.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns of the log, as of `kept_schema`.
    rows : pyspark.sql.DataFrame
        Blocks of rows, by partition.
    """

    schema: pa.Schema
    rows: Any

    @property
    def size_bytes(self) -> int | None:
        """Return None, as it is not known."""
        return None

    def for_tasks(self, spark: Any, about: AboutChunks | None = None) -> TaskInput:
        """Return the input of tasks; see `LogInput`."""
        return TaskInput(KeptPartitions(self.schema, Shared(about)), self.rows)


@dataclass(frozen=True)
class KeptPartitions:
    """Reads the partition of a task, whose blocks it gets from Spark; a `ChunkSource`.

    Attributes
    ----------
    schema : pyarrow.Schema
        As of `KeptInput`.
    about : Shared
        Facts about the chunks of all tasks, or None.
    """

    schema: pa.Schema
    about: Shared[AboutChunks | None]

    def of_task(self, batches: Iterator[pa.RecordBatch]) -> Iterator[TaskChunks]:
        """Yield the partition."""
        blocks = (block for batch in batches for block in _blocks(batch))
        for chunk, of_chunk in groupby(blocks, key=itemgetter(0)):
            rows = chain.from_iterable(_batches(block) for _, block in of_chunk if block is not None)
            yield TaskChunks(chunk, [PartitionChunk.of(chunk, self.schema, rows)], self.about.value)


_RELEASES: Final[SimpleQueue[KeptRows]] = SimpleQueue()
"""Rows that are not used any more."""


@cache
def release_in_a_thread() -> None:
    """Start the thread that frees blocks; none can be started while an object is destroyed.

    It is none of a replay's, whose names begin with flinkcore: it lives as long as the process.
    """
    Thread(target=_release_all, name="release-of-kept-rows", daemon=True).start()


def _release_all() -> None:
    while True:
        with suppress(Exception):  # the JVM has ended
            _RELEASES.get().release()


def _blocks(kept: pa.RecordBatch) -> Iterator[tuple[int, pa.Buffer | None]]:
    payloads = kept.column("payload")
    for row, chunk in enumerate(kept.column("chunk").to_pylist()):
        yield chunk, payloads[row].as_buffer()


@dataclass(frozen=True)
class KeptRows:
    """A DataFrame that Spark has evaluated and keeps.

    Attributes
    ----------
    dataframe : pyspark.sql.DataFrame
    """

    dataframe: Any

    @classmethod
    def of(cls, spark: Any, dataframe: Any, time_pass: TimePass, columns: tuple[str, ...]) -> KeptRows:
        """Evaluate a DataFrame.

        Parameters
        ----------
        spark : pyspark.sql.SparkSession
        dataframe : pyspark.sql.DataFrame
            With the columns that tasks read.
        time_pass : TimePass
            Over the log that it is.
        columns : tuple of str
            Columns of the log that tasks read.

        Raises
        ------
        ConfigurationError
            With Spark Connect 3.5, which cannot keep rows without computing them again where they are lost.
        """
        names = tuple(dataframe.columns)
        task = PackTask(time_pass, names, columns)
        # PySpark's mapInArrow reads names as expressions, and fails at what these have in them.
        numbered = dataframe.toDF(*map(str, range(len(names))))
        packed = numbered.mapInArrow(portable(spark, task), _KEPT.struct_type)
        counting = counting_session(numbered)
        kept = cls.evaluated(
            packed if counting is None else in_session(packed, counting),
            "the rows of a DataFrame for a replay: write it with dataframe.write.parquet(path) and take "
            "from_event_log(path)",
        )
        return kept if counting is None else cls(in_session(kept.dataframe, spark._jsparkSession))

    @classmethod
    def evaluated(cls, dataframe: Any, purpose: str) -> KeptRows:
        """Evaluate a DataFrame as it is.

        Parameters
        ----------
        dataframe : pyspark.sql.DataFrame
        purpose : str
            For what it is kept, and what else a user can do, to go on with.

        Raises
        ------
        ConfigurationError
            As of `of`.
        """
        release_in_a_thread()
        with task_errors_raised():
            try:
                return cls(dataframe.localCheckpoint())
            except PySparkNotImplementedError as error:
                raise ConfigurationError(f"Spark Connect 3.5 cannot keep {purpose}, or Spark 4") from error

    def release_later(self) -> None:
        """Free the blocks in another thread; may be called while an object is destroyed.

        Python may destroy objects during a call of Py4J, whose connection then waits for an answer: another call of the
        same thread would take that.
        """
        _RELEASES.put(self)

    def release(self) -> None:
        """Free the blocks; with Spark Connect, Spark does so when nothing refers to the DataFrame."""
        if not hasattr(self.dataframe, "_jdf"):
            return
        context = self.dataframe.sparkSession.sparkContext
        with suppress(Py4JError, AttributeError):  # the session has ended, and its blocks with it
            rdd = self.dataframe._jdf.queryExecution().analyzed().rdd()
            context._jsc.sc().unpersistRDD(rdd.id(), False)

    @property
    def rows(self) -> Any:
        """Blocks of rows, by partition."""
        return self.dataframe.where("NOT is_told")

    @property
    def told(self) -> Any:
        """Reports of the tasks on all partitions, in the format `SUMMARIES`."""
        return self.dataframe.where("is_told").select(*(f"`{name}`" for name in SUMMARIES.schema.names))
