"""Inputs of the tasks of both passes: chunks of files, or of a DataFrame that Spark keeps.

A task gets its own chunks, and facts about these alone. Rows of the DataFrame with them::

    slot                      | task | chunks
    --------------------------+------+--------------------------------------
    where the shuffle puts it | 3    | pickled: chunks 96 to 127, their times
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark import cloudpickle

from flinkcore._internal.values.memory_limits import PACKED_BYTES
from flinkcore.log.event_log import EventLog
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.packed_files import Packing
from flinkcore.log.sources.table_chunks import TableChunk
from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.exchange.row_format import RowFormat, row_values
from flinkcore.spark.logs.task_packing import UNPACKED, TaskPacking
from flinkcore.spark.sessions.session import spark_version
from flinkcore.spark.shipping.tasks import unpickled
from flinkcore.time_plane.timeline import TimePlane

INLINE_BYTES = 64 << 10
"""Up to so many bytes, the chunks of all tasks go with each of them: a shuffle takes longer."""

_ROWS: Final = RowFormat("slot int, task int, chunks binary")


class AboutChunks(Protocol):
    """Facts about the chunks of a log that tasks need; picklable."""

    def of_chunks(self, chunks: Sequence[int]) -> Any:
        """Return the same of some consecutive chunks, given by their indices in ascending order."""


@dataclass(frozen=True)
class ReadingTimes:
    """Times by which the second pass reads chunks.

    Attributes
    ----------
    time_planes : tuple of TimePlane
        For reading, one for each way on which the log is used.
    """

    time_planes: tuple[TimePlane, ...]

    @classmethod
    def of(cls, *time_planes: TimePlane) -> ReadingTimes:
        """Return what reading needs of the results of the first pass."""
        return cls(tuple(each.for_reading() for each in time_planes))

    def of_chunks(self, chunks: Sequence[int]) -> ReadingTimes:
        """Return the times of some chunks; see `AboutChunks`."""
        return ReadingTimes(tuple(each.for_chunks(chunks) for each in self.time_planes))


@dataclass(frozen=True)
class TaskChunks:
    """The chunks that a task reads.

    Attributes
    ----------
    task : int
        Number of the task among those that read the log.
    chunks : iterable of Chunk
        In log order; to be read once.
    about : AboutChunks or None
        As was given to `LogInput.for_tasks`; maybe of these chunks only.
    """

    task: int
    chunks: Iterable[Chunk]
    about: Any


class ChunkSource(Protocol):
    """Source from which a task gets its chunks; picklable."""

    def of_task(self, batches: Iterator[pa.RecordBatch]) -> Iterator[TaskChunks]:
        """Yield the chunks of the task whose input the batches are; nothing if it has none."""


@dataclass(frozen=True)
class TaskInput:
    """Input of tasks that read a log.

    Attributes
    ----------
    source : ChunkSource
        Gives each task its chunks.
    dataframe : pyspark.sql.DataFrame
        The rows from which it does.
    """

    source: ChunkSource
    dataframe: Any


class LogInput(Protocol):
    """The input of a log's tasks, as the driver has it."""

    @property
    def size_bytes(self) -> int | None:
        """About how much the tasks read; None if that is not known."""

    def for_tasks(self, spark: Any, about: AboutChunks | None = None) -> TaskInput:
        """Return the input of tasks.

        Parameters
        ----------
        spark : pyspark.sql.SparkSession
        about : AboutChunks, optional
            Facts about the chunks that the tasks need.
        """


@dataclass(frozen=True)
class FileInput:
    """Chunks of files, which tasks read themselves.

    Attributes
    ----------
    all_chunks : tuple of Chunk
        In log order.
    packing : TaskPacking
        Rule by which they are packed into tasks.
    inline_bytes : int
        Most bytes of chunks that go with each task.
    """

    all_chunks: tuple[Chunk, ...]
    packing: TaskPacking = UNPACKED
    inline_bytes: int = INLINE_BYTES

    @classmethod
    def of(cls, log: EventLog, packing: TaskPacking, packed_bytes: int = PACKED_BYTES) -> FileInput:
        """Cut a log so that there are as many chunks as tasks at least, none of them much larger than a task's.

        Parameters
        ----------
        log : EventLog
        packing : TaskPacking
        packed_bytes : int
            Bytes of small files that share a chunk, at most.
        """
        wanted = max(packing.least_tasks, log.size_bytes // packing.most_bytes)
        of_files = Packing(packed_bytes, most_files=packing.most_files)
        return cls(tuple(log.unranked_chunks(wanted, of_files)), packing)

    @property
    def size_bytes(self) -> int | None:
        """About how much the tasks read; None if that is not known."""
        sizes = [chunk.size_bytes for chunk in self.all_chunks if chunk.size_bytes is not None]
        return sum(sizes) if len(sizes) == len(self.all_chunks) else None

    @property
    def tasks(self) -> tuple[range, ...]:
        """Places of the chunks of each task."""
        sizes = [chunk.size_bytes for chunk in self.all_chunks]
        return self.packing.tasks(sizes, [len(chunk.parts) for chunk in self.all_chunks])

    def for_tasks(self, spark: Any, about: AboutChunks | None = None) -> TaskInput:
        """Return the input of tasks; see `LogInput`."""
        groups = self.groups(about)
        on_range = spark.range(0, len(groups), 1, len(groups))
        # Rows of a table would lie in the driver's heap; a large task lies in a file, from which Spark broadcasts it.
        have_rows = any(isinstance(chunk, TableChunk) for chunk in self.all_chunks)
        if have_rows or sum(map(len, groups)) <= self.inline_bytes:
            return TaskInput(ChunkGroups(groups), on_range)
        slots = partition_slots(len(groups), chooses_partitions(on_range))
        table = pa.Table.from_batches([_ROWS.batch(slots, range(len(groups)), groups)])
        rows = table if spark_version() >= (4, 0) else [tuple(row.values()) for row in table.to_pylist()]
        dataframe = spark.createDataFrame(rows, _ROWS.struct_type)
        return TaskInput(ChunkGroups(()), to_partitions(dataframe, len(groups), "slot"))

    def groups(self, about: AboutChunks | None = None) -> tuple[bytes, ...]:
        """Return the chunks of each task, pickled, with the facts about them."""
        return tuple(self._group(self.all_chunks[each.start : each.stop], about) for each in self.tasks)

    def _group(self, chunks: Sequence[Chunk], about: AboutChunks | None) -> bytes:
        of_these = None if about is None else about.of_chunks([chunk.index for chunk in chunks])
        pickled: bytes = cloudpickle.dumps((chunks, of_these))
        return pickled


@dataclass(frozen=True)
class ChunkGroups:
    """Unpickles the chunks of tasks; a `ChunkSource`.

    Attributes
    ----------
    inline : tuple of bytes
        The pickled chunks of each task, or none if they come as rows of Spark's.
    """

    inline: tuple[bytes, ...]

    def of_task(self, batches: Iterator[pa.RecordBatch]) -> Iterator[TaskChunks]:
        """Yield the chunks of the task."""
        numbered: Iterator[tuple[Any, ...]]
        if self.inline:
            numbered = (
                (task, self.inline[task]) for batch in batches for task in batch.column(0).to_pylist()
            )
        else:
            numbered = row_values(batches, "task", "chunks")
        for task, pickled in numbered:
            yield TaskChunks(task, *unpickled(pickled))
