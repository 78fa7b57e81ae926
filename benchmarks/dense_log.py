"""A dense log as the first pass sees it: the times of chunks, and their records, without events.

Every split has a step at every tick of 200 ms, its watermark a random part of the interval behind the clock. A chunk
has all splits in a stretch of time. 1,000 splits and 432,000 ticks are a day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flinkcore.time_plane.chunk_times import ChunkTimes
from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits

INTERVAL_MS = 200
BYTES_OF_STEP = 24
"""Bytes of a record while its task holds it."""


@dataclass(frozen=True)
class DenseLog:
    """A log; equal parameters give equal records."""

    splits: int
    ticks: int
    chunks: int

    def ticks_of(self, chunk: int) -> np.ndarray:
        """The ticks of a chunk."""
        start, stop = self.ticks * chunk // self.chunks, self.ticks * (chunk + 1) // self.chunks
        return np.arange(start + 1, stop + 1) * INTERVAL_MS

    def ticks_of_blocks(self, chunk: int, limits: RecordLimits) -> list[np.ndarray]:
        """The ticks of each block in which a task sends the records of a chunk."""
        ticks = self.ticks_of(chunk)
        window = np.flatnonzero(np.diff(ticks // (limits.window_ticks * INTERVAL_MS))) + 1
        piece = max(1, limits.piece_bytes // (BYTES_OF_STEP * self.splits))
        return np.split(ticks, np.union1d(window, np.arange(piece, len(ticks), piece)))

    def block(self, chunk: int, number: int, of_ticks: np.ndarray) -> RecordBlock:
        """Block `number` of a chunk, with these ticks."""
        shape = self.splits, len(of_ticks)
        timestamps = of_ticks - np.random.default_rng((5, chunk, number)).integers(0, INTERVAL_MS, shape)
        first, last = (np.full(self.splits, tick) for tick in (of_ticks[0], of_ticks[-1]))
        return RecordBlock(
            np.arange(self.splits, dtype=np.int32),
            first,
            last,
            timestamps[:, -1].copy(),
            np.full(self.splits, len(of_ticks) - 1),
            np.broadcast_to(of_ticks[:-1], (self.splits, len(of_ticks) - 1)).ravel(),
            timestamps[:, :-1].ravel(),
        )

    def summaries(self) -> Iterator[ChunkTimes]:
        """The times of all chunks, each as its task sends it."""
        values = [f"partition-{split:05}" for split in range(self.splits)]
        for index in range(self.chunks):
            ticks = self.ticks_of(index)
            first, last = ticks[0] - INTERVAL_MS + 1, ticks[-1]
            same = {
                "events": len(ticks) * 10,
                "regressions": 0,
                "raised": 0,
                "least_arrival_ms": 0,
                "first_arrival_ms": first,
                "recorded_arrival_ms": last,
                "last_arrival_ms": last,
                "min_timestamp_ms": first,
                "max_timestamp_ms": last,
            }
            times = {name: np.full(self.splits, value) for name, value in same.items()}
            rows = times["events"]
            floors = {"rows": rows[:1], "arrival_ms": times["first_arrival_ms"][:1]}
            found = ChunkTimes(index, values, rows, rows, times, floors, rows_read=int(rows.sum()))
            yield ChunkTimes.from_ipc(found.to_ipc())
