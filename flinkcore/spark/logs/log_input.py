"""Inputs of the tasks of both passes: chunks of files, or of a DataFrame that Spark keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from flinkcore.log.event_log import EventLog
from flinkcore.log.sources.chunks import Chunk

CHUNK_BYTES = 128 << 20
"""About the size of chunks, where the log is long enough to give some to every core."""

CHUNKS_PER_CORE = 2


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
    def of(cls, log: EventLog, cores: int) -> FileInput:
        """Cut a log so that every core gets some chunks, none of them much larger than `CHUNK_BYTES`."""
        chunks = log.unranked_chunks(cores * CHUNKS_PER_CORE)
        wanted = sum(chunk.size_bytes or 0 for chunk in chunks) // CHUNK_BYTES
        return cls(tuple(log.unranked_chunks(wanted) if wanted > len(chunks) else chunks))

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
