"""Events that wait for earlier ones in a temporary file, in pieces that are read again one by one."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from flinkcore._internal.io.spilled_batches import BatchPlace, SpilledBatches

Place: TypeAlias = tuple[int, int, int]
"""Place in the total order of a replay: arrival, split, position."""


class _Piece(NamedTuple):
    """Piece of the file; pieces with the same first place come in the order in which they were written."""

    first: Place
    number: int
    last_ms: int
    lies_at: BatchPlace


class ParkedEvents:
    """Pieces of events in a temporary file, which come back in the order of their first places.

    Each piece lies in total order. Different pieces may overlap.
    """

    def __init__(self) -> None:
        self._file: SpilledBatches | None = None
        self._pieces: list[_Piece] = []
        self._written = 0

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def first(self) -> Place | None:
        """Place of the first event, or None if there is no event."""
        return self._pieces[0].first if self._pieces else None

    def most_overlapping(self) -> int:
        """Return how many pieces overlap in arrival at most: so many must be in memory at one time."""
        first_ms = np.sort(np.array([piece.first[0] for piece in self._pieces], np.int64))
        last_ms = np.sort(np.array([piece.last_ms for piece in self._pieces], np.int64))
        ended = np.searchsorted(last_ms, first_ms, side="left")
        return int((np.arange(1, len(first_ms) + 1) - ended).max(initial=0))

    def add(self, piece: pa.RecordBatch, first: Place, last_ms: int) -> None:
        """Write a piece.

        Parameters
        ----------
        piece
            Columns of the events.
        first
            Place of its first event.
        last_ms
            Arrival of its last event, ms since the epoch.

        Raises
        ------
        SourceError
            If the temporary file cannot be written.
        """
        if self._file is None:
            self._file = SpilledBatches("events that wait for earlier ones of other files")
        heappush(self._pieces, _Piece(first, self._written, last_ms, self._file.append(piece)))
        self._written += 1

    def take(self) -> tuple[pa.RecordBatch, int]:
        """Return the piece with the first place of all, and its bytes; SourceError if it cannot be read."""
        piece = heappop(self._pieces)
        assert self._file is not None
        events = self._file.read(piece.lies_at)
        if not self._pieces:
            self.close()
        return events, piece.lies_at[1]

    def close(self) -> None:
        """Release the file; events may be added again."""
        self._pieces = []
        if self._file is not None:
            self._file.close()
            self._file = None
