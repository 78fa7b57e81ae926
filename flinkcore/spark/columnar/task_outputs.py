"""Outputs of reduce tasks: rows for Spark, Arrow blocks for the driver, Parquet files, or
counts only.

All but the first give rows of one form: which output, what kind, and a payload. The last row of a partition
is its counts, before it comes what it has written of a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import ipc

from flinkcore._internal.arrow.batch_bytes import pieces_of
from flinkcore.checkpoint import OperatorPart
from flinkcore.columnar.outputs.result_files import TaskFiles, TaskOutputs
from flinkcore.spark.columnar.reduce_task import OperatorReplay
from flinkcore.spark.columns.spark_types import SparkSchema
from flinkcore.spark.exchange.blocks import BLOCK_BYTES
from flinkcore.spark.exchange.row_format import RowFormat

TASK_ROWS: Final = RowFormat("kind string, output string, payload binary")
BATCH, PART, CHECKPOINT, COUNTS = "batch", "part", "checkpoint", "counts"

_task_row: Final = TASK_ROWS.row


def _last_rows(replay: OperatorReplay) -> Iterator[pa.RecordBatch]:
    for part in replay.parts:
        yield _task_row(CHECKPOINT, None, json.dumps(part.to_content()).encode())
    yield _task_row(COUNTS, None, json.dumps(replay.counts()).encode())


@dataclass(frozen=True)
class RowsOutput:
    """One output as rows of a DataFrame.

    Attributes
    ----------
    tag_id
        Id of the side output, or None for the results.
    schema
        Its columns.
    """

    tag_id: str | None
    schema: pa.Schema

    def batches(self, replay: OperatorReplay) -> Iterator[pa.RecordBatch]:
        """Batches with Spark's types."""
        spark_schema = SparkSchema(self.schema)
        for output in replay.run():
            if output.tag_id == self.tag_id:
                for batch in output.batches:
                    yield spark_schema.cast(batch)


@dataclass(frozen=True)
class BlocksOutput:
    """All outputs as Arrow streams, with the types that they have embedded."""

    def batches(self, replay: OperatorReplay) -> Iterator[pa.RecordBatch]:
        """Yield a row per batch, or piece of a large one, then the counts."""
        for output in replay.run():
            for batch in output.batches:
                for start, stop in pieces_of(batch, BLOCK_BYTES):
                    sink = pa.BufferOutputStream()
                    with ipc.new_stream(sink, batch.schema) as stream:
                        stream.write_batch(batch.slice(start, stop - start))
                    yield _task_row(BATCH, output.tag_id, sink.getvalue())
        yield from _last_rows(replay)


@dataclass(frozen=True)
class CountsOutput:
    """Counts only."""

    def batches(self, replay: OperatorReplay) -> Iterator[pa.RecordBatch]:
        """Yield the counts."""
        for _ in replay.run():
            pass
        yield from _last_rows(replay)


@dataclass(frozen=True)
class FilesOutput:
    """Files that the task itself writes.

    Attributes
    ----------
    outputs
        Where each wanted output goes.
    """

    outputs: TaskOutputs

    def batches(self, replay: OperatorReplay) -> Iterator[pa.RecordBatch]:
        """Yield a row with the name of each file, then the counts; only when all files are complete."""
        parts: TaskFiles
        with self.outputs.open_parts(replay.partition) as parts:
            if replay.partition == 0:
                parts.open_all(replay.schemas())
            for output in replay.run():
                parts.write(output.tag_id, output.batches)
        for tag_id, names in parts.names.items():
            for name in names:
                yield _task_row(PART, tag_id, name.encode())
        yield from _last_rows(replay)


def read_part(payload: Any) -> OperatorPart:
    """Return the part of a checkpoint in the payload of a `CHECKPOINT` row."""
    return OperatorPart.of_content(json.loads(bytes(payload)))


def read_batch(payload: Any) -> list[pa.RecordBatch]:
    """Return the batches in the payload of a `BATCH` row."""
    return list(ipc.open_stream(pa.py_buffer(payload)))
