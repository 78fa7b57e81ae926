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
from flinkcore._native.time_summary import TimeSummary, window_length
from flinkcore.errors import DataError
from flinkcore.time_plane.record_blocks import RecordBlock

HELD_CELLS = 1 << 20


class Cells:
    """Maximum timestamps of splits at ticks.

    Parameters
    ----------
    held : int
        Cells are merged when there are more, and more than twice as many as after the last time.
    """

    def __init__(self, held: int = HELD_CELLS) -> None:
        self._most_held = held
        self._parts: list[tuple[Int64s, Int64s, Int64s]] = []
        self._held = self._merged = 0

    @property
    def nbytes(self) -> int:
        """Return the bytes that they took when they were merged for the last time."""
        return 24 * self._merged

    def add(self, splits: npt.NDArray[np.integer], ticks_ms: Int64s, timestamps_ms: Int64s) -> None:
        """Add cells, of which several may be of one split and tick."""
        self._parts.append((splits.astype(np.int64), ticks_ms, timestamps_ms))
        self._held += len(ticks_ms)
        if self._held > max(self._most_held, 2 * self._merged):
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
    window_ticks : int
        Ticks of a window, as of `TimeSummary`.
    held : int
        Cells that are held before they are merged.
    """

    def __init__(self, interval_ms: int, window_ticks: int, held: int = HELD_CELLS) -> None:
        self._interval_ms = interval_ms
        self._window_ms = window_length(interval_ms, window_ticks)
        self._held = held
        self._cells = Cells(held)
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

    @property
    def nbytes(self) -> int:
        """Return the bytes of the cells so far, when they were merged for the last time."""
        return self._cells.nbytes

    def take(self) -> tuple[Int32s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
        """As of `TimeSummary.take`; but every cell is a record, and maxima are those of the parts."""
        splits, ticks, timestamps = self._cells.columns()
        self._cells = Cells(self._held)
        windows = ticks // self._window_ms if self._window_ms else np.zeros_like(ticks)
        order = np.argsort(windows, kind="stable")
        splits, ticks, timestamps, windows = (
            column[order] for column in (splits, ticks, timestamps, windows)
        )
        is_first = np.append(True, (np.diff(splits) != 0) | (np.diff(windows) != 0))[: len(splits)]
        firsts = np.flatnonzero(is_first)
        lasts = np.append(firsts[1:], np.full(min(1, len(splits)), len(splits)))
        latest = np.maximum.reduceat(timestamps, firsts) if len(firsts) else timestamps
        of_parts = splits[firsts].astype(np.int32)
        return of_parts, ticks[firsts], ticks[lasts - 1], latest, lasts - firsts, ticks, timestamps

    def finish(self) -> dict[str, Int64s]:
        """As of `TimeSummary.finish`."""
        n_splits = len(self._times["events"])
        return self._times | {
            "regressions": np.zeros(n_splits, np.int64),
            "raised": np.zeros(n_splits, np.int64),
            "recorded_arrival_ms": self._times["last_arrival_ms"],
        }


def _no_times(splits: int) -> dict[str, Int64s]:
    return {
        "events": np.zeros(splits, np.int64),
        "first_arrival_ms": np.full(splits, MAX_TIMESTAMP),
        "last_arrival_ms": np.full(splits, MIN_TIMESTAMP),
        "min_timestamp_ms": np.full(splits, MAX_TIMESTAMP),
        "max_timestamp_ms": np.full(splits, MIN_TIMESTAMP),
    }


def records_in_order(
    cells: Cells, n_splits: int, interval_ms: int, idleness_ms: int | None, steps: bool
) -> RecordBlock:
    """Return what a chunk of all events, in order of arrival, would record.

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
    return RecordBlock(*summary.take())
