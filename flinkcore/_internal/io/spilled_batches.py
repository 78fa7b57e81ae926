"""Record batches in a temporary file."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
from pyarrow import ipc

from flinkcore._internal.io.spill_file import SpillFile

BatchPlace: TypeAlias = tuple[int, int]
"""Offset and number of the bytes of a batch."""


class SpilledBatches:
    """Record batches in a temporary file, each of which is read again by its place.

    Parameters
    ----------
    what : str
        Name of the content in errors.
    """

    def __init__(self, what: str) -> None:
        self._file = SpillFile(what)

    def append(self, batch: pa.RecordBatch) -> BatchPlace:
        """Write a batch, and return its place; a SourceError if it does not fit."""
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        buffer = sink.getvalue()
        return self._file.append(buffer), buffer.size

    def read(self, place: BatchPlace) -> pa.RecordBatch:
        """Return the batch at a place; a SourceError if it cannot be read."""
        offset, n_bytes = place
        buffer = pa.allocate_buffer(n_bytes)
        self._file.read(offset, buffer)
        return ipc.open_stream(buffer).read_next_batch()

    def close(self) -> None:
        """Release the room on the disk; may be called again."""
        self._file.close()
