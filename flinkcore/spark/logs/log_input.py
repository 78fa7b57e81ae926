"""What the tasks of both passes read: chunks of files, or partitions of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext

from flinkcore.errors import SourceError
from flinkcore.replay.log.chunks import Chunk
from flinkcore.replay.log.plain_columns import plain_column
from flinkcore.spark.logs.fingerprint import Fingerprint

CHUNK_BYTES = 128 << 20
"""About the size of chunks, where the log is long enough to give some to every core."""

CHUNKS_PER_CORE = 2

_ADVICE = "checkpoint() or persist() the DataFrame before the replay, or write it to Parquet and replay that"
_NOT_ALIKE = f"Spark does not compute and order it alike every time. {_ADVICE}"
_OTHER_PARTITIONS = (
    f"Spark does not divide it alike every time (adaptive execution merges small partitions). {_ADVICE}"
)


class LogInput(Protocol):
    """The input of map tasks, which gives each its chunks; picklable."""

    @property
    def size_bytes(self) -> int | None:
        """About how much the tasks read; None if that is not known."""

    def chunks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
        """Yield the chunks of the task whose input the batches are."""


@dataclass(frozen=True)
class FileInput:
    """Chunks of files: a task gets their numbers from Spark, and reads the files itself."""

    all_chunks: tuple[Chunk, ...]

    @classmethod
    def of(cls, log: Any, cores: int) -> FileInput:
        """Cut a log so that every core gets some chunks, none of them much larger than `CHUNK_BYTES`."""
        chunks = log.chunks(cores * CHUNKS_PER_CORE)
        wanted = sum(chunk.size_bytes or 0 for chunk in chunks) // CHUNK_BYTES
        return cls(tuple(log.chunks(wanted) if wanted > len(chunks) else chunks))

    @property
    def size_bytes(self) -> int | None:
        """About how much the tasks read; None if that is not known."""
        sizes = [chunk.size_bytes for chunk in self.all_chunks if chunk.size_bytes is not None]
        return sum(sizes) if len(sizes) == len(self.all_chunks) else None

    def dataframe(self, spark: Any) -> Any:
        """Return a DataFrame with one row, and so one task, per chunk."""
        return spark.range(0, len(self.all_chunks), 1, len(self.all_chunks))

    def chunks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
        """Yield the chunks whose numbers the task's rows hold."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield self.all_chunks[number]


@dataclass(frozen=True)
class DataFrameInput:
    """Partitions of a DataFrame: a task gets their rows from Spark.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns of the log.
    checked : tuple of str
        Columns whose values must be the same each time that Spark computes a partition: those that decide which rows
        are events, and to which partition they go. Where other columns differ, an event has one of its values, and is
        still counted once.
    fingerprints : dict of int to Fingerprint, optional
        By the number of the partition, from the first pass. None in the first pass.
    number_column : str, optional
        The column that has the number of the partition, in a job with several logs, where Spark numbers the tasks of
        all logs together; a partition without rows is then left out. By default the number of the task is that of the
        partition.
    """

    schema: pa.Schema
    checked: tuple[str, ...]
    fingerprints: dict[int, Fingerprint] | None = None
    number_column: str | None = None

    @property
    def size_bytes(self) -> int | None:
        """None: the size of a DataFrame is not known before it is computed."""
        return None

    def chunks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[DataFrameChunk]:
        """Yield the task's partition as a chunk."""
        if self.number_column is None:
            context = TaskContext.get()
            assert context is not None
            partition = context.partitionId()
        else:
            first = next(batches, None)
            if first is None:
                return
            partition = first.column(self.number_column)[0].as_py()
            batches = chain([first], batches)
        if self.fingerprints is not None and partition not in self.fingerprints:
            raise partition_new(partition, len(self.fingerprints))
        yield DataFrameChunk.of(self, partition, batches)


class StaysWithoutRows:
    """Evaluates a DataFrame that had no rows in the first pass, as a task of Spark; picklable."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield nothing.

        Raises
        ------
        SourceError
            If there are rows.
        """
        if any(batch.num_rows for batch in batches):
            raise SourceError(f"the DataFrame has rows now and had none in the first pass: {_NOT_ALIKE}")
        yield from ()


def partition_new(partition: int, before: int) -> SourceError:
    """Return the error for a DataFrame with a partition that was not there in the first pass."""
    return SourceError(
        f"partition {partition} of the DataFrame was not there before, when it had {before:,} partitions: "
        f"{_OTHER_PARTITIONS}"
    )


def partitions_gone(now: int, before: int) -> SourceError:
    """Return the error for a DataFrame with fewer partitions than in the first pass."""
    return SourceError(
        f"the DataFrame has {now:,} partitions now and had {before:,} in the first pass: {_OTHER_PARTITIONS}"
    )


@dataclass(frozen=True)
class DataFrameChunk(Chunk):
    """Rows of a partition, which its task can read once."""

    source: DataFrameInput
    batches: Iterator[pa.RecordBatch]
    fingerprint: Fingerprint

    @classmethod
    def of(cls, source: DataFrameInput, partition: int, batches: Iterator[pa.RecordBatch]) -> DataFrameChunk:
        """Return the chunk of a partition."""
        label = f"partition {partition} of the DataFrame"
        return cls(partition, label, None, None, 0, source, batches, Fingerprint())

    def _read(
        self, columns: Sequence[str] | None, batch_rows: int, encoded: Sequence[str], warnings: list[str]
    ) -> Iterator[pa.RecordBatch]:
        names = list(self.source.schema.names if columns is None else columns)
        taken = list(dict.fromkeys([*names, *self.source.checked]))
        fields = [self.source.schema.field(name) for name in taken]
        for batch in self.batches:
            arrays = [plain_column(batch.column(wanted.name), wanted.type) for wanted in fields]
            plain = pa.RecordBatch.from_arrays(arrays, taken)
            self.fingerprint.add(plain, self.source.checked)
            self._compare(at_end=False)
            plain = plain.select(names)
            for start in range(0, plain.num_rows, batch_rows):
                yield plain.slice(start, batch_rows)
        self._compare(at_end=True)

    def _compare(self, at_end: bool) -> None:
        """Compare what has been read with the first pass, before the end only the number of rows."""
        if self.source.fingerprints is None:
            return
        first = self.source.fingerprints[self.index]
        if self.fingerprint == first if at_end else self.fingerprint.rows <= first.rows:
            return
        now = f"{self.fingerprint.rows:,} now" if at_end else f"more than {first.rows:,} now"
        unlike = ", ".join(map(repr, self.fingerprint.columns_unlike(first))) if at_end else ""
        raise SourceError(
            f"{self.label} has other rows than in the first pass ({now}, {first.rows:,} then"
            f"{f'; column {unlike} differs' if unlike else ''}): {_NOT_ALIKE}"
        )

    @property
    def file_name(self) -> str:
        """Name of the partition, for messages."""
        return self.label
