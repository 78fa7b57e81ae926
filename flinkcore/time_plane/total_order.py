"""Events of many runs, brought into the total order of a replay as early as what is still to come allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int32s, Int64s, RowNumbers
from flinkcore._internal.arrow.batch_bytes import pieces_of
from flinkcore._internal.arrow.joined_batches import joined, taken
from flinkcore._internal.values.memory_limits import BATCH_BYTES, HELD_BYTES
from flinkcore._native.exchange import total_order
from flinkcore.time_plane.parked_events import ParkedEvents, Place
from flinkcore.time_plane.timeline import Timeline

MERGED_ROWS = 1 << 18

_FEW_ROWS = 1 << 14
"""Runs with fewer rows together are joined even if they do not overlap."""

_SHARE = 4
"""The overlapping pieces of parked events take about this part of the bytes that may be held."""

LEAST_RUN: Final = 1 << 10
"""Rows in order are not copied if runs of them are as long on average: each run is a batch for what reads them."""

_MOST_PIECE_BYTES = 1 << 20
_SMALL_PIECES = 1 << 12
"""A piece of parked events is smaller than this part of the bytes that may be held if rows alone are so large."""

RowsT = TypeVar("RowsT", bound="TimedRows")


class BatchesInOrder:
    """Batches of one schema, one after the other, which are joined, and so copied, once somebody asks for one batch.

    Parameters
    ----------
    parts : list of pyarrow.RecordBatch
        At least one.
    """

    def __init__(self, parts: list[pa.RecordBatch]) -> None:
        self.parts = parts

    @cached_property
    def nbytes(self) -> int:
        """Bytes that the rows take."""
        return sum(int(part.nbytes) for part in self.parts)

    @cached_property
    def joined(self) -> pa.RecordBatch:
        """The rows as one batch."""
        return joined(self.parts)

    def ranges(self, starts: Int64s, stops: Int64s) -> pa.RecordBatch | BatchesInOrder:
        """Return ranges of rows, at least one, one after the other, without copying."""
        parts = [self.joined] if "joined" in self.__dict__ else self.parts
        ends = np.cumsum([part.num_rows for part in parts])
        firsts = np.searchsorted(ends[:-1], starts, side="right")
        found = []
        for start, stop, number in zip(starts.tolist(), stops.tolist(), firsts.tolist(), strict=True):
            while True:
                part = parts[number]
                begin = int(ends[number]) - part.num_rows
                last = min(stop, int(ends[number]))
                found.append(part.slice(start - begin, last - start))
                if last == stop:
                    break
                start, number = last, number + 1
        return found[0] if len(found) == 1 else BatchesInOrder(found)


@dataclass(frozen=True)
class TimedRows:
    """Rows of a batch with the columns of their times and places.

    Attributes
    ----------
    rows
        The user's columns, as a batch, or as batches that are joined when it is asked for.
    timestamps, arrivals
        int64 (n_rows,), ms since the epoch.
    """

    rows: pa.RecordBatch | BatchesInOrder
    timestamps: Int64s
    arrivals: Int64s

    @property
    def batch(self) -> pa.RecordBatch:
        """The user's columns."""
        return self.rows.joined if isinstance(self.rows, BatchesInOrder) else self.rows

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """The user's columns, in batches whose rows lie one after the other."""
        return self.rows.parts if isinstance(self.rows, BatchesInOrder) else [self.rows]

    @cached_property
    def batch_bytes(self) -> int:
        """Bytes that the user's columns take, which Arrow counts buffer by buffer."""
        return int(self.rows.nbytes)

    def with_batch(self: RowsT, batch: pa.RecordBatch) -> RowsT:
        """Return the same rows with other columns."""
        return replace(self, rows=batch)

    @classmethod
    @cache
    def _columns(cls) -> tuple[str, ...]:
        """Names of the columns beside the batch."""
        return tuple(column.name for column in fields(cls)[1:])

    def _of_rows(
        self: RowsT,
        batch: pa.RecordBatch | BatchesInOrder,
        rows: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
    ) -> RowsT:
        """Some of the rows, as a batch or several; the call selects them in a column."""
        return type(self)(batch, *(rows(getattr(self, name)) for name in self._columns()))

    def take(self: RowsT, rows: RowNumbers) -> RowsT:
        """The given rows, copied in the given order."""
        # numpy would convert another index type once per column.
        at = rows.astype(np.intp)
        return self._of_rows(taken(self.batch, rows), lambda column: column.take(at))

    def with_rows(self: RowsT, batch: pa.RecordBatch, kept: npt.NDArray[Any]) -> RowsT:
        """Rows that a filter has kept, as the batch that it gave."""
        return self._of_rows(batch, lambda column: column[kept])

    def slice(self: RowsT, start: int, stop: int) -> RowsT:
        """A range of rows, without copying."""
        if isinstance(self.rows, BatchesInOrder):
            rows = self.rows.ranges(np.array([start]), np.array([stop]))
        else:
            rows = self.rows.slice(start, stop - start)
        return self._of_rows(rows, lambda column: column[start:stop])

    def in_order_of(self: RowsT, rows: RowNumbers) -> RowsT:
        """The given rows, at least one, in the given order: copied, unless long runs of them lie as they are given."""
        if not isinstance(self.rows, BatchesInOrder):
            return self.take(rows)
        begins = np.flatnonzero(np.diff(rows) != 1) + 1
        if len(begins) * LEAST_RUN > len(rows):
            return self.take(rows)
        at = rows.astype(np.intp)
        starts, stops = at[np.append(0, begins)], at[np.append(begins - 1, -1)] + 1
        return self._of_rows(self.rows.ranges(starts, stops), lambda column: column.take(at))

    def cut(self: RowsT, most_bytes: int) -> Iterator[RowsT]:
        """Yield the rows in ranges of at most so many bytes of the user's columns, without copying."""
        if self.batch_bytes <= most_bytes:
            yield self
        else:
            yield from (self.slice(*rows) for rows in pieces_of(self.batch, most_bytes))

    def pieces(self: RowsT, rows: RowNumbers | None, most_rows: int) -> Iterator[RowsT]:
        """Yield the given rows in the given order, or all as they lie if None, `most_rows` at a time."""
        n_rows = len(self.arrivals) if rows is None else len(rows)
        for start in range(0, n_rows, most_rows):
            stop = min(start + most_rows, n_rows)
            yield self.slice(start, stop) if rows is None else self.take(rows[start:stop])

    @property
    def n_events(self) -> int:
        """Number of rows."""
        return len(self.arrivals)


@dataclass(frozen=True)
class LogEvents(TimedRows):
    """Rows of a log with their places in the total order of the replay.

    Attributes
    ----------
    splits
        int32 (n_rows,), index of the split.
    positions
        int64 (n_rows,), position in the split.
    """

    splits: Int32s
    positions: Int64s

    def key(self, row: int) -> Place:
        """Place of a row in the total order."""
        return int(self.arrivals[row]), int(self.splits[row]), int(self.positions[row])

    def rows_before(self, key: Place) -> int:
        """Number of rows, which lie in total order, whose place comes before another."""
        start, stop = 0, len(self.arrivals)
        columns: tuple[npt.NDArray[Any], ...] = (self.arrivals, self.splits, self.positions)
        for column, value in zip(columns, key, strict=True):
            column = column[start:stop]
            first = start + int(column.searchsorted(value, side="left"))
            stop = start + int(column.searchsorted(value, side="right"))
            start = first
            if start == stop:
                break
        return start

    def in_order(self) -> tuple[LogEvents, RowNumbers | None]:
        """These events and their rows in total order; None where they lie so."""
        return self, total_order(self.arrivals, self.splits, self.positions)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the rows take, about."""
        return self.batch_bytes + 28 * len(self.timestamps)

    def packed(self) -> pa.RecordBatch:
        """Return all columns as a batch, those of times and places after the user's."""
        places = self.timestamps, self.arrivals, self.splits, self.positions
        columns = [*self.batch.columns, *map(pa.array, places)]
        return pa.RecordBatch.from_arrays(columns, [str(number) for number in range(len(columns))])

    @classmethod
    def unpacked(cls, packed: pa.RecordBatch, schema: pa.Schema) -> LogEvents:
        """Return rows that were packed, with the schema of the user's columns."""
        n_columns = len(schema)
        places = (column.to_numpy() for column in packed.columns[n_columns:])
        columns = packed.columns[:n_columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema) if n_columns else packed.select([])
        return cls(batch, *places)

    def in_timeline(self, timeline: Timeline, rows: RowNumbers | None = None) -> TimelineEvents:
        """The events with the steps of a timeline before each.

        Parameters
        ----------
        timeline
            Timeline of the operator to which they come.
        rows
            Rows that come to it, in total order, or None for all in the given order.
        """
        steps = timeline.steps_before(self.arrivals, self.splits, self.positions, rows)
        return TimelineEvents(self.rows, self.timestamps, self.arrivals, self.splits, self.positions, steps)


@dataclass(frozen=True)
class Events(TimedRows, ABC):
    """Rows of a batch as they come to an operator.

    Attributes
    ----------
    steps
        int64 (n_rows,), how many steps of the timeline come before: the last one is the watermark in force.
    """

    steps: Int64s

    @abstractmethod
    def are_of_second(self, second_from: int) -> npt.NDArray[np.bool_]:
        """Return which rows come to the second input of the operator.

        Parameters
        ----------
        second_from
            Splits of the logs of that input have this number or a higher one.
        """


@dataclass(frozen=True)
class TimelineEvents(Events, LogEvents):
    """Rows of logs as they come to an operator: their splits determine the input."""

    def are_of_second(self, second_from: int) -> npt.NDArray[np.bool_]:
        return self.splits >= second_from


def concatenate(parts: list[LogEvents]) -> LogEvents:
    """Return all rows of the parts, one part after the other."""
    return LogEvents(
        BatchesInOrder([batch for part in parts for batch in part.batches]),
        np.concatenate([part.timestamps for part in parts]),
        np.concatenate([part.arrivals for part in parts]),
        np.concatenate([part.splits for part in parts]),
        np.concatenate([part.positions for part in parts]),
    )


class TotalOrderMerge:
    """Merges runs of events; gives those that nothing still to come can precede.

    Rows pass through without a copy as long as the runs do not overlap. What is held back is bounded by how far the
    runs overlap in arrival; beyond a limit it waits in a temporary file. Memory does not follow the length of the log.

    Parameters
    ----------
    timeline
        Timeline of the operator to which the events come.
    most_rows, most_bytes
        Overlapping runs are joined, copied, and handed on in pieces of so many rows and bytes at most; no piece has
        more bytes, unless it has only one row.
    held_bytes
        Events that are held back go to the temporary file if they take more memory.
    """

    def __init__(
        self,
        timeline: Timeline,
        most_rows: int = MERGED_ROWS,
        most_bytes: int = BATCH_BYTES,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._timeline = timeline
        self._most_rows = most_rows
        self._few_rows = min(most_rows, _FEW_ROWS)
        self._most_bytes = most_bytes
        self._held_bytes = held_bytes
        self._held: list[tuple[LogEvents, int]] = []
        self._parked = ParkedEvents()
        self._loaded: list[LogEvents] = []
        self._schema = pa.schema([])
        self._bytes = 0

    def add(self, events: LogEvents) -> None:
        """Add events, in any order.

        Raises
        ------
        SourceError
            If the temporary file cannot be written.
        """
        if events.n_events == 0:
            return
        for each in events.cut(self._most_bytes):
            part, rows = each.in_order()
            part = part if rows is None else part.take(rows)
            n_bytes = part.nbytes
            self._held.append((part, n_bytes))
            self._bytes += n_bytes

    @property
    def is_full(self) -> bool:
        """Return whether added events take more memory than may be held: `release` is due, which parks them."""
        return self._bytes > self._held_bytes

    @property
    def rows_in_memory(self) -> int:
        """Number of events that are held back and are not in the file."""
        held = sum(part.n_events for part, _ in self._held)
        return held + sum(part.n_events for part in self._loaded)

    def release(self, arrival: int | None) -> Iterator[tuple[TimelineEvents, RowNumbers | None]]:
        """Yield all events that arrive before a time, in total order.

        Parameters
        ----------
        arrival
            Lower bound of the arrivals of further events (ms since the epoch), or None if no more events come.

        Yields
        ------
        tuple of (TimelineEvents, numpy.ndarray of uint32 or None)
            Events and their rows in order; None where they lie in order.

        Raises
        ------
        SourceError
            If the temporary file cannot be written or read.
        """
        until = None if arrival is None else (arrival, -1, 0)
        while (first := self._parked.first) is not None and (until is None or first < until):
            following = self._load(first, until)
            bound = following if until is None or (following is not None and following < until) else until
            yield from self._take_before(bound)
        yield from self._take_before(until)
        if self.is_full:
            self._park()

    def close(self) -> None:
        """Release memory and file."""
        self._held, self._loaded, self._bytes = [], [], 0
        self._parked.close()

    def _load(self, first: Place, until: Place | None) -> Place | None:
        """Read parked pieces, and return the first place that is still parked: some rows come before it."""
        left = self._held_bytes // 2
        following: Place | None = first
        while following is not None and (following == first or left > 0):
            if until is not None and following >= until:
                break
            packed, n_bytes = self._parked.take()
            self._loaded.append(LogEvents.unpacked(packed, self._schema))
            left -= n_bytes
            following = self._parked.first
        return following

    def _take_before(self, place: Place | None) -> Iterator[tuple[TimelineEvents, RowNumbers | None]]:
        """Yield the rows in memory that come before a place, or all, in total order."""
        ready: list[LogEvents] = []
        held: list[tuple[LogEvents, int]] = []
        for part, n_bytes in self._held:
            rest = self._cut(part, place, ready)
            if rest is not None:
                held.append((rest, n_bytes * rest.n_events // part.n_events))
        rests = [self._cut(part, place, ready) for part in self._loaded]
        self._held, self._loaded = held, [rest for rest in rests if rest is not None]
        self._bytes = sum(n_bytes for _, n_bytes in held)
        for events, rows in self._merged(ready):
            yield events.in_timeline(self._timeline, rows), rows

    @staticmethod
    def _cut(part: LogEvents, place: Place | None, ready: list[LogEvents]) -> LogEvents | None:
        """Add the rows of a part before a place to those that are ready, and return the others, or None."""
        n_rows = part.n_events
        cut = n_rows if place is None else part.rows_before(place)
        if cut:
            ready.append(part.slice(0, cut) if cut < n_rows else part)
        return None if cut == n_rows else part.slice(cut, n_rows) if cut else part

    def _park(self) -> None:
        """Write what is held to the temporary file, in pieces so small that those that overlap have room in memory."""
        held = [part for part, _ in self._held]
        self._held, self._bytes = [], 0
        self._schema = held[0].batch.schema
        room = self._held_bytes // _SHARE
        least = max(1, self._held_bytes // _SMALL_PIECES)
        overlapping = self._parked.most_overlapping()
        runs: Iterable[LogEvents] = held
        n_runs = len(held)
        if (overlapping + n_runs) * least > room:  # too many to read a piece of each: one run of all
            n_runs = 1
            runs = (part if rows is None else part.take(rows) for part, rows in self._merged(held))
        piece_bytes = min(_MOST_PIECE_BYTES, max(least, room // (overlapping + n_runs)))
        for run in runs:
            rows = max(1, run.n_events * piece_bytes // max(1, run.nbytes))
            for piece in run.pieces(None, rows):
                self._parked.add(piece.packed(), piece.key(0), int(piece.arrivals[-1]))

    def _merged(self, runs: list[LogEvents]) -> Iterator[tuple[LogEvents, RowNumbers | None]]:
        left = deque(sorted(runs, key=lambda run: run.key(0)))
        while left:
            together = [left.popleft()]
            last = together[0].key(-1)
            if left and left[0].key(0) <= last:
                # Most of a long run may lie before the next one begins: that much passes without a copy. Few rows
                # would be a step of their own, which costs more.
                yield from self._pass_before(together, left[0].arrivals[0])
            n_rows = together[0].n_events
            while left and (left[0].key(0) <= last or n_rows + left[0].n_events <= self._few_rows):
                together.append(left.popleft())
                last = max(last, together[-1].key(-1))
                n_rows += together[-1].n_events
            if len(together) == 1:
                yield together[0], None
            elif self._are_few(together):
                yield concatenate(together).in_order()
            else:
                halves = _halves(together)
                if halves is None:  # in any order: they are alike
                    yield from ((run, None) for run in together)
                else:
                    for half in halves:
                        yield from self._merged(half)

    def _are_few(self, runs: list[LogEvents]) -> bool:
        if sum(len(run.arrivals) for run in runs) > self._most_rows:
            return False
        # The bytes of the first runs may be enough: to count those of wide rows takes long.
        return all(n_bytes <= self._most_bytes for n_bytes in accumulate(run.nbytes for run in runs))

    def _pass_before(
        self, parts: list[LogEvents], arrival: np.int64
    ) -> Iterator[tuple[LogEvents, RowNumbers | None]]:
        part = parts[0]
        cut = int(np.searchsorted(part.arrivals, arrival, side="left"))
        if cut >= self._few_rows:
            parts[0] = part.slice(cut, len(part.arrivals))
            yield part.slice(0, cut), None


def _halves(runs: list[LogEvents]) -> tuple[list[LogEvents], list[LogEvents]] | None:
    """Cut runs at the middle of the longest, or after it if nothing is before; None if all rows have one place."""
    longest = max(runs, key=lambda run: len(run.arrivals))
    arrival, split, position = longest.key(len(longest.arrivals) // 2)
    # Rows of one content have one place, where that is their position.
    for place in ((arrival, split, position), (arrival, split, position + 1)):
        before, after = [], []
        for run in runs:
            n_rows, cut = len(run.arrivals), run.rows_before(place)
            if cut:
                before.append(run.slice(0, cut))
            if cut < n_rows:
                after.append(run.slice(cut, n_rows))
        if before and after:
            return before, after
    return None
