"""The places of what a function over batches gives, in the total order of its results."""

from __future__ import annotations

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.stages.placed_events import Order, cause_of_firing
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS


class BatchResultPlaces:
    """Notes for each result of which element or timer it is.

    Timers that fire at one moment come by time, and those of equal time by a hash of their keys, as Flink leaves their
    order open. None of this depends on how many of them one call gets, and on what came before a checkpoint.

    Parameters
    ----------
    number
        Number of the operator in the job, from 0 on.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._timestamps = np.empty(0, np.int64)
        self._order: Order = ()
        self._sequence = 1
        self._latest_moment = np.empty(0, np.int64)
        self._latest_ms = np.empty(0, np.int64)
        self._noted: list[tuple[Int64s, Order]] = []

    def of_elements(self, timestamps: Int64s, order: Order) -> None:
        """Results are for elements from now on, with these timestamps and places."""
        self._timestamps, self._order = timestamps, order

    def of_timers(
        self,
        key_ids: Int64s,
        hashes: Int64s,
        times: Int64s,
        clocks: Int64s,
        steps: Int64s,
        by_watermark: bool,
    ) -> None:
        """Results are for timers from now on.

        Parameters
        ----------
        key_ids, hashes
            Keys, and what distinguishes their values.
        times
            Times for which the timers were registered.
        clocks
            Times of the replay clock.
        steps
            Numbers of steps of the timeline that the next operator has seen.
        by_watermark
            Whether watermarks fire them, and not the clock.
        """
        n_rows = len(key_ids)
        moments = 2 * steps + by_watermark
        fired = np.maximum(times if by_watermark else clocks, self._latest(key_ids, moments))
        self._latest_ms[key_ids], self._latest_moment[key_ids] = fired, moments
        none = np.zeros(n_rows, np.int64)
        columns = (
            clocks,
            steps,
            np.full(n_rows, AFTER_ALL_SPLITS, np.int64),
            none,
            np.full(n_rows, cause_of_firing(self._number, by_watermark), np.int64),
            fired,
            hashes,
        )
        self._order = (*columns, *(none for _ in range(self._number)))
        self._timestamps = times if by_watermark else np.full(n_rows, MIN_TIMESTAMP)

    def _latest(self, key_ids: Int64s, moments: Int64s) -> Int64s:
        """The time of each key's last timer at this moment: what that has registered for an earlier time follows it."""
        wanted = int(key_ids.max(initial=-1)) + 1
        if wanted > len(self._latest_moment):
            more = max(wanted, 2 * len(self._latest_moment)) - len(self._latest_moment)
            self._latest_moment = np.concatenate((self._latest_moment, np.full(more, -1)))
            self._latest_ms = np.concatenate((self._latest_ms, np.full(more, MIN_TIMESTAMP)))
        return np.where(self._latest_moment[key_ids] == moments, self._latest_ms[key_ids], MIN_TIMESTAMP)

    def add(self, rows: Int64s) -> None:
        """Note results, for these rows of the elements or timers."""
        sequence = np.arange(self._sequence, self._sequence + len(rows))
        self._sequence += len(rows)
        order = (*(column[rows] for column in self._order), sequence)
        self._noted.append((self._timestamps[rows], order))

    def take(self) -> tuple[Int64s, Order]:
        """Timestamps and places of the results since the last call, at least one."""
        timestamps, orders = zip(*self._noted, strict=True)
        self._noted = []
        return np.concatenate(timestamps), tuple(map(np.concatenate, zip(*orders, strict=True)))
