"""Records of a log, read in the order of time, a stretch of it at once.

The merged watermark at a tick depends on the records of all splits up to that tick, and on nothing later. So a merge
needs the state of each split, which is small, and the records of one stretch of time; what lies before it has been
merged, and what lies after it can be in a file, or with the tasks that have read the log::

    chunk 0   ───────┬──────────┬────
    chunk 1      ────┼──────────┼──────────┬───        │: bounds of ranges, which are bounds of windows
    chunk 2          │      ────┼──────────┼──────
               range 0    range 1    range 2
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.time_summary import window_length
from flinkcore.time_plane.chunk_splits import ChunkSplits
from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits
from flinkcore.time_plane.record_store import RecordStore
from flinkcore.time_plane.splits_merge import MergedSplits, SplitsMerge


class RecordRange(NamedTuple):
    """The records that are read in a stretch of time.

    Attributes
    ----------
    until_ms : int or None
        A clock before which all of them are read, or None for the last range.
    blocks : list of RecordBlock
        In log order, with the numbers that splits have in the log.
    """

    until_ms: int | None
    blocks: list[RecordBlock]


class RecordRanges(Protocol):
    """Records of a log."""

    def add(self, chunk: int, block: RecordBlock) -> None:
        """Take in the next block of a chunk."""

    def ranges(self, splits: ChunkSplits) -> Iterator[RecordRange]:
        """Yield all ranges in the order of time.

        Parameters
        ----------
        splits : ChunkSplits
            Splits of all chunks.
        """

    def merged_apart(
        self, merge: SplitsMerge, splits: ChunkSplits, packer: StepPacker
    ) -> MergedSplits | None:
        """Merge all ranges at the same time, where the records are with tasks, and many.

        Parameters
        ----------
        merge : SplitsMerge
            A divisible one.
        splits
            As of `ranges`.
        packer : StepPacker
            Takes the steps.

        Returns
        -------
        MergedSplits or None
            The results, or None if the caller has to merge `ranges`.
        """


class LogRecords:
    """Keeps the records of a log in this process; may be filled by several threads.

    Parameters
    ----------
    interval_ms : int
        Interval of the ticks.
    limits : RecordLimits
    """

    def __init__(self, interval_ms: int, limits: RecordLimits) -> None:
        self._interval_ms = interval_ms
        self._limits = limits
        self._window_ms = window_length(interval_ms, limits.window_ticks)
        self._store = RecordStore(limits.record_bytes)
        self._blocks: list[tuple[int, ...]] = []
        self._lock = Lock()

    def add(self, chunk: int, block: RecordBlock) -> None:
        """Take in the next block of a chunk.

        Raises
        ------
        SourceError
            If the temporary file cannot be written.
        """
        for piece in block.pieces(self._window_ms, self._limits.block_bytes):
            self.add_packed(chunk, None, piece.packed(self._interval_ms), piece.span_ms)

    def add_packed(self, chunk: int, number: int | None, packed: Int64s, span_ms: tuple[int, int]) -> None:
        """Take in a packed block of a chunk.

        Parameters
        ----------
        chunk : int
        number : int or None
            Orders the blocks of the chunk, or None for the next one.
        packed : numpy.ndarray of int64
        span_ms : (int, int)
            The first and the last tick of the block.

        Raises
        ------
        SourceError
            If the temporary file cannot be written.
        """
        with self._lock:
            place = self._store.add(packed)
            order = place if number is None else number
            self._blocks.append(
                (chunk, order, place, len(packed), *span_ms, RecordBlock.bytes_of_packed(packed))
            )

    def ranges(self, splits: ChunkSplits) -> Iterator[RecordRange]:
        """Yield all ranges, as of `RecordRanges`; may be called again.

        Raises
        ------
        SourceError
            If the temporary file cannot be read.
        """
        index = np.array(self._blocks, np.int64).reshape(-1, 7)
        index = index[np.argsort(index[:, 4], kind="stable")]
        chunks, orders, places, sizes, firsts, lasts, nbytes = index.T
        lasts = np.maximum(lasts, splits.last_floors(chunks))
        since_ms, begun = MIN_TIMESTAMP, 0
        found = np.empty(0, np.int64)
        for until_ms in (*_bounds(firsts, nbytes, self._window_ms, self._limits.range_bytes), None):
            stop = len(firsts) if until_ms is None else int(np.searchsorted(firsts, until_ms))
            # Those that began before, and go on, and those that begin in the range.
            found = np.append(found[lasts[found] >= since_ms], np.arange(begun, stop))
            blocks = []
            for at in found[np.lexsort((orders[found], chunks[found]))].tolist():
                chunk = int(chunks[at])
                block = RecordBlock.unpacked(self._store.values(int(places[at]), 0, int(sizes[at])))
                read = read_within(block, splits.read_ms(chunk, block), since_ms, until_ms)
                blocks.append(splits.in_log(chunk, read))
            yield RecordRange(until_ms, blocks)
            since_ms, begun = MIN_TIMESTAMP if until_ms is None else until_ms, stop

    def merged_apart(self, merge: SplitsMerge, splits: ChunkSplits, packer: StepPacker) -> None:
        """Leave the merge to the caller, since the records are in this process."""

    def close(self) -> None:
        """Release memory and file."""
        self._store.close()


def _bounds(firsts: Int64s, nbytes: Int64s, window_ms: int, range_bytes: int) -> Iterator[int]:
    """Yield the starts of windows at which ranges end, but for the last; blocks are given by their first ticks."""
    if window_ms == 0:
        return
    starts, held = firsts // window_ms * window_ms, 0
    bound = int(starts[0]) if len(starts) else 0
    for start, size in zip(starts.tolist(), nbytes.tolist(), strict=True):
        if held > range_bytes and start > bound:
            yield start
            bound, held = start, 0
        held += size


def read_within(block: RecordBlock, read_ms: Int64s, since_ms: int, until_ms: int | None) -> RecordBlock:
    """Return the parts of a block whose events are read in a range.

    Parameters
    ----------
    block : RecordBlock
    read_ms : numpy.ndarray of int64, shape (n_parts,)
        The tick from which each part is read.
    since_ms, until_ms : int
        Bounds of windows; the latter is None for the last range.
    """
    within = read_ms >= since_ms
    return block.where(within if until_ms is None else within & (read_ms < until_ms))
