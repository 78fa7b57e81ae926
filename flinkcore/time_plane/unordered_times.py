"""Times of a log whose rows have no positions, so that arrivals order them: summaries of chunks in any order.

The time plane needs only the maximum timestamp of the events of a split that arrive up to a tick and after the previous
one. So a chunk reports a cell (tick, maximum timestamp) for each tick that sees events of a split, and the merged cells
of all chunks are those that one chunk in order of arrival would have reported.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.event_log import MAX_ARRIVAL_MS
from flinkcore._native.time_summary import TimeSummary
from flinkcore.errors import DataError

HELD_CELLS = 1 << 20
"""Cells are merged when there are so many, or twice as many as after the last time."""


class Cells:
    """Maximum timestamps of splits at ticks."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64s, Int64s, Int64s]] = []
        self._held = self._merged = 0

    def add(self, splits: npt.NDArray[np.integer], ticks_ms: Int64s, timestamps_ms: Int64s) -> None:
        """Add cells, of which several may be of one split and tick."""
        self._parts.append((splits.astype(np.int64), ticks_ms, timestamps_ms))
        self._held += len(ticks_ms)
        if self._held > max(HELD_CELLS, 2 * self._merged):
            self.columns()

    def columns(self) -> tuple[Int64s, Int64s, Int64s]:
        """Splits, ticks and maximum timestamps, by split and tick, one of each."""
        none = (np.empty(0, np.int64),) * 3
        splits, ticks, timestamps = map(np.concatenate, zip(none, *self._parts, strict=True))
        if len(splits):
            order = np.lexsort((ticks, splits))
            splits, ticks = splits[order], ticks[order]
            firsts = np.flatnonzero(np.append(True, (np.diff(splits) != 0) | (np.diff(ticks) != 0)))
            timestamps = np.maximum.reduceat(timestamps[order], firsts)
            splits, ticks = splits[firsts], ticks[firsts]
        self._parts = [(splits, ticks, timestamps)]
        self._held = self._merged = len(splits)
        return splits, ticks, timestamps


class UnorderedSummary:
    """Summary of the events of one chunk, in any order, for the timeline; used as `TimeSummary` is.

    Parameters
    ----------
    interval_ms : int
        The auto-watermark interval; 0: no ticks, hence no cells.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._cells = Cells()
        self._times = _no_times(0)

    def reserve(self, splits: int) -> None:
        """Make room for splits numbered below `splits`."""
        missing = splits - len(self._times["events"])
        if missing > 0:
            more = _no_times(missing)
            self._times = {name: np.append(column, more[name]) for name, column in self._times.items()}

    def update(
        self, splits: Int32s, offsets: Int64s, arrivals_ms: Int64s, timestamps_ms: Int64s
    ) -> int | None:
        """Take in events; returns their earliest arrival, None without events. See `TimeSummary.update`."""
        if len(arrivals_ms) == 0:
            return None
        earliest, latest = int(arrivals_ms.min()), int(arrivals_ms.max())
        for arrival in (earliest, latest):
            if abs(arrival) > MAX_ARRIVAL_MS:
                raise DataError(f"arrival {arrival} is further than 2**61 ms from the epoch")
        events = np.diff(offsets)
        at, starts = splits[events > 0], offsets[:-1][events > 0]
        times = self._times
        times["events"][at] += events[events > 0]
        for name, extreme, column in (
            ("first_arrival_ms", np.minimum, arrivals_ms),
            ("last_arrival_ms", np.maximum, arrivals_ms),
            ("min_timestamp_ms", np.minimum, timestamps_ms),
            ("max_timestamp_ms", np.maximum, timestamps_ms),
        ):
            times[name][at] = extreme(times[name][at], extreme.reduceat(column, starts))
        if self._interval_ms:
            codes = np.repeat(np.arange(len(splits)), events)
            self._add_cells(codes, splits, arrivals_ms, timestamps_ms)
        return earliest

    def _add_cells(self, codes: Int64s, splits: Int32s, arrivals_ms: Int64s, timestamps_ms: Int64s) -> None:
        numbers = -(-arrivals_ms // self._interval_ms)
        first, n_codes = int(numbers.min()), len(splits)
        n_ticks = int(numbers.max()) - first + 1
        if n_ticks * n_codes > 4 * len(numbers):
            # Their memory is that of the next events, too.
            self._cells.add(splits[codes], numbers * self._interval_ms, timestamps_ms.copy())
            return
        # Few ticks: a table of all their cells.
        places = (numbers - first) * n_codes + codes
        latest = np.full(n_ticks * n_codes, MIN_TIMESTAMP)
        np.maximum.at(latest, places, timestamps_ms)
        seen = np.zeros(n_ticks * n_codes, bool)
        seen[places] = True
        cells = np.flatnonzero(seen)
        ticks, at = np.divmod(cells, n_codes)
        self._cells.add(splits[at], (ticks + first) * self._interval_ms, latest[cells])

    def finish(self) -> tuple[dict[str, Int64s], Int64s]:
        """As `TimeSummary.finish`; the records are the cells, each twice its tick and the maximum timestamp there."""
        splits, ticks, timestamps = self._cells.columns()
        records = np.stack([2 * ticks, timestamps], axis=1).ravel()
        n_splits = len(self._times["events"])
        return self._times | {
            "regressions": np.zeros(n_splits, np.int64),
            "raised": np.zeros(n_splits, np.int64),
            "recorded_arrival_ms": self._times["last_arrival_ms"],
            "n_records": np.bincount(splits, minlength=n_splits).astype(np.int64),
        }, records


def _no_times(splits: int) -> dict[str, Int64s]:
    return {
        "events": np.zeros(splits, np.int64),
        "first_arrival_ms": np.full(splits, MAX_TIMESTAMP),
        "last_arrival_ms": np.full(splits, MIN_TIMESTAMP),
        "min_timestamp_ms": np.full(splits, MAX_TIMESTAMP),
        "max_timestamp_ms": np.full(splits, MIN_TIMESTAMP),
    }


def cells_of(splits: Int32s, n_records: Int64s, records: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Cells in the records of a chunk, with these numbers of its splits."""
    of = np.repeat(splits, n_records).astype(np.int64)
    return of, records[::2] >> 1, records[1::2]


def records_in_order(
    cells: Cells, n_splits: int, interval_ms: int, idleness_ms: int | None, steps: bool
) -> tuple[Int64s, Int64s]:
    """Return what a chunk of all events, in order of arrival, would record: numbers of records by split, and records.

    Parameters
    ----------
    cells : Cells
        Cells of all chunks, with the numbers of their splits in the log.
    n_splits : int
    interval_ms, idleness_ms, steps
        As of `TimeSummary`.
    """
    splits, ticks, timestamps = cells.columns()
    summary = TimeSummary(interval_ms=interval_ms, idleness_ms=idleness_ms, steps=steps)
    summary.reserve(n_splits)
    offsets = np.searchsorted(splits, np.arange(n_splits + 1)).astype(np.int64)
    summary.update(np.arange(n_splits, dtype=np.int32), offsets, ticks, timestamps)
    times, records = summary.finish()
    return times["n_records"], records
