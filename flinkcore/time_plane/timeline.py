"""The time plane of a replay: watermarks per split, merged into one timeline.

A task summarises the times of a chunk of the log (`ChunkTimes`), independently of the chunks before it;
`combine_times.combine` makes the summaries, in log order, into the `TimePlane`, from which every task of the
data plane gets the clock of its chunk (`ChunkClock`) and the watermark in force at each arrival. However the
log is cut, the timeline is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, Int64s, RowNumbers
from flinkcore._internal.show.html import html_lines, html_table
from flinkcore._internal.show.times import format_timestamp
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.packed_steps import BLOCK_STEPS, PackedSteps, StepPacker, StepReader
from flinkcore.errors import DataError, SourceError
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.chunk_clock import ChunkClock
from flinkcore.time_plane.chunk_times import ArrivalRate, TimesChecksum
from flinkcore.time_plane.paused_spans import PausedSpans
from flinkcore.time_plane.time_cut import TimeCut

AFTER_ALL_SPLITS: Final = 2**31 - 1
"""In place of a split: the step comes after all events with its clock, as a tick does."""


@dataclass(frozen=True, eq=False)
class Statuses:
    """Watermark statuses of all splits of a log taken together, among the steps of its timeline.

    Parameters
    ----------
    clock_ms : numpy.ndarray of int64, shape (n_statuses,)
        Non-decreasing.
    steps : numpy.ndarray of int64, shape (n_statuses,)
        Number of earlier steps of the timeline.
    idle : numpy.ndarray of int64, shape (n_statuses,)
        1: all splits are idle, 0: one is active again.
    split, position : numpy.ndarray of int64, shape (n_statuses,)
        The event that was the cause; split `AFTER_ALL_SPLITS`, position 0: a tick.
    """

    clock_ms: Int64s
    steps: Int64s
    idle: Int64s
    split: Int64s
    position: Int64s

    @classmethod
    def none(cls) -> Statuses:
        """Return the statuses of a log that was always active."""
        return cls(*(np.empty(0, np.int64) for _ in range(5)))

    @classmethod
    def at_ticks(cls, clock_ms: Int64s, steps: Int64s, idle: Int64s) -> Statuses:
        """Statuses none of which was made by an event."""
        return cls(clock_ms, steps, idle, np.full_like(clock_ms, AFTER_ALL_SPLITS), np.zeros_like(clock_ms))


@dataclass(frozen=True, eq=False)
class Holders:
    """Splits of a log that hold the merged watermark back.

    Parameters
    ----------
    clock_ms : numpy.ndarray of int64, shape (n_changes,)
        Increasing; from the tick on that comes after all events with arrival ≤ its clock.
    split : numpy.ndarray of int64, shape (n_changes,)
        A split with the least watermark among those that count, or -1 if all are idle.
    lead_ms : numpy.ndarray of int64, shape (n_changes,)
        Mean lead of the least watermark of the others that count, over the time until the next
        change; a split that has no watermark yet lags by the time since the log began.
    """

    clock_ms: Int64s
    split: Int64s
    lead_ms: Int64s

    @classmethod
    def unknown(cls) -> Holders:
        """Return the holders of a log whose watermarks do not come from ticks alone."""
        return cls(*np.empty((3, 0), np.int64))

    def at(self, arrival_ms: Int64s) -> Int64s:
        """Return the split at each arrival; -1: none, or none yet."""
        return np.concatenate((np.array([-1]), self.split))[np.searchsorted(self.clock_ms, arrival_ms)]


class Steps(NamedTuple):
    """Steps of a timeline, unpacked; each array has shape (n_steps,).

    Attributes
    ----------
    clock_ms, watermark_ms : numpy.ndarray of int64
    split, position : numpy.ndarray of int64
        The event that made the step; split `AFTER_ALL_SPLITS`, position 0: a tick.
    """

    clock_ms: Int64s
    watermark_ms: Int64s
    split: Int64s
    position: Int64s


@dataclass(frozen=True, eq=False)
class Timeline:
    """The merged watermark as a step function of the replay clock.

    A step happens after all events with arrival ≤ its clock, unless an event made it: then right after that event,
    before later ones with the same arrival. Watermarks increase; where operators of a job share steps, one's watermark
    may stay the same at steps of the others. The last step is the end of the log, 2**63 - 1 at clock 2**63 - 1, even if
    a generator has emitted that watermark before; it is missing if the job stops with a checkpoint. From a checkpoint
    on, the first is the watermark of that, just before its cut.

    Parameters
    ----------
    steps : PackedSteps
        The steps stay packed wherever they are used: a worker has as many as the driver, and mostly in a mapped file.
    """

    steps: PackedSteps

    @classmethod
    def of(cls, clock_ms: Int64s, watermark_ms: Int64s, *places: Int64s) -> Timeline:
        """Return the timeline of steps in plain columns.

        Parameters
        ----------
        clock_ms, watermark_ms : numpy.ndarray of int64, shape (n_steps,)
            Non-decreasing.
        places : numpy.ndarray of int64, shape (n_steps,)
            Splits and positions; none: no step was made by an event. Split `AFTER_ALL_SPLITS` and position 0 stand for
            a tick or the end of the log.
        """
        packer = StepPacker()
        packer.add(clock_ms, watermark_ms, *places)
        return cls(packer.finish())

    @staticmethod
    def packer(first_step: tuple[int, int] | None, block_steps: int = BLOCK_STEPS) -> StepPacker:
        """Return what packs the steps that generators emit, for `ended`.

        Parameters
        ----------
        first_step : (int, int) or None
            The step that stands for all before a cut: `TimeCut.step`.
        block_steps : int
            Steps of a block, on which only time and memory depend.
        """
        packer = StepPacker(block_steps=block_steps)
        if first_step is not None:
            packer.add(*(np.array([value], np.int64) for value in first_step))
        return packer

    @classmethod
    def ended(cls, packer: StepPacker, *, stops: bool) -> Timeline:
        """Return the timeline of the steps in a packer, and of the end of the log unless the job stops before it."""
        if not stops:
            end = np.array([MAX_TIMESTAMP], np.int64)
            packer.add(end, end)
        return cls(packer.finish())

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def has_steps_of_events(self) -> bool:
        """Return whether some steps were made by events, and not by ticks."""
        return self.steps.has_steps_of_events

    def mapped(self, change: Callable[[Int64s], Int64s]) -> Timeline:
        """Return the timeline with other watermarks, which do not decrease either."""
        packer = StepPacker()
        for number in range(self.steps.n_blocks):
            clock_ms, watermark_ms, *places = self.steps.block(number)
            packer.add(clock_ms, change(watermark_ms), *places)
        return Timeline(packer.finish())

    def reader(self) -> StepReader:
        """Return what reads single steps, for one thread."""
        return StepReader(self.steps)

    def blocks(self) -> Iterator[Steps]:
        """Yield the steps, unpacked block by block, without the end of the log."""
        left = self.steps_before_end
        for number in range(self.steps.n_blocks):
            if left:
                block = Steps(*(column[:left] for column in self.steps.block(number)))
                left -= len(block.clock_ms)
                yield block

    def __repr__(self) -> str:
        steps, ends = self._ends()
        if not ends:
            return "Timeline(no watermark before the end of the log)"
        (first_clock, first), (last_clock, last) = ends
        return (
            f"Timeline({steps:,} steps, watermark {first} to {last}, on the replay clock at {first_clock} to "
            f"{last_clock})"
        )

    def _repr_html_(self) -> str:
        steps, ends = self._ends()
        if not ends:
            return html_lines(repr(self))
        rows = [(name, *texts) for name, texts in zip(("first", "last"), ends, strict=True)]
        table = html_table([("step", ""), ("replay clock", ""), ("watermark", "")], rows, [False] * 3)
        return f"{table}<small>{steps:,} step{'s' * (steps != 1)} before the end of the log</small>"

    def _ends(self) -> tuple[int, list[tuple[str, str]]]:
        """Return how many steps come before the end of the log, and clock and watermark of the first and the last."""
        steps, reader = self.steps_before_end, self.reader()
        return steps, [
            (format_timestamp(reader.clock(at)), format_timestamp(reader.watermark_after(at + 1)))
            for at in ((0, steps - 1) if steps else ())
        ]

    def steps_done(self, restored_arrival_ms: int | None) -> int:
        """Return how many steps were done before the log, which is resumed from a checkpoint after this arrival."""
        if restored_arrival_ms is None:
            return 0
        return min(1, self.steps_before_arrival(restored_arrival_ms))

    def steps_before(
        self,
        arrival_ms: Int64s,
        split: Int32s,
        position: Int64s,
        rows: npt.NDArray[np.uint32] | None = None,
    ) -> Int64s:
        """Return how many steps lie before events in the total order.

        Parameters
        ----------
        arrival_ms, split, position : numpy.ndarray of int64, int32 and int64, shape (n_rows,)
            Their places.
        rows : numpy.ndarray of uint32, shape (n,), or None
            Requested rows, best in total order, or None for all in the given order.

        Returns
        -------
        numpy.ndarray of int64, shape (n_rows,)
            0 for those not asked for.
        """
        return self.steps.steps_before(arrival_ms, split, position, rows)

    def steps_before_arrival(self, arrival_ms: int) -> int:
        """Return how many steps lie before all events with this arrival."""
        return self.reader().steps_before(arrival_ms, -1, 0)

    def steps_before_arrivals(self, arrival_ms: Int64s) -> Int64s:
        """Return the same for several arrivals, best ascending."""
        return self.steps_before(
            arrival_ms, np.full(len(arrival_ms), -1, np.int32), np.zeros_like(arrival_ms)
        )

    def steps_before_timers(self, time_ms: Int64s) -> Int64s:
        """Return how many steps lie before the processing-time timers due at these times; ticks of that time do not."""
        split = np.full(len(time_ms), AFTER_ALL_SPLITS, np.int32)
        return self.steps_before(time_ms, split, np.zeros(len(time_ms), np.int64), self._in_order(time_ms))

    def steps_up_to(self, watermark_ms: Int64s) -> Int64s:
        """Return how many steps have a watermark that is not higher than each of these."""
        return self.steps.steps_up_to(watermark_ms, self._in_order(watermark_ms))

    def steps_below(self, watermark_ms: Int64s) -> Int64s:
        """Return how many steps have a lower watermark than each of these."""
        above_least = np.maximum(watermark_ms, MIN_TIMESTAMP + 1)
        return np.where(watermark_ms == MIN_TIMESTAMP, 0, self.steps_up_to(above_least - 1))

    def _in_order(self, values: Int64s) -> RowNumbers | None:
        """Return in which order values are looked up: ascending, so that no block is unpacked twice."""
        return np.argsort(values).astype(np.uint32) if self.steps.n_blocks > 2 and len(values) > 1 else None

    def watermark_after(self, steps: Int64s) -> Int64s:
        """Return the watermark in force after so many steps, best ascending; -2**63 before the first."""
        return self.steps.watermarks_after(steps)

    def clock_at(self, steps: Int64s) -> Int64s:
        """Return the replay clock at steps of these numbers, best ascending."""
        return self.steps.clocks_at(steps)

    @cached_property
    def steps_before_end(self) -> int:
        """Return how many steps come before the end of the log, which is the step after them unless the job stops."""
        steps = len(self)
        return steps - 1 if steps and self.reader().clock(steps - 1) == MAX_TIMESTAMP else steps

    @property
    def watermark_before_end(self) -> int:
        """The watermark in force when the log ends or the job stops; -2**63 before the first."""
        return self.reader().watermark_after(self.steps_before_end)

    def end_ms(self, last_arrival_ms: int) -> int:
        """Return the replay clock at the end of a log with this last arrival, when all steps before it are done."""
        before = self.steps_before_end
        return max(last_arrival_ms, self.reader().clock(before - 1)) if before else last_arrival_ms


@dataclass(frozen=True)
class SomeSplits(Sequence[Any]):
    """Values of some splits of a log, in place of a list of the values of all of them.

    Parameters
    ----------
    values : mapping of int to value
        By number of the split.
    splits : int
        Number of all splits of the log.
    """

    values: Mapping[int, Any]
    splits: int

    def __len__(self) -> int:
        return self.splits

    def __getitem__(self, number: Any) -> Any:
        return self.values[number]


@dataclass(frozen=True, eq=False)
class SplitTimes:
    """Figures of the splits for reports, in split order.

    Parameters
    ----------
    values : sequence
        The values of the split column.
    rows, events : numpy.ndarray of int64, shape (n_splits,)
        Rows before filters, and events after them.
    regressions : numpy.ndarray of int64, shape (n_splits,)
        Number of times that the recorded arrival went back from one event of the split to the next.
    raised : numpy.ndarray of int64, shape (n_splits,)
        Least number of events for which the running maximum of the arrivals was taken: those recorded before an
        earlier event of their chunk, and all events of a chunk that was recorded before the chunks ahead of it.
    first_arrival_ms, last_arrival_ms : numpy.ndarray of int64, shape (n_splits,)
    min_timestamp_ms, max_timestamp_ms : numpy.ndarray of int64, shape (n_splits,)
        2**63 - 1 for the first and least, -2**63 for the last and greatest of a split without events.
    final_watermark_ms : numpy.ndarray of int64, shape (n_splits,)
        The split's own last watermark before the end of time; -2**63 before the first.
    idle_split, idle_from_ms, idle_to_ms : numpy.ndarray of int64, shape (n_spans,)
        Which split was idle when, by split and clock; one that is idle at the end is so up to the last
        arrival.
    """

    values: Sequence[Any]
    rows: Int64s
    events: Int64s
    regressions: Int64s
    raised: Int64s
    first_arrival_ms: Int64s
    last_arrival_ms: Int64s
    min_timestamp_ms: Int64s
    max_timestamp_ms: Int64s
    final_watermark_ms: Int64s
    idle_split: Int64s
    idle_from_ms: Int64s
    idle_to_ms: Int64s

    @property
    def arrival_range(self) -> tuple[int, int]:
        """The first and the last arrival of a log that has an event."""
        live = self.events > 0
        return int(self.first_arrival_ms[live].min()), int(self.last_arrival_ms[live].max())

    def idle_spans(self, split: int) -> list[tuple[int, int]]:
        """Return when the split of this number was idle: (from, to) in ms of the replay clock."""
        spans = np.flatnonzero(self.idle_split == split)
        return list(zip(self.idle_from_ms[spans].tolist(), self.idle_to_ms[spans].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class ChunkStarts:
    """Position of each split at the start of each of its chunks; entries are grouped by chunk.

    Parameters
    ----------
    chunks : numpy.ndarray of int64, shape (n_chunks,)
        Ascending indices of the chunks.
    rows_read : numpy.ndarray of int64, shape (n_chunks,)
        All rows of each chunk.
    checksums : numpy.ndarray of uint64, shape (2 * n_chunks,)
        The sums of each chunk's `TimesChecksum`.
    offsets : numpy.ndarray of int64, shape (n_chunks + 1,)
        Entries of chunk i: offsets[i] up to offsets[i + 1].
    split : numpy.ndarray of int32, shape (n_entries,)
        Number of the split.
    base, arrival_ms : numpy.ndarray of int64, shape (n_entries,)
        Rows of the split in the chunks before, and their maximum arrival (-2**63 before the first).
    last_ms : numpy.ndarray of int64, shape (n_chunks,)
        Latest arrival of each chunk as recorded; -2**63 without events.
    """

    chunks: Int64s
    rows_read: Int64s
    checksums: npt.NDArray[np.uint64]
    offsets: Int64s
    split: Int32s
    base: Int64s
    arrival_ms: Int64s
    last_ms: Int64s

    def entries(self, chunk_index: int) -> slice:
        """Return the entries of a chunk; a DataError if there is no such chunk."""
        at = int(np.searchsorted(self.chunks, chunk_index))
        if at == len(self.chunks) or self.chunks[at] != chunk_index:
            raise DataError(
                f"chunk {chunk_index} had no part in this timeline; combine the times of all chunks"
            )
        return slice(int(self.offsets[at]), int(self.offsets[at + 1]))

    def of_chunks(self, chunks: Sequence[int]) -> ChunkStarts:
        """Return the same of some consecutive chunks, given by their indices in ascending order."""
        first, last = (int(np.searchsorted(self.chunks, chunk)) for chunk in (chunks[0], chunks[-1]))
        entries = slice(self.entries(chunks[0]).start, self.entries(chunks[-1]).stop)
        return replace(
            self,
            chunks=self.chunks[first : last + 1],
            rows_read=self.rows_read[first : last + 1],
            checksums=self.checksums[2 * first : 2 * last + 2],
            offsets=self.offsets[first : last + 2] - entries.start,
            split=self.split[entries],
            base=self.base[entries],
            arrival_ms=self.arrival_ms[entries],
            last_ms=self.last_ms[first : last + 1],
        )


@dataclass(frozen=True, eq=False)
class ArrivalFloors:
    """Least arrivals that can still come after each batch of a chunk, in log order.

    Parameters
    ----------
    chunk, rows : numpy.ndarray of int64, shape (n_batches,)
        The chunk of a batch, and the rows of that chunk read by its end.
    arrival_ms : numpy.ndarray of int64, shape (n_batches,)
        No event of this batch, or of a later one of the chunk, arrives earlier; where its split is paused, it is read
        later.
    """

    chunk: Int64s
    rows: Int64s
    arrival_ms: Int64s

    def after(self, chunk: int, rows: int) -> int | None:
        """Return the earliest arrival to come in a chunk once so many of its rows are read; None if nothing comes."""
        first = int(np.searchsorted(self.chunk, chunk, side="left"))
        last = int(np.searchsorted(self.chunk, chunk, side="right"))
        at = first + int(np.searchsorted(self.rows[first:last], rows, side="right"))
        return int(self.arrival_ms[at]) if at < last else None


@dataclass(frozen=True, eq=False)
class TimePlane:
    """The timeline of a log, and the way into its chunks; small enough to go to every task.

    Parameters
    ----------
    timeline : Timeline
    splits : SplitTimes
    starts : ChunkStarts
    floors : ArrivalFloors
    paused : PausedSpans
        Spans of pauses; empty without watermark alignment.
    rate : ArrivalRate or None
        Where the log records no arrivals.
    by_arrival : bool
        Whether the rows of the log have no positions: see `EventLog`.
    statuses : Statuses
        When all splits were idle.
    replay_range : (int, int) or None
        First and last arrival of the replay, which may have more logs than this, or None without events.
    restored_arrival_ms : int or None
        The last arrival before the log, where it is resumed from a checkpoint.
    cut : TimeCut or None
        Where the log ends, if the job stops with a checkpoint; it does not travel to tasks.
    warnings : tuple of str
        Warnings about the log's files, which do not depend on it either.
    holders : Holders
        Which split holds the watermark; nor do they.
    rows_before_cut, rows_after_cut : int
        Rows of a log that is cut at times of arrival: those that an earlier run took, and those that wait for the next.
    """

    timeline: Timeline
    splits: SplitTimes
    starts: ChunkStarts
    floors: ArrivalFloors
    paused: PausedSpans
    rate: ArrivalRate | None
    by_arrival: bool = False
    statuses: Statuses = field(default_factory=Statuses.none)
    replay_range: tuple[int, int] | None = None
    restored_arrival_ms: int | None = None
    cut: TimeCut | None = None
    warnings: tuple[str, ...] = ()
    holders: Holders = field(default_factory=Holders.unknown)
    rows_before_cut: int = 0
    rows_after_cut: int = 0

    def __repr__(self) -> str:
        return f"TimePlane({self.events:,} events, {len(self.split_values):,} splits, {self.timeline!r})"

    @property
    def split_values(self) -> Sequence[Any]:
        """The values of the split column in split order."""
        return self.splits.values

    @property
    def events(self) -> int:
        """Number of events after filters."""
        return int(self.splits.events.sum())

    @property
    def last_arrival_ms(self) -> int | None:
        """The last arrival of the log and of those before its checkpoint, in ms; None if there was no event."""
        return None if self.replay_range is None else self.replay_range[1]

    @property
    def rows_read(self) -> int:
        """Number of rows of the log, before filters and rejections."""
        return int(self.starts.rows_read.sum())

    def for_reading(self) -> TimePlane:
        """Return what a task needs to place the events of a chunk; timeline and idle spans may be by far the most."""
        none = np.empty(0, np.int64)
        return replace(
            self,
            timeline=Timeline.of(none, none),
            splits=replace(self.splits, idle_split=none, idle_from_ms=none, idle_to_ms=none),
            floors=ArrivalFloors(none, none, none),
            cut=None,
            statuses=Statuses.none(),
            holders=Holders.unknown(),
        )

    def for_chunks(self, chunks: Sequence[int]) -> TimePlane:
        """Return what a task needs to place the events of some consecutive chunks: `for_reading`, of their splits only.

        Parameters
        ----------
        chunks : sequence of int
            Indices of the chunks, ascending.
        """
        none, splits, starts = np.empty(0, np.int64), self.splits, self.starts.of_chunks(chunks)
        values = {split: splits.values[split] for split in np.unique(starts.split).tolist()}
        figures = {each.name: none for each in fields(SplitTimes) if each.name != "values"}
        return replace(
            self.for_reading(),
            splits=SplitTimes(values=SomeSplits(values, len(splits.values)), **figures),
            starts=starts,
        )

    def arrivals_of(self, chunks: Int64s) -> tuple[Int64s, Int64s]:
        """Return bounds of the arrivals of events of chunks.

        Parameters
        ----------
        chunks : numpy.ndarray of int64, shape (n_chunks,)
            Indices of chunks that were combined.

        Returns
        -------
        tuple of numpy.ndarray of int64, both of shape (n_chunks,)
            No event of a chunk arrives before the first; none is recorded after the last. 2**63 - 1 and -2**63 of a
            chunk without events. Events of paused splits may be read later.
        """
        starts, floors = self.starts, self.floors
        at = np.searchsorted(floors.chunk, chunks)
        first_ms = np.append(floors.arrival_ms, MAX_TIMESTAMP)[at]
        first_ms[np.append(floors.chunk, MIN_TIMESTAMP)[at] != chunks] = MAX_TIMESTAMP
        places = np.searchsorted(starts.chunks, chunks)
        if not self.by_arrival and len(starts.arrival_ms):
            # No split goes back before the arrivals of earlier chunks.
            has_splits = np.diff(starts.offsets) > 0
            least_ms = np.full(len(has_splits), MIN_TIMESTAMP)
            least_ms[has_splits] = np.minimum.reduceat(starts.arrival_ms, starts.offsets[:-1][has_splits])
            first_ms = np.maximum(first_ms, least_ms[places])
        return first_ms, starts.last_ms[places]

    def has_no_rows(self, chunk_index: int) -> bool:
        """Return whether the first pass has taken no row of a chunk."""
        at = int(np.searchsorted(self.starts.chunks, chunk_index))
        return not self.starts.rows_read[at]

    def check_chunk(self, clock: ChunkClock, chunk: Chunk, rows_read: int) -> None:
        """Assert that the data plane has read what the time plane has read of a chunk.

        Raises
        ------
        SourceError
            If not: the log has changed during the replay.
        """
        at = int(np.searchsorted(self.starts.chunks, clock.chunk_index))
        expected = int(self.starts.rows_read[at])
        if rows_read != expected:
            raise SourceError(
                f"{chunk.label} had {expected:,} rows when the timeline was computed and has {rows_read:,} now: the "
                "log has changed during the replay; run it again",
                file=chunk.path,
            )
        if not np.array_equal(clock.checksum.sums, self._checksum(at)):
            raise SourceError(
                f"{chunk.label} has other timestamps, arrivals or splits than when the timeline was computed: the log "
                "has changed during the replay; run it again when nothing writes to the log",
                file=chunk.path,
            )

    def _checksum(self, at: int) -> npt.NDArray[np.uint64]:
        return self.starts.checksums[2 * at : 2 * at + 2]

    def enter(self, chunk_index: int) -> ChunkClock:
        """Return the clock of a chunk's events, from its first batch on.

        Parameters
        ----------
        chunk_index : int
            One of the chunks that were combined.

        Raises
        ------
        DataError
            If there is no such chunk.
        """
        entries = self.starts.entries(chunk_index)
        at = int(np.searchsorted(self.starts.chunks, chunk_index))
        return ChunkClock(
            chunk_index,
            self.splits.values,
            self.starts.split[entries],
            self.starts.base[entries],
            self.starts.arrival_ms[entries],
            self.rate,
            self.paused,
            TimesChecksum(bool(self._checksum(at).any())),
            self.by_arrival,
        )
