"""Times of events that the first pass keeps, so that what needs nothing else does not read and decode the log again."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.event_log import packed_integers, unpacked_integers
from flinkcore.log.event_reader import TimedBatch
from flinkcore.time_plane.chunk_times import TimeColumns, TimesBySplit


@dataclass(frozen=True)
class KeptBatch:
    """Times of a batch of events, packed.

    Parameters
    ----------
    split_values, offsets
        As of `TimesBySplit`.
    packed_arrivals, packed_timestamps
        For `flinkcore._native.event_log.unpacked_integers`.
    """

    split_values: list[Any]
    offsets: Int64s
    packed_arrivals: npt.NDArray[np.uint8]
    packed_timestamps: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, times: TimesBySplit) -> KeptBatch:
        """Pack the times of a batch."""
        packed = packed_integers(times.arrival_ms), packed_integers(times.timestamp_ms)
        return cls(times.split_values, times.offsets, *packed)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes, about."""
        return self.offsets.nbytes + self.packed_arrivals.nbytes + self.packed_timestamps.nbytes

    def times(self, there: TimeColumns) -> TimesBySplit:
        """Return the times that were packed, in those columns."""
        events = int(self.offsets[-1])
        arrivals, timestamps = there.of(events)[:, :events]
        unpacked_integers(self.packed_arrivals, arrivals)
        unpacked_integers(self.packed_timestamps, timestamps)
        return TimesBySplit(self.split_values, self.offsets, arrivals, timestamps)


@dataclass
class KeptChunk:
    """Times of the events of a chunk.

    Attributes
    ----------
    batches
    filtered, rejected
        Numbers of other rows of the chunk.
    """

    batches: list[KeptBatch]
    filtered: int = 0
    rejected: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes, about."""
        return sum(batch.nbytes for batch in self.batches)


class KeptTimes:
    """Keeps times of events, chunk by chunk, each whole or not at all; for threads that read one chunk each.

    Parameters
    ----------
    most_bytes : int
        A chunk that exceeds it is given up.
    """

    def __init__(self, most_bytes: int) -> None:
        self._room = most_bytes
        self._lock = Lock()
        self._chunks: dict[int, KeptChunk | None] = {}

    def begin(self, index: int) -> None:
        """Begin a chunk, of which all batches follow."""
        self._chunks[index] = KeptChunk([])

    def add(self, index: int, batch: TimedBatch, times: TimesBySplit) -> None:
        """Keep the times of the next batch of a chunk."""
        chunk = self._chunks[index]
        if chunk is None:
            return
        chunk.filtered += batch.filtered
        chunk.rejected += batch.rejected.total
        kept = KeptBatch.of(times)
        chunk.batches.append(kept)
        with self._lock:
            self._room -= kept.nbytes
            if self._room < 0:
                self._room += chunk.nbytes
                self._chunks[index] = None

    def chunk(self, index: int) -> KeptChunk | None:
        """Return the times of a chunk, or None if they are not kept, so that it must be read again."""
        return self._chunks.get(index)
