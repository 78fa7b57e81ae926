"""Tasks of an analysis on each chunk of a log, as Spark tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from flinkcore.log.sources.chunks import ChunkTask
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.logs.log_input import ChunkSource
from flinkcore.spark.shipping.shared_values import Shared

GIVEN: Final = RowFormat("chunk long, piece long, payload binary")
"""Results for a chunk, by its number and that of the piece."""


@dataclass(frozen=True)
class ChunksTask:
    """Runs a task on the chunks of a Spark task; picklable.

    Attributes
    ----------
    source
        Gives the Spark task its chunks.
    task
        Task on each chunk.
    """

    source: ChunkSource
    task: Shared[ChunkTask]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each piece that the task gives for a chunk."""
        for group in self.source.of_task(batches):
            for chunk in group.chunks:
                for piece, payload in enumerate(self.task.value(chunk)):
                    yield GIVEN.row(chunk.index, piece, payload)
