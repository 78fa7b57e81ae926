"""Emissions of the operators of splits, element by element, and their order."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._native.valve import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.time_plane.record_store import RecordStore

ROW_INTEGERS = 4
"""Integers of an emission."""


class EmissionCause(IntEnum):
    """Cause of an emission; at one clock, emissions for events come first."""

    EVENT = 0
    TICK = 1
    END_OF_LOG = 2


class SplitEmissions:
    """Takes what the operator of one split emits, with its place in the replay: an Output.

    Attributes
    ----------
    cause : EmissionCause
    clock_ms : int
        Time of the replay clock: the arrival of the event, the tick, the last arrival.
    position : int
        Position of the event in its split; 0 if no event is the cause.
    """

    def __init__(self) -> None:
        self.cause = EmissionCause.TICK
        self.clock_ms = 0
        self.position = 0
        self._rows = array("q")

    def emit_watermark(self, watermark: Watermark) -> None:
        """Take a watermark."""
        self._add(WATERMARK_KIND, watermark.timestamp)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Take a status."""
        self._add(IDLE_KIND if status is WatermarkStatus.IDLE else ACTIVE_KIND, 0)

    def collect(self, record: StreamRecord[Any]) -> None:
        """Leave it: the first pass has no records."""

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Leave it: the first pass has no records."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Leave it: a replay has no latency."""

    def _add(self, kind: int, timestamp_ms: int) -> None:
        self._rows.extend((self.clock_ms, self.position << 4 | self.cause << 2 | kind, timestamp_ms))

    def __len__(self) -> int:
        """Return how many have been taken since `take`."""
        return len(self._rows) // 3

    def take(self) -> Int64s:
        """Return those since the last call, in their order.

        Returns
        -------
        numpy.ndarray of int64, shape (n, 3)
            Clock; position, cause and kind in one; timestamp, of a status 0.
        """
        rows, self._rows = self._rows, array("q")
        return np.array(rows, np.int64).reshape(-1, 3)


class TakenEmissions(Protocol):
    """Emissions of one split since the last call."""

    def __len__(self) -> int:
        """Return how many there are."""

    def take(self) -> Int64s:
        """Return them; see `SplitEmissions.take`."""


@dataclass(frozen=True, eq=False)
class Emissions:
    """Emissions of some splits in the order in which the valve takes them in.

    By clock; at one clock those of events in total order, then those of the tick in split order, then those of the end
    of the log.

    Parameters
    ----------
    rows : numpy.ndarray of int64, shape (n, 4)
        Clock; cause and split in one; position and kind in one; timestamp.
    """

    rows: Int64s

    @classmethod
    def of(cls, splits: Mapping[int, TakenEmissions]) -> Emissions:
        """Take the emissions of splits, by number."""
        taken = {split: emissions.take() for split, emissions in splits.items()}
        split = np.repeat(np.array(list(taken), np.int64), [len(found) for found in taken.values()])
        emitted = np.concatenate([np.empty((0, 3), np.int64), *taken.values()])
        clock, place, timestamp = emitted.T
        columns = (clock, (place & 0b1100) << 30 | split, (place >> 4) << 2 | place & 0b11, timestamp)
        return cls(np.stack(columns, axis=1)).in_order()

    def in_order(self) -> Emissions:
        """Return the rows in order; what one event or tick makes a split emit keeps its own."""
        clock, cause_and_split, position_and_kind, _ = self.rows.T
        return Emissions(self.rows[np.lexsort((position_and_kind >> 2, cause_and_split, clock))])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.rows)

    @property
    def clock_ms(self) -> Int64s:
        """Return what the replay clock showed."""
        return self.rows[:, 0]

    @property
    def by_event(self) -> npt.NDArray[np.bool_]:
        """Return whether an event was the cause."""
        by_event: npt.NDArray[np.bool_] = (self.rows[:, 1] >> 32) == EmissionCause.EVENT
        return by_event

    @property
    def split(self) -> npt.NDArray[np.int32]:
        """Number of the split."""
        return (self.rows[:, 1] & 0xFFFF_FFFF).astype(np.int32)

    @property
    def position(self) -> Int64s:
        """The position of the event that was the cause; otherwise 0."""
        return self.rows[:, 2] >> 2

    @property
    def kind(self) -> npt.NDArray[np.int8]:
        """As the valve names it."""
        return (self.rows[:, 2] & 0b11).astype(np.int8)

    @property
    def timestamp_ms(self) -> Int64s:
        """The timestamp of a watermark; otherwise 0."""
        return np.ascontiguousarray(self.rows[:, 3])

    def to_ipc(self) -> bytes:
        """Return the emissions as an Arrow IPC stream."""
        return write_columns("Emissions", {}, {"rows": self.rows.ravel()})

    @classmethod
    def from_ipc(cls, data: bytes) -> Emissions:
        """Return the emissions that `to_ipc` wrote; a DataError if these bytes are something else."""
        _, columns = read_columns("Emissions", data)
        return cls(columns["rows"].to_numpy().reshape(-1, ROW_INTEGERS))


Place: TypeAlias = tuple[int, int, int]
"""Clock, cause and split, position: what emissions are ordered by."""

RUN_ROWS = 1 << 19
"""Most emissions of a run."""


@dataclass
class _Run:
    """Progress of reading a run: `read` of its rows, of which `rows` were not yielded yet."""

    number: int
    stored: int
    n_rows: int
    first: Place
    rows: Int64s
    read: int = 0

    @property
    def bound(self) -> Place | None:
        """Return the place before which all emissions have been read, or None if all have."""
        if self.read == self.n_rows:
            return None
        return _place(self.rows[-1]) if len(self.rows) else self.first


class EmissionRuns:
    """Takes in runs of emissions, and gives them back in one order.

    Parameters
    ----------
    memory_bytes : int
        Size of the runs that are kept in memory; further runs go to a temporary file.
    buffer_rows : int
        Emissions that are read from that file at once, of all runs together.
    """

    def __init__(self, memory_bytes: int = 256 << 20, buffer_rows: int = 1 << 20) -> None:
        self._store = RecordStore(memory_bytes)
        self._buffer_rows = buffer_rows
        self._runs: list[_Run] = []

    def add(self, number: int, emissions: Emissions) -> None:
        """Take in a run.

        Parameters
        ----------
        number : int
            Runs with emissions of one split have numbers in the order in which it emitted them.
        emissions : Emissions
            In order.

        Raises
        ------
        SourceError
            If the temporary file cannot be written.
        """
        if len(emissions):
            rows = np.ascontiguousarray(emissions.rows)
            stored = self._store.add(rows.ravel())
            self._runs.append(
                _Run(number, stored, len(rows), _place(rows[0]), np.empty((0, ROW_INTEGERS), np.int64))
            )

    def in_order(self) -> Iterator[Emissions]:
        """Yield all emissions, once.

        Raises
        ------
        SourceError
            If the temporary file cannot be read.
        """
        to_come = sorted(self._runs, key=attrgetter("first", "number"), reverse=True)
        self._runs = []
        stretch = max(1, self._buffer_rows // (len(to_come) or 1))
        open_runs: list[_Run] = []
        while open_runs or to_come:
            until = min((run.bound for run in open_runs if run.bound is not None), default=None)
            while to_come and (not open_runs or until is None or to_come[-1].first <= until):
                run = to_come.pop()
                self._read(run, stretch)
                open_runs.append(run)
                until = min((place for place in (until, run.bound) if place is not None), default=None)
            ready = []
            for run in sorted(open_runs, key=attrgetter("number")):
                n_ready = len(run.rows) if until is None else _rows_before(run.rows, until)
                if n_ready:
                    ready.append(run.rows[:n_ready])
                    run.rows = run.rows[n_ready:]
                if run.bound is not None and (len(run.rows) < stretch // 2 or run.bound == until):
                    self._read(run, stretch)
            open_runs = [run for run in open_runs if len(run.rows) or run.read < run.n_rows]
            if len(ready) == 1:
                yield Emissions(ready[0])
            elif ready:
                yield Emissions(np.concatenate(ready)).in_order()

    def _read(self, run: _Run, rows: int) -> None:
        stop = min(run.n_rows, run.read + rows)
        found = self._store.values(run.stored, run.read * ROW_INTEGERS, stop * ROW_INTEGERS)
        found = found.reshape(-1, ROW_INTEGERS)
        run.rows = np.concatenate([run.rows, found]) if len(run.rows) else found
        run.read = stop

    def close(self) -> None:
        """Release memory and file."""
        self._store.close()


def _place(row: Int64s) -> Place:
    clock, cause_and_split, position_and_kind, _ = row.tolist()
    return clock, cause_and_split, position_and_kind >> 2 << 2


def _rows_before(rows: Int64s, place: Place) -> int:
    """Return how many of the rows, which are in order, precede a place; not those at it."""
    start, stop = 0, len(rows)
    for column, value in enumerate(place):
        values = rows[start:stop, column]
        start, stop = (
            start + int(values.searchsorted(value)),
            start + int(values.searchsorted(value, "right")),
        )
    return start
