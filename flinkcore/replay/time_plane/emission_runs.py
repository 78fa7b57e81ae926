"""Emissions of all splits, from runs that are in order each to one order, a stretch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from types import TracebackType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flinkcore.replay.time_plane.emissions import ROW_INTEGERS, Emissions
from flinkcore.replay.time_plane.record_store import RecordStore

Int64s = npt.NDArray[np.int64]

Place: TypeAlias = tuple[int, int, int]
"""Clock, cause and split, position: what emissions are ordered by."""

RUN_ROWS = 1 << 19
"""Most emissions of a run."""


@dataclass
class _Run:
    """How far a run has been read: `read` of its rows, of which `rows` have not gone on yet."""

    number: int
    stored: int
    n_rows: int
    first: Place
    rows: Int64s
    read: int = 0

    @property
    def bound(self) -> Place | None:
        """What precedes this has been read; None if all has."""
        if self.read == self.n_rows:
            return None
        return _place(self.rows[-1]) if len(self.rows) else self.first


class EmissionRuns:
    """Takes in runs of emissions, and gives them back in one order.

    Parameters
    ----------
    memory_bytes : int
        Of runs that are kept in memory; if there are more they go to a temporary file.
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
        """All emissions, once.

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

    def __enter__(self) -> EmissionRuns:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._store.close()


def _place(row: Int64s) -> Place:
    clock, cause_and_split, position_and_kind, _ = row.tolist()
    return clock, cause_and_split, position_and_kind >> 2 << 2


def _rows_before(rows: Int64s, place: Place) -> int:
    """How many of the rows, which are in order, precede a place; not those at it."""
    start, stop = 0, len(rows)
    for column, value in enumerate(place):
        values = rows[start:stop, column]
        start, stop = (
            start + int(values.searchsorted(value)),
            start + int(values.searchsorted(value, "right")),
        )
    return start
