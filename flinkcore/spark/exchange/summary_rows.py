"""Rows in which tasks give back what they know about the times of chunks.

A chunk has a row with its times for each way that its log is used on, and rows with its records, each of a stretch of
time. They sort so that the times of a way come before its records, which come by time::

    way | first_ms      | chunk | number | last_ms       | payload
    ----+---------------+-------+--------+---------------+---------------------------
    0   | least         | 17    | 0      | least         | times of the chunk
    0   | 1,700,000,000 | 17    | 0      | 1,700,086,400 | its first block of records
    0   | 1,700,086,400 | 17    | 1      | 1,700,172,800 | its next one
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.time_plane.record_blocks import RecordBlock

SUMMARIES: Final = RowFormat("way int, first_ms long, chunk long, number int, last_ms long, payload binary")
SUMMARIES_ORDER: Final = ("way", "first_ms", "chunk", "number")

TIMES: Final = MIN_TIMESTAMP
"""In place of the first tick of records: the row has times, or counts."""


def times_row(times: ChunkTimes | ChunkCounts, way: int = 0) -> pa.RecordBatch:
    """Return a row with the times of a chunk, or with the counts of its rows."""
    return SUMMARIES.row(way, TIMES, times.index, 0, TIMES, times.to_ipc())


def records_row(
    chunk: int, number: int, block: RecordBlock, interval_ms: int, way: int = 0
) -> pa.RecordBatch:
    """Return a row with block `number` of the records of a chunk, at ticks of this interval."""
    first_ms, last_ms = block.span_ms
    return SUMMARIES.row(way, first_ms, chunk, number, last_ms, pa.py_buffer(block.packed(interval_ms)))


def summary_rows(
    chunk: int, summaries: Iterable[tuple[int, RecordBlock | ChunkTimes]], intervals_ms: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk.

    Parameters
    ----------
    chunk : int
        Index of the chunk.
    summaries : iterable of tuple
        As of `summarised_together`.
    intervals_ms : sequence of int
        For each way, the interval of the ticks of its records.
    """
    for number, (way, found) in enumerate(summaries):
        if isinstance(found, ChunkTimes):
            yield times_row(found, way)
        else:
            yield records_row(chunk, number, found, intervals_ms[way], way)


def packed_block(payload: Any) -> Int64s:
    """Return the packed block of records in a row, for `RecordBlock.unpacked`."""
    return np.frombuffer(payload, np.int64)
