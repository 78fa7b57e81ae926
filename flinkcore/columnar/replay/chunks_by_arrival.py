"""The chunks of a log, read by arrival: several side by side where they overlap, and only a few at once.

Chunks of a log may follow each other in time, as the files of one day after the other do, or overlap, as a file per
partition does. The first pass knows when the events of each chunk arrive::

    chunk 0   |-------|                 read alone
    chunk 1           |----------|      read side by side, always the one
    chunk 2             |---------|     that lags most
    chunk 3                       |---|
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from operator import attrgetter

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.replay.chunk_reader import ChunkReader, ReadEvents, read_on_all_ways
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.log.sources.chunks import Chunk

_ROW_BYTES = 64
"""Memory of an event, about, until some have been read."""

_LEAST_SHARE = 64
"""Batches of chunks that are read side by side have at least this part of the rows of other batches."""


class _OpenChunk:
    """A chunk that is being read.

    Attributes
    ----------
    batches
        Its events, batch by batch.
    floor_ms
        Lower bound of the arrivals still to come, or None if no more events come.
    """

    def __init__(
        self, chunk: Chunk, batches: Generator[tuple[ReadEvents, ...], None, None], first_ms: int
    ) -> None:
        self.chunk = chunk
        self.batches = batches
        self.floor_ms: int | None = first_ms
        self._rows_read = 0

    @property
    def lag(self) -> int:
        """Arrival by which open chunks are read on; one without further events is read to its end first."""
        return MIN_TIMESTAMP if self.floor_ms is None else self.floor_ms

    def advance(self, readers: Sequence[ChunkReader], read: tuple[ReadEvents, ...]) -> None:
        """Take in that a batch has been read."""
        self._rows_read += read[0].rows_read
        floors = [
            max(floor_ms, of_way.least_ms)
            for reader, of_way in zip(readers, read, strict=True)
            if (floor_ms := reader.floor_after(self.chunk, self._rows_read)) is not None
        ]
        self.floor_ms = min(floors, default=None)


class ChunksByArrival:
    """Reads the chunks of a log once for all ways on which a job uses it, always the one that lags most.

    Parameters
    ----------
    readers
        One for each way.
    chunks
        All chunks of the log that are to be read, in log order.
    in_log_order
        Whether to read one chunk after the other instead.

    Attributes
    ----------
    floor_ms
        Lower bound of the arrivals of all events still to come, ms since the epoch.
    """

    def __init__(
        self, readers: Sequence[ChunkReader], chunks: Sequence[Chunk], in_log_order: bool = False
    ) -> None:
        plan = readers[0].plan
        self._readers = readers
        self._most_open = 1 if in_log_order else plan.open_chunks
        self._most_rows = plan.batch_rows
        self._room = plan.held_bytes // 2
        self._row_bytes = 0
        first_ms, last_ms = _arrivals(readers, chunks)
        order = np.arange(len(chunks)) if in_log_order else np.argsort(first_ms, kind="stable")
        self._chunks = [chunks[at] for at in order.tolist()]
        self._first_ms: list[int] = first_ms[order].tolist()
        # In log order a later chunk may have the least arrival.
        least = np.minimum.accumulate(first_ms[order][::-1])[::-1]
        self._least_ms: list[int] = [*least.tolist(), MAX_TIMESTAMP]
        overlapping = most_overlapping(first_ms, last_ms)[order]
        self._side_by_side: list[int] = np.minimum(overlapping, self._most_open).tolist()
        self._opened = 0
        self._open: list[_OpenChunk] = []
        self.floor_ms = self._least_ms[0]
        self.batches = self._read()

    def close(self) -> None:
        """Close the files."""
        self.batches.close()

    def _read(self) -> Generator[tuple[ReadEvents, ...], None, None]:
        """Yield events of a batch, on each way; errors as of `ChunkReader.read`."""
        try:
            while (lagging := self._lagging()) is not None:
                read = next(lagging.batches, None)
                if read is None:
                    self._open.remove(lagging)
                else:
                    self._learn_row_bytes(read)
                    lagging.advance(self._readers, read)
                floors = [each.floor_ms for each in self._open if each.floor_ms is not None]
                self.floor_ms = min(floors, default=MAX_TIMESTAMP)
                self.floor_ms = min(self.floor_ms, self._least_ms[self._opened])
                if read is not None:
                    yield read
        finally:
            for each in self._open:
                each.batches.close()

    def _lagging(self) -> _OpenChunk | None:
        """Return the chunk to read on, which may be opened now, or None after the last one."""
        lagging = min(self._open, key=attrgetter("lag"), default=None)
        if self._opened == len(self._chunks) or len(self._open) == self._most_open:
            return lagging
        if lagging is not None and lagging.lag <= self._first_ms[self._opened]:
            return lagging
        at, self._opened = self._opened, self._opened + 1
        chunk = self._chunks[at]
        batches = read_on_all_ways(self._readers, chunk, self._batch_rows(self._side_by_side[at]))
        self._open.append(_OpenChunk(chunk, batches, self._first_ms[at]))
        return self._open[-1]

    def _batch_rows(self, side_by_side: int) -> int:
        """Return the rows of a batch of which so many are in memory together."""
        if side_by_side == 1:
            return self._most_rows
        rows = self._room // side_by_side // (self._row_bytes or _ROW_BYTES)
        return min(self._most_rows, max(rows, self._most_rows // _LEAST_SHARE, 1))

    def _learn_row_bytes(self, read: tuple[ReadEvents, ...]) -> None:
        n_events = sum(of_way.events.n_events for of_way in read)
        if not self._row_bytes and n_events:
            self._row_bytes = 1 + sum(of_way.events.nbytes for of_way in read) // n_events


def most_overlapping(first_ms: Int64s, last_ms: Int64s) -> Int64s:
    """Return, for each of some spans of time, how many overlap, itself included, when they are most within it.

    Parameters
    ----------
    first_ms, last_ms
        int64 (n_spans,), both ends, which belong to a span.

    Returns
    -------
    numpy.ndarray of int64, shape (n_spans,)
    """
    firsts = np.sort(first_ms)
    # The number of spans as each one begins.
    at_once = np.arange(1, len(firsts) + 1) - np.searchsorted(np.sort(last_ms), firsts, side="left")
    bounds = np.empty((len(firsts), 2), np.int64)
    bounds[:, 0] = np.searchsorted(firsts, first_ms, side="right") - 1
    bounds[:, 1] = np.searchsorted(firsts, last_ms, side="right")
    if not len(firsts):
        return firsts
    return np.maximum.reduceat(np.append(at_once, 0), bounds.ravel())[::2]


def _arrivals(readers: Sequence[ChunkReader], chunks: Sequence[Chunk]) -> tuple[Int64s, Int64s]:
    """Return the first and last arrivals of chunks on all ways, as the first pass has found them."""
    indices = np.array([chunk.index for chunk in chunks], np.int64)
    firsts, lasts = zip(*(reader.arrivals_of(indices) for reader in readers), strict=True)
    first_ms = np.minimum.reduce(firsts)
    return first_ms, np.maximum(first_ms, np.maximum.reduce(lasts))
