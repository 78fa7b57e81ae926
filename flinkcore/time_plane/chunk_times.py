"""The times of one chunk of the log, summarised by the task that reads it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore._native.event_log import add_to_checksum, arrivals_by_rate, rows_by_split
from flinkcore._native.time_summary import TimeSummary
from flinkcore.errors import ConfigurationError
from flinkcore.log.arrival_cut import CutRows, SideOfCut
from flinkcore.time_plane.cut_counts import CutCounts
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.record_blocks import DEFAULT_LIMITS, RecordBlock, RecordLimits
from flinkcore.time_plane.unordered_times import UnorderedSummary


class TimedEvents(Protocol):
    """Columns of a batch of events that the time plane reads: see `flinkcore.log.event_reader.TimedBatch`."""

    @property
    def timestamp_ms(self) -> Int64s: ...
    @property
    def arrival_ms(self) -> Int64s | None: ...
    @property
    def split_codes(self) -> Int32s: ...
    @property
    def split_values(self) -> list[Any]: ...
    @property
    def positions(self) -> Int64s: ...
    @property
    def split_rows(self) -> Int64s: ...
    @property
    def rows_read(self) -> int: ...
    @property
    def by_cut(self) -> CutRows | None: ...


@dataclass(frozen=True)
class ArrivalRate:
    """Arrivals of a log that records none: start_ms + floor(position in the split * 1000 / rate).

    Parameters
    ----------
    rate : float
        Records per second of each split, greater than 0.
    start_ms : int
        Arrival of the first record of each split.
    """

    rate: float = 1000.0
    start_ms: int = 0


def arrivals_of(batch: TimedEvents, bases: Int64s, rate: ArrivalRate | None) -> Int64s:
    """Return the arrivals of a batch as recorded, or by rate.

    Parameters
    ----------
    batch : TimedEvents
    bases : numpy.ndarray of int64, shape (n_codes,)
        Rows of the batch's splits in the chunks before.
    rate : ArrivalRate or None

    Raises
    ------
    ConfigurationError
        If the batch has no recorded arrivals, and there is no rate.
    """
    if batch.arrival_ms is not None:
        return batch.arrival_ms
    if rate is None:
        raise ConfigurationError("the log has no arrival column, and no rate was given; name one of them")
    return arrivals_by_rate(batch.positions, batch.split_codes, bases, rate.start_ms, rate.rate)


class TimeColumns:
    """Memory for arrivals and timestamps of one batch after the other."""

    def __init__(self) -> None:
        self._columns = np.empty((2, 0), np.int64)

    def of(self, rows: int) -> Int64s:
        """Two columns of at least so many rows, which the next call may give again."""
        if self._columns.shape[1] < rows:
            self._columns = np.empty((2, rows), np.int64)
        return self._columns


@dataclass(frozen=True)
class TimesBySplit:
    """Times of a batch of events, those of each split together, in the order of the log.

    Parameters
    ----------
    split_values : list, length k
    offsets : numpy.ndarray of int64, shape (k + 1,)
        The events of split i are those from `offsets[i]` up to `offsets[i + 1]`.
    arrival_ms, timestamp_ms : numpy.ndarray of int64, shape (n_events,)
        The arrivals as recorded, or by rate.
    """

    split_values: list[Any]
    offsets: Int64s
    arrival_ms: Int64s
    timestamp_ms: Int64s

    @classmethod
    def of(cls, batch: TimedEvents, arrival_ms: Int64s, there: TimeColumns) -> "TimesBySplit":
        """Return the times of a batch with these arrivals: in those columns, or if there is one split, as they are."""
        values, rows = batch.split_values, len(arrival_ms)
        if len(values) == 1:
            return cls(values, np.array([0, rows]), arrival_ms, batch.timestamp_ms)
        times = rows_by_split(batch.split_codes, len(values), arrival_ms, batch.timestamp_ms, there.of(rows))
        return cls(values, *times)


class BatchSplits:
    """Numbers of the splits of one batch after the other, each looked up once where batches add to their list.

    Parameters
    ----------
    number_of : callable
        Returns the number of a split.
    """

    def __init__(self, number_of: Callable[[Any], int]) -> None:
        self._number_of = number_of
        self._values: list[Any] = []
        self._numbers: Int32s = np.empty(0, np.int32)

    def numbers(self, values: list[Any]) -> Int32s:
        """Return the numbers of splits, which is the same array as before if they are the same list."""
        if values is not self._values:
            known = len(self._values) if values[: len(self._values)] == self._values else 0
            new = np.array([self._number_of(value) for value in values[known:]], np.int32)
            self._values, self._numbers = values, np.append(self._numbers[:known], new)
        return self._numbers


def _aligned(values: Collection[Any], of: Mapping[Any, int]) -> Int64s:
    if not of:
        return np.zeros(len(values), np.int64)
    return np.array([of.get(value, 0) for value in values], np.int64)


def _as_many(counts: Int64s, number: int) -> Int64s:
    """Return counts with zeros after them, of this length."""
    return np.append(counts, np.zeros(number - len(counts), np.int64))


def _count_rows(rows: dict[Any, int], batch: TimedEvents) -> None:
    for value, count in zip(batch.split_values, batch.split_rows.tolist(), strict=True):
        rows[value] = rows.get(value, 0) + count


@dataclass(frozen=True)
class ChunkCounts:
    """Rows of each split in one chunk, before filters: what arrivals by rate need to know of other chunks.

    Parameters
    ----------
    index : int
        Place of the chunk in the log.
    rows : dict of split value to int
    """

    index: int
    rows: dict[Any, int]

    @classmethod
    def build(cls, timed: Iterable[TimedEvents], *, index: int) -> "ChunkCounts":
        """Count the rows of a chunk's batches.

        Where a file's metadata has the rows of its only split, `ChunkCounts(index, {split: rows})` needs no
        reading.
        """
        counts = cls(index, {})
        for batch in timed:
            counts.add(batch)
        return counts

    def add(self, batch: TimedEvents) -> None:
        """Count the rows of the chunk's next batch."""
        _count_rows(self.rows, batch)

    def to_ipc(self) -> bytes:
        """Return the counts as an Arrow IPC stream."""
        rows = np.array(list(self.rows.values()), np.int64)
        return write_columns(
            "ChunkCounts", {"index": self.index}, {"split_values": list(self.rows), "rows": rows}
        )

    @classmethod
    def from_ipc(cls, data: bytes) -> "ChunkCounts":
        """Return the counts that `to_ipc` wrote; a DataError if these bytes are something else."""
        header, columns = read_columns("ChunkCounts", data)
        values, rows = columns["split_values"].to_pylist(), columns["rows"].to_pylist()
        return cls(header["index"], dict(zip(values, rows, strict=True)))


def position_bases(
    counts: Iterable[ChunkCounts], rows_before: Mapping[Any, int] | None = None
) -> dict[int, dict[Any, int]]:
    """Rows of each split in all chunks before a chunk.

    Parameters
    ----------
    counts : iterable of ChunkCounts
        Counts of all chunks, in any order.
    rows_before : mapping of split value to int, optional
        Rows of splits before the log, which is resumed from a checkpoint.

    Returns
    -------
    dict of chunk index to dict of split value to int
        The splits of each chunk.
    """
    bases: dict[int, dict[Any, int]] = {}
    before = dict(rows_before or {})
    for chunk in sorted(counts, key=lambda chunk: chunk.index):
        bases[chunk.index] = {value: before.get(value, 0) for value in chunk.rows}
        for value, rows in chunk.rows.items():
            before[value] = before.get(value, 0) + rows
    return bases


class _RecordedUpTo:
    """The least recorded arrival of each split of a chunk, among those up to the last one before the log."""

    def __init__(self, last_arrival_ms: int | None) -> None:
        self._last_arrival_ms = last_arrival_ms
        self._least_ms = np.empty(0, np.int64)

    def look_for(self, batch: TimedEvents, splits: Int32s) -> None:
        """Take in a batch with these numbers of its splits."""
        arrivals = batch.arrival_ms
        if self._last_arrival_ms is None or arrivals is None or len(arrivals) == 0:
            return
        if arrivals.min() > self._last_arrival_ms:
            return
        missing = int(splits.max()) + 1 - len(self._least_ms)
        self._least_ms = np.append(self._least_ms, np.full(max(0, missing), MAX_TIMESTAMP))
        if len(splits) == 1:
            self._least_ms[splits[0]] = min(self._least_ms[splits[0]], arrivals.min())
        else:
            np.minimum.at(self._least_ms, splits[batch.split_codes], arrivals)

    def least_arrivals(self, first_arrival_ms: Int64s) -> Int64s:
        """For all splits of the chunk, the first arrival where none before it was found."""
        least = first_arrival_ms.copy()
        found = len(self._least_ms)
        least[:found] = np.minimum(least[:found], self._least_ms)
        return least


class TimesChecksum:
    """Checksum of the events of a chunk, to compare two readings: timestamps, arrivals and splits, in their order.

    Parameters
    ----------
    is_made : bool
        False: it is not wanted, and its sums stay 0.

    Attributes
    ----------
    sums : numpy.ndarray of uint64, shape (2,)
        Never zeros if it is made.
    """

    def __init__(self, is_made: bool) -> None:
        self._is_made = is_made
        self.sums = np.array([is_made, 0], np.uint64)

    def add(self, batch: TimedEvents, arrivals: Int64s, splits: Int32s) -> None:
        """Add the events of the next batch, with their arrivals and the chunk's numbers of the batch's splits."""
        if self._is_made:
            add_to_checksum(self.sums, batch.timestamp_ms, arrivals, batch.split_codes, splits)


@dataclass(frozen=True, eq=False)
class ChunkTimes:
    """Summary of one chunk for the timeline, without its records; its size does not depend on the number of events.

    Parameters
    ----------
    index : int
        Place of the chunk in the log.
    split_values : list
        The chunk's splits, in order of appearance, also those of which no event passed the filters.
    rows, bases : numpy.ndarray of int64, shape (n_splits,)
        Rows of each split before filters; and in the chunks before, as far as known, for arrivals by rate.
    times : dict of str to numpy.ndarray of int64, shape (n_splits,)
        As of `TimeSummary.finish`; and `least_arrival_ms`, the first arrival, or one recorded later if that lies
        before it and not after the last arrival before the log.
    rows_read : int
        All rows of the chunk that are taken, rejected and filtered ones too.
    floors : dict of str to numpy.ndarray of int64, shape (n_batches,)
        "rows": rows read by the end of a batch; "arrival_ms": the earliest arrival in it, the running maximum
        of the chunk taken. Not for batches without events.
    warnings : list of str
        Warnings about the chunk's file.
    cut : dict of str to numpy.ndarray of int64, shape (n_splits,)
        Rows on both sides of a cut, as of `CutCounts`; empty without one.
    checksum : numpy.ndarray of uint64, shape (2,)
        Checksum of the events, as `TimesChecksum` makes it; zeros if there is no event.
    """

    index: int
    split_values: list[Any]
    rows: Int64s
    bases: Int64s
    times: dict[str, Int64s]
    floors: dict[str, Int64s]
    rows_read: int
    warnings: list[str] = field(default_factory=list)
    cut: dict[str, Int64s] = field(default_factory=dict)
    checksum: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, np.uint64))

    def to_ipc(self) -> bytes:
        """Return the summary as an Arrow IPC stream."""
        columns = {
            "split_values": self.split_values,
            "rows": self.rows,
            "bases": self.bases,
            "warnings": self.warnings,
            "checksum": self.checksum,
        }
        for part in ("times", "floors", "cut"):
            columns |= {f"{part}.{name}": column for name, column in getattr(self, part).items()}
        return write_columns("ChunkTimes", {"index": self.index, "rows_read": self.rows_read}, columns)

    @classmethod
    def from_ipc(cls, data: bytes) -> "ChunkTimes":
        """Return the summary that `to_ipc` wrote; a DataError if these bytes are something else."""
        header, columns = read_columns("ChunkTimes", data)
        values, warnings = (columns.pop(name).to_pylist() for name in ("split_values", "warnings"))
        rows, bases, checksum = (columns.pop(name).to_numpy() for name in ("rows", "bases", "checksum"))
        parts: dict[str, dict[str, Int64s]] = {"times": {}, "floors": {}, "cut": {}}
        for name, column in columns.items():
            part, _, member = name.partition(".")
            parts[part][member] = column.to_numpy()
        return cls(
            header["index"],
            values,
            rows,
            bases,
            rows_read=header["rows_read"],
            warnings=warnings,
            checksum=checksum,
            **parts,
        )


class ChunkTimesBuilder:
    """Summarises a chunk batch by batch.

    Parameters
    ----------
    generator : GeneratorSpec
    interval_ms : int
        The auto-watermark interval, from 0 to 2**60; 0: watermarks at the end of the log only. With watermark
        alignment what `flinkcore.time_plane.paused_spans.summary_interval_ms` makes of it.
    index : int
        Place of the chunk in the log.
    records : callable
        Takes the chunk's records, block by block.
    rate : ArrivalRate or None
        For batches without recorded arrivals.
    bases : mapping of split value to int, or None
        Rows of each split in the chunks before (`position_bases`), for arrivals by rate; one that is
        missing has none.
    restored_arrival_ms : int or None
        The last arrival before a log that is resumed from a checkpoint: recorded arrivals up to it are looked for.
    warnings : list of str, optional
        Warnings about the chunk's file, complete when the batches are.
    is_checked : bool
        Whether the data plane must find the same times: see `Chunk.is_checked`.
    by_arrival : bool
        Whether rows have no positions: see `EventLog`. The records are then `Cells`.
    limits : RecordLimits

    Raises
    ------
    ConfigurationError
        If the interval or the rate is out of its range, or there is neither recorded arrival nor rate.
    DataError
        If an arrival is further than 2**61 ms from the epoch.
    """

    def __init__(
        self,
        generator: GeneratorSpec,
        interval_ms: int,
        *,
        index: int,
        records: Callable[[RecordBlock], object],
        rate: ArrivalRate | None = None,
        bases: Mapping[Any, int] | None = None,
        restored_arrival_ms: int | None = None,
        warnings: list[str] | None = None,
        is_checked: bool = False,
        by_arrival: bool = False,
        limits: RecordLimits = DEFAULT_LIMITS,
    ) -> None:
        self._index = index
        self._records = records
        self._piece_bytes = limits.piece_bytes
        self._rate = rate
        self._bases = bases or {}
        self._warnings = [] if warnings is None else warnings
        self._summary: TimeSummary | UnorderedSummary = (
            UnorderedSummary(interval_ms, limits.window_ticks, limits.piece_bytes // 8)
            if by_arrival
            else TimeSummary(
                interval_ms=interval_ms,
                idleness_ms=generator.idleness_ms,
                steps=generator.makes_steps,
                window_ticks=limits.window_ticks,
            )
        )
        self._numbers: dict[Any, int] = {}
        self._batch_splits = BatchSplits(self._number_of)
        self._rows = np.empty(0, np.int64)
        self._splits = np.empty(0, np.int32)
        self._bases_of_splits = np.empty(0, np.int64)
        self._rows_read = 0
        self._floors: list[tuple[int, int]] = []
        self._done = _RecordedUpTo(restored_arrival_ms)
        self._cut = CutCounts()
        self._checksum = TimesChecksum(is_checked)
        self._columns = TimeColumns()

    def _number_of(self, split: Any) -> int:
        return self._numbers.setdefault(split, len(self._numbers))

    def add(self, batch: TimedEvents) -> TimesBySplit:
        """Take in the chunk's next batch, and return its times, which last until there is another one."""
        if batch.by_cut is not None:
            self._cut.add(batch.by_cut)
        self._rows_read += batch.rows_read
        splits = self._batch_splits.numbers(batch.split_values)
        if splits is not self._splits:
            self._splits = splits
            self._bases_of_splits = _aligned(batch.split_values, self._bases)
            self._summary.reserve(len(self._numbers))
            self._rows = _as_many(self._rows, len(self._numbers))
        self._rows[self._splits] += batch.split_rows
        arrivals = arrivals_of(batch, self._bases_of_splits, self._rate)
        times = TimesBySplit.of(batch, arrivals, self._columns)
        earliest = self._summary.update(self._splits, times.offsets, times.arrival_ms, times.timestamp_ms)
        if earliest is not None:
            self._floors.append((self._rows_read, earliest))
        self._done.look_for(batch, self._splits)
        self._checksum.add(batch, arrivals, self._splits)
        if self._summary.nbytes > self._piece_bytes:
            self._pass_records_on()
        return times

    def _pass_records_on(self) -> None:
        block = RecordBlock(*self._summary.take())
        if len(block):
            self._records(block)

    def leave_unread(self, rows: SideOfCut) -> None:
        """Take in that all rows of the chunk lie outside the cut of the log."""
        self._cut.add_unread(rows)

    def finish(self) -> ChunkTimes:
        """Return the summary; no batch can be taken in afterwards."""
        for value in self._cut.split_values:
            self._number_of(value)
        self._summary.reserve(len(self._numbers))
        floor_rows, floor_arrivals = np.array(self._floors, np.int64).reshape(-1, 2).T
        self._pass_records_on()
        times = self._summary.finish()
        return ChunkTimes(
            self._index,
            list(self._numbers),
            _as_many(self._rows, len(self._numbers)),
            _aligned(self._numbers, self._bases),
            times | {"least_arrival_ms": self._done.least_arrivals(times["first_arrival_ms"])},
            {"rows": floor_rows, "arrival_ms": floor_arrivals},
            self._rows_read,
            self._warnings,
            self._cut.of(list(self._numbers)),
            self._checksum.sums,
        )
