"""The splits of chunks: their numbers in the log, and the ticks from which their records are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.errors import DataError
from flinkcore.time_plane.record_blocks import RecordBlock


@dataclass(frozen=True, eq=False)
class ChunkSplits:
    """The splits of all chunks of a log, by which blocks of records are read as parts of the log.

    Parameters
    ----------
    chunks : numpy.ndarray of int64, shape (n_chunks,)
        Ascending indices of the chunks.
    offsets : numpy.ndarray of int64, shape (n_chunks + 1,)
        Entries of chunk i in `numbers`: offsets[i] up to offsets[i + 1].
    numbers : numpy.ndarray of int32, shape (n_entries,)
        For each split of a chunk, its number among those of the log.
    floor_offsets : numpy.ndarray of int64, shape (n_chunks + 1,)
        Entries of chunk i in `floors`: one for each of its splits, or none.
    floors : numpy.ndarray of int64
        For chunks in which an event was recorded before an earlier chunk had ended: for each split the tick of the
        last arrival before the chunk. Earlier events are read at that tick.
    """

    chunks: Int64s
    offsets: Int64s
    numbers: Int32s
    floor_offsets: Int64s
    floors: Int64s

    @classmethod
    def of(cls, chunks: Iterable[tuple[int, Int32s, Int64s | None]]) -> ChunkSplits:
        """Return the splits of chunks, given in ascending order, each with its numbers and floors, or None without."""
        indices, numbers, floors = [], [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        for index, of_chunk, ticks in chunks:
            indices.append(index)
            numbers.append(of_chunk)
            floors.append(floors[0] if ticks is None else ticks)
        return cls(
            np.array(indices, np.int64),
            np.cumsum([len(each) for each in numbers], dtype=np.int64),
            np.concatenate(numbers),
            np.cumsum([len(each) for each in floors], dtype=np.int64),
            np.concatenate(floors),
        )

    def in_log(self, chunk: int, block: RecordBlock) -> RecordBlock:
        """Return a block of a chunk with the numbers that its splits have in the log."""
        numbers = self.numbers[self._entries(chunk, self.offsets)]
        return replace(block, split=numbers[block.split])

    def read_ms(self, chunk: int, block: RecordBlock) -> Int64s:
        """Return the tick from which each part of a block of a chunk is read; its splits have the chunk's numbers."""
        floors = self.floors[self._entries(chunk, self.floor_offsets)]
        return np.maximum(block.first_tick_ms, floors[block.split]) if len(floors) else block.first_tick_ms

    def last_floors(self, chunks: Int64s) -> Int64s:
        """Return the latest floor of each of these chunks; -2**63 without floors."""
        latest = np.full(len(self.chunks), MIN_TIMESTAMP)
        has_floors = np.flatnonzero(np.diff(self.floor_offsets))
        if len(has_floors):
            latest[has_floors] = np.maximum.reduceat(self.floors, self.floor_offsets[has_floors])
        found: Int64s = latest[np.searchsorted(self.chunks, chunks)]
        return found

    def _entries(self, chunk: int, offsets: Int64s) -> slice:
        at = int(np.searchsorted(self.chunks, chunk))
        return slice(int(offsets[at]), int(offsets[at + 1]))

    def to_ipc(self) -> bytes:
        """Return them as an Arrow IPC stream."""
        return write_columns("ChunkSplits", {}, vars(self))

    @classmethod
    def from_ipc(cls, data: Any) -> ChunkSplits:
        """Return what `to_ipc` wrote, without a copy of this buffer; a DataError if it is something else."""
        _, columns = read_columns("ChunkSplits", data)
        found: Mapping[str, Any] = {name: column.to_numpy() for name, column in columns.items()}
        try:
            return cls(**found)
        except TypeError as error:
            raise DataError(f"these {len(data)} bytes are not ChunkSplits: {error}") from error
