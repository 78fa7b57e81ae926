"""The time plane of a replay: watermarks per split, merged into one timeline.

A task summarises the times of a chunk of the log (`ChunkTimes`), independently of the chunks before it;
`combine_times.combine` makes the summaries, in log order, into the `TimePlane`, from which every task of the
data plane gets the clock of its chunk (`ChunkClock`) and the watermark in force at each arrival. However the
log is cut, the timeline is the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.show.html import html_lines, html_table
from flinkcore._internal.show.times import format_timestamp
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.event_log import steps_before
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


_AT_TICKS: Final = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Timeline:
    """The merged watermark as a step function of the replay clock.

    Parameters
    ----------
    clock_ms : numpy.ndarray of int64, shape (n_steps,)
        Non-decreasing; a step happens after all events with arrival ≤ its clock, unless an event made it.
    watermark_ms : numpy.ndarray of int64, shape (n_steps,)
        Increasing. Where operators of a job share steps, one's watermark may stay the same at steps of the others.
        The last step is the end of the log, 2**63 - 1 at clock 2**63 - 1, even if a generator has emitted that
        watermark before; it is missing if the job stops with a checkpoint. From a checkpoint on, the first is the
        watermark of that, just before its cut.
    split, position : numpy.ndarray of int64, shape (n_steps,)
        The event that made the step, which comes right after it, before later events with the same arrival;
        split `AFTER_ALL_SPLITS`, position 0: no event but a tick or the end of the log. May be left out where all steps
        are of that kind.
    """

    clock_ms: Int64s
    watermark_ms: Int64s
    split: Int64s = field(default_factory=lambda: _AT_TICKS)
    position: Int64s = field(default_factory=lambda: _AT_TICKS)

    def __post_init__(self) -> None:
        if self.split is _AT_TICKS:
            object.__setattr__(self, "split", np.full_like(self.clock_ms, AFTER_ALL_SPLITS))
            object.__setattr__(self, "position", np.zeros_like(self.clock_ms))

    @property
    def has_steps_of_events(self) -> bool:
        """Return whether some steps were made by events, and not by ticks."""
        return bool((self.split != AFTER_ALL_SPLITS).any())

    @classmethod
    def to_end_of_time(cls, clock_ms: Int64s, watermark_ms: Int64s, *places: Int64s) -> Timeline:
        """Return the timeline of what generators have emitted, and of the end of the log after it.

        Parameters
        ----------
        clock_ms, watermark_ms : numpy.ndarray of int64, shape (n_steps,)
        places : numpy.ndarray of int64, shape (n_steps,)
            Splits and positions; none: no step was made by an event.
        """
        end = MAX_TIMESTAMP, MAX_TIMESTAMP, AFTER_ALL_SPLITS, 0
        columns = clock_ms, watermark_ms, *places
        return cls(*(np.append(column, value) for column, value in zip(columns, end, strict=False)))

    @classmethod
    def between_cuts(
        cls,
        clock_ms: Int64s,
        watermark_ms: Int64s,
        *places: Int64s,
        first_step: tuple[int, int] | None,
        stops: bool,
    ) -> Timeline:
        """Return the timeline of what generators have emitted after a cut and up to another one.

        Parameters
        ----------
        clock_ms, watermark_ms : numpy.ndarray of int64, shape (n_steps,)
        places : numpy.ndarray of int64, shape (n_steps,)
            Splits and positions; none: no step was made by an event.
        first_step : (int, int) or None
            The step that stands for all before the cut: `TimeCut.step`.
        stops : bool
            False: the end of time follows.
        """
        columns = [clock_ms, watermark_ms, *places]
        if first_step is not None:
            first = [*first_step, AFTER_ALL_SPLITS, 0]
            columns = [np.insert(column, 0, value) for column, value in zip(columns, first, strict=False)]
        return cls(*columns) if stops else cls.to_end_of_time(*columns)

    def __repr__(self) -> str:
        steps = self.steps_before_end
        if not steps:
            return "Timeline(no watermark before the end of the log)"
        clocks, watermarks = (
            [format_timestamp(int(column[at])) for at in (0, steps - 1)]
            for column in (self.clock_ms, self.watermark_ms)
        )
        return (
            f"Timeline({steps:,} steps, watermark {watermarks[0]} to {watermarks[1]}, on the replay clock at "
            f"{clocks[0]} to {clocks[1]})"
        )

    def _repr_html_(self) -> str:
        steps = self.steps_before_end
        if not steps:
            return html_lines(repr(self))
        ends = [("first", 0), ("last", steps - 1)]
        rows = [
            (name, *(format_timestamp(int(column[at])) for column in (self.clock_ms, self.watermark_ms)))
            for name, at in ends
        ]
        table = html_table([("step", ""), ("replay clock", ""), ("watermark", "")], rows, [False] * 3)
        return f"{table}<small>{steps:,} step{'s' * (steps != 1)} before the end of the log</small>"

    def steps_done(self, restored_arrival_ms: int | None) -> int:
        """Return how many steps were done before the log, which is resumed from a checkpoint after this arrival."""
        if restored_arrival_ms is None:
            return 0
        return int(np.searchsorted(self.clock_ms[:1], restored_arrival_ms, side="left"))

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
        return steps_before(self.clock_ms, self.split, self.position, arrival_ms, split, position, rows)

    def steps_before_timers(self, time_ms: Int64s) -> Int64s:
        """Return how many steps lie before the processing-time timers due at these times; ticks of that time do not."""
        split = np.full(len(time_ms), AFTER_ALL_SPLITS, np.int32)
        return self.steps_before(time_ms, split, np.zeros(len(time_ms), np.int64))

    def watermark_after(self, steps: Int64s) -> Int64s:
        """Return the watermark in force after so many steps; -2**63 before the first."""
        return self._watermark_after[steps]

    def rises(self) -> Int64s:
        """Numbers of the steps at which the watermark rises, and of the end of the log, which is an advance always."""
        rises = self.watermark_ms > self._watermark_after[:-1]
        rises[self.steps_before_end :] = True
        return np.flatnonzero(rises)

    @cached_property
    def _watermark_after(self) -> Int64s:
        return np.concatenate((np.array([MIN_TIMESTAMP]), self.watermark_ms))

    @property
    def steps_before_end(self) -> int:
        """Return how many steps come before the end of the log, which is the step after them unless the job stops."""
        return len(self.clock_ms) - int(MAX_TIMESTAMP in self.clock_ms[-1:])

    @property
    def watermark_before_end(self) -> int:
        """The watermark in force when the log ends or the job stops; -2**63 before the first."""
        return int(self._watermark_after[self.steps_before_end])

    def end_ms(self, last_arrival_ms: int) -> int:
        """Return the replay clock at the end of a log with this last arrival, when all steps before it are done."""
        before = self.steps_before_end
        return max(last_arrival_ms, int(self.clock_ms[before - 1])) if before else last_arrival_ms


@dataclass(frozen=True, eq=False)
class SplitTimes:
    """Figures of the splits for reports, in split order.

    Parameters
    ----------
    values : list
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

    values: list[Any]
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
    def split_values(self) -> list[Any]:
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
            timeline=Timeline(none, none),
            splits=replace(self.splits, idle_split=none, idle_from_ms=none, idle_to_ms=none),
            floors=ArrivalFloors(none, none, none),
            cut=None,
            statuses=Statuses.none(),
            holders=Holders.unknown(),
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
            # No split goes back behind the chunks before.
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

    def to_ipc(self) -> bytes:
        """Return the time plane as an Arrow IPC stream."""
        columns = {
            f"{part}.{member.name}": getattr(getattr(self, part), member.name)
            for part, kind in _PARTS.items()
            for member in fields(kind)
        }
        header = {
            "rate": self.rate and asdict(self.rate),
            "by_arrival": self.by_arrival,
            "replay_range": self.replay_range,
            "restored_arrival_ms": self.restored_arrival_ms,
        }
        return write_columns("TimePlane", header, columns)

    @classmethod
    def from_ipc(cls, data: bytes) -> TimePlane:
        """Return the time plane that `to_ipc` wrote; a DataError if these bytes are something else."""
        header, columns = read_columns("TimePlane", data)
        parts: dict[str, Any] = {
            part: kind(
                **{
                    member.name: columns[f"{part}.{member.name}"].to_pylist()
                    if member.name == "values"
                    else columns[f"{part}.{member.name}"].to_numpy()
                    for member in fields(kind)
                }
            )
            for part, kind in _PARTS.items()
        }
        return cls(
            **parts,
            rate=ArrivalRate(**header["rate"]) if header["rate"] else None,
            by_arrival=header["by_arrival"],
            replay_range=tuple(header["replay_range"]) if header["replay_range"] else None,
            restored_arrival_ms=header["restored_arrival_ms"],
        )


_PARTS: dict[str, type[Any]] = {
    "timeline": Timeline,
    "splits": SplitTimes,
    "starts": ChunkStarts,
    "floors": ArrivalFloors,
    "paused": PausedSpans,
    "statuses": Statuses,
}
