"""Records of the splits of a chunk, in blocks that are sent and stored packed.

A record is a tick at which the maximum timestamp of a split has grown: all that its watermark generator needs. A log
in which every split has events at every tick has a record per split and tick, 16 bytes each: 207 GB for 1,000 splits,
30 days and ticks of 200 ms. So records are cut by windows of ticks, which lie on one grid for all chunks, and packed as
differences into 2 to 3 bytes; no process holds more than a stretch of time of them (`log_records`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.memory_limits import RECORD_BYTES
from flinkcore._native.event_log import packed_integers, unpacked_integers
from flinkcore._native.packed_steps import BLOCK_STEPS
from flinkcore._native.time_summary import DEFAULT_WINDOW_TICKS, differences_to_steps, steps_to_differences
from flinkcore.errors import DataError

_PACKED_COLUMNS = 8
_PART_BYTES = 44
_RECORD_BYTES = 16


@dataclass(frozen=True)
class RecordLimits:
    """Limits of the memory that records of a log take in a process; results do not depend on them.

    Parameters
    ----------
    window_ticks : int
        Ticks of a window, by whose bounds records are cut.
    piece_bytes : int
        Records of a chunk that its task holds before it passes them on, 24 bytes each.
    block_bytes : int
        Records that are packed together by a process that keeps them, unpacked.
    record_bytes : int
        Packed records that a process keeps in memory; more than that go to a temporary file.
    range_bytes : int
        Unpacked records that are merged at once, unless a single window has more.
    collected_bytes : int
        Packed records that come to Spark's driver as they are; if there are more, executors cut them by ranges of time.
    packed_range_bytes : int
        Packed records of such a range.
    inline_bytes : int
        Bytes of what all of Spark's tasks over records need that travel within each of them.
    short_bytes : int
        Summary of a chunk that comes to Spark's driver with the job of a short log, or else an eighth of the chunk.
    window_emissions : int
        Watermarks and statuses between the operators and the valve.
    block_steps : int
        Steps of the timeline that wait to be packed together.
    """

    window_ticks: int = DEFAULT_WINDOW_TICKS
    piece_bytes: int = 4 << 20
    block_bytes: int = 64 << 10
    record_bytes: int = RECORD_BYTES
    range_bytes: int = 16 << 20
    collected_bytes: int = 96 << 20
    packed_range_bytes: int = 8 << 20
    inline_bytes: int = 64 << 10
    short_bytes: int = 32 << 10
    window_emissions: int = 1 << 18
    block_steps: int = BLOCK_STEPS

    @classmethod
    def of(cls, record_bytes: int) -> RecordLimits:
        """Return the limits of a process that keeps so many packed bytes in memory; the others are in proportion."""
        share = record_bytes / cls.record_bytes
        return cls(
            window_ticks=max(1, min(cls.window_ticks, int(share * (1 << 16)))),
            piece_bytes=int(share * cls.piece_bytes),
            block_bytes=int(share * cls.block_bytes),
            record_bytes=record_bytes,
            range_bytes=int(share * cls.range_bytes),
            collected_bytes=int(share * cls.collected_bytes),
            packed_range_bytes=int(share * cls.packed_range_bytes),
            inline_bytes=int(share * cls.inline_bytes),
            short_bytes=int(share * cls.short_bytes),
            window_emissions=max(1, int(share * cls.window_emissions)),
            block_steps=max(1, min(cls.block_steps, int(share * (1 << 16)))),
        )


DEFAULT_LIMITS = RecordLimits()


@dataclass(frozen=True, eq=False)
class RecordBlock:
    """Parts of the records of a chunk, each of one split in one window, by window.

    Parameters
    ----------
    split : numpy.ndarray of int32, shape (n_parts,)
        Number of each part's split among those of the chunk.
    first_tick_ms, last_tick_ms : numpy.ndarray of int64, shape (n_parts,)
        The first and the last tick of the part that sees an event of the split.
    max_timestamp_ms : numpy.ndarray of int64, shape (n_parts,)
        Maximum timestamp of the split in the chunk, at the last tick.
    n_records : numpy.ndarray of int64, shape (n_parts,)
        Number of each part's records.
    tick_ms, timestamp_ms : numpy.ndarray of int64, shape (n_records,)
        Earlier ticks of the part at which the maximum timestamp has grown, and the maximum there.
    """

    split: Int32s
    first_tick_ms: Int64s
    last_tick_ms: Int64s
    max_timestamp_ms: Int64s
    n_records: Int64s
    tick_ms: Int64s
    timestamp_ms: Int64s

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.split)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        return _PART_BYTES * len(self) + _RECORD_BYTES * len(self.tick_ms)

    @property
    def span_ms(self) -> tuple[int, int]:
        """The first and the last tick of a block with parts."""
        return int(self.first_tick_ms.min()), int(self.last_tick_ms.max())

    def where(self, wanted: npt.NDArray[np.bool_]) -> RecordBlock:
        """Return the parts where a mask is true."""
        if wanted.all():
            return self
        of_records = np.repeat(wanted, self.n_records)
        parts, records = fields(self)[:5], fields(self)[5:]
        return RecordBlock(
            *(getattr(self, column.name)[wanted] for column in parts),
            *(getattr(self, column.name)[of_records] for column in records),
        )

    def pieces(self, window_ms: int, most_bytes: int) -> Iterator[RecordBlock]:
        """Yield the block in pieces of whole windows, of about so many bytes, or of a single window.

        Parameters
        ----------
        window_ms : int
            Length of a window; 0: all is one window.
        most_bytes : int
        """
        if window_ms == 0 or self.nbytes <= most_bytes:
            yield self
            return
        sizes = np.cumsum(_PART_BYTES + _RECORD_BYTES * self.n_records)
        records = np.append(0, np.cumsum(self.n_records))
        windows = self.first_tick_ms // window_ms
        start = 0
        while start < len(self):
            before = int(sizes[start - 1]) if start else 0
            stop = int(np.searchsorted(sizes, before + most_bytes, side="right"))
            # Whole windows: up to the first part of the window that does not fit, or the end of the first window.
            if stop < len(self):
                stop = int(np.searchsorted(windows, windows[stop]))
                if stop <= start:
                    stop = int(np.searchsorted(windows, windows[start], side="right"))
            of_parts, of_records = slice(start, stop), slice(records[start], records[stop])
            yield RecordBlock(
                self.split[of_parts],
                self.first_tick_ms[of_parts],
                self.last_tick_ms[of_parts],
                self.max_timestamp_ms[of_parts],
                self.n_records[of_parts],
                self.tick_ms[of_records],
                self.timestamp_ms[of_records],
            )
            start = stop

    def packed(self, interval_ms: int) -> Int64s:
        """Return the block as few integers.

        Parameters
        ----------
        interval_ms : int
            Interval of the ticks, of which they are multiples, or 0 without ticks.
        """
        ticks, timestamps = self.tick_ms.copy(), self.timestamp_ms.copy()
        firsts = steps_to_differences(self.first_tick_ms, self.n_records, ticks, timestamps, interval_ms)
        first = self.first_tick_ms
        columns = (
            self.split.astype(np.int64),
            np.diff(first, prepend=first[:1]),
            self.last_tick_ms - first,
            self.max_timestamp_ms - first,
            self.n_records,
            np.where(self.n_records > 0, self.max_timestamp_ms - firsts, 0),
            ticks,
            timestamps,
        )
        parts = [packed_integers(np.ascontiguousarray(column)).view(np.int64) for column in columns]
        start = int(first[0]) if len(first) else 0
        header = [len(self), len(ticks), interval_ms, start, *map(len, parts)]
        return np.concatenate([np.array(header, np.int64), *parts])

    @staticmethod
    def bytes_of_packed(packed: Int64s) -> int:
        """Return the bytes of memory that a packed block will take."""
        n_parts, n_records = packed[:2].tolist()
        return int(_PART_BYTES * n_parts + _RECORD_BYTES * n_records)

    @classmethod
    def unpacked(cls, packed: Int64s) -> RecordBlock:
        """Return the block that `packed` packed; a DataError if these integers are something else."""
        header = packed[: 4 + _PACKED_COLUMNS].tolist()
        at, columns = len(header), []
        if len(header) < 4 + _PACKED_COLUMNS or at + sum(header[4:]) != len(packed) or min(header[:3]) < 0:
            raise DataError(f"these {packed.nbytes} bytes are not a block of records")
        n_parts, n_records, interval_ms, start = header[:4]
        for length, size in zip([n_parts] * 6 + [n_records] * 2, header[4:], strict=True):
            column = np.empty(length, np.int64)
            unpacked_integers(packed[at : at + size].view(np.uint8), column)
            columns.append(column)
            at += size
        split, first, last, latest, records, firsts, ticks, timestamps = columns
        np.cumsum(first, out=first)
        first += start
        last += first
        latest += first
        differences_to_steps(first, records, latest - firsts, ticks, timestamps, interval_ms)
        return cls(split.astype(np.int32), first, last, latest, records, ticks, timestamps)
