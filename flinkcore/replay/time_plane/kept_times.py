"""Times of events that the first pass keeps, so that what needs nothing else does not read and decode the log again."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._native.event_log import packed_integers, unpacked_integers
from flinkcore.replay.log.arrays import Int32s, Int64s
from flinkcore.replay.log.event_reader import TimedBatch


@dataclass(frozen=True)
class KeptBatch:
    """Times of a batch of events in log order, packed: see `flinkcore.replay.time_plane.chunk_clock.RecordedTimes`.

    Parameters
    ----------
    events
        How many.
    packed_timestamps, packed_arrivals
        The arrivals as recorded.
    narrow_codes
        Codes of splits, of as few bytes as all of them need; None: there is one split.
    split_values : list
        Its splits.
    """

    events: int
    packed_timestamps: npt.NDArray[np.uint8]
    packed_arrivals: npt.NDArray[np.uint8]
    narrow_codes: npt.NDArray[np.unsignedinteger[Any]] | None
    split_values: list[Any]

    @classmethod
    def of(cls, batch: TimedBatch, arrival_ms: Int64s) -> KeptBatch:
        """Pack the times of a batch, with its arrivals as recorded or by rate."""
        codes = None
        if len(batch.split_values) > 1:
            codes = batch.split_codes.astype(np.min_scalar_type(len(batch.split_values)))
        return cls(
            len(arrival_ms),
            packed_integers(batch.timestamp_ms),
            packed_integers(arrival_ms),
            codes,
            batch.split_values,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes, about."""
        of_codes = 0 if self.narrow_codes is None else self.narrow_codes.nbytes
        return self.packed_timestamps.nbytes + self.packed_arrivals.nbytes + of_codes

    @property
    def timestamp_ms(self) -> Int64s:
        return unpacked_integers(self.packed_timestamps, self.events)

    @property
    def arrival_ms(self) -> Int64s:
        return unpacked_integers(self.packed_arrivals, self.events)

    @property
    def split_codes(self) -> Int32s:
        if self.narrow_codes is None:
            return np.zeros(self.events, np.int32)
        return self.narrow_codes.astype(np.int32)


@dataclass
class KeptChunk:
    """Times of the events of a chunk.

    Attributes
    ----------
    batches
    filtered, rejected
        How many other rows the chunk has.
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

    def add(self, index: int, batch: TimedBatch, arrival_ms: Int64s) -> None:
        """Keep the next batch of a chunk, with its arrivals as recorded or by rate."""
        chunk = self._chunks[index]
        if chunk is None:
            return
        chunk.filtered += batch.filtered
        chunk.rejected += batch.rejected.total
        kept = KeptBatch.of(batch, arrival_ms)
        chunk.batches.append(kept)
        with self._lock:
            self._room -= kept.nbytes
            if self._room < 0:
                self._room += chunk.nbytes
                self._chunks[index] = None

    def chunk(self, index: int) -> KeptChunk | None:
        """The times of a chunk; None: they are not kept, and it must be read again."""
        return self._chunks.get(index)
