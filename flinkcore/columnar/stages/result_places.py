"""The places of what a function gives, in the total order of the operator's results."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, Order, cause_of_firing
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS

NOT_FIRED = -1


class ResultPlaces:
    """Notes for each result what it was given for.

    Parameters
    ----------
    number
        Number of the operator in the job, from 0 on.
    key_context
        Whose current key is that of a timer.
    now
        Returns the replay clock, how many steps of the timeline the next operator has seen, and whether a
        watermark is the cause.
    """

    def __init__(
        self, number: int, key_context: KeyContext, now: Callable[[], tuple[int, int, bool]]
    ) -> None:
        self._number = number
        self._key_context = key_context
        self._now = now
        self._rows = array("q")
        self._timestamps = array("q")
        self._fired: list[tuple[int, ...]] = []
        self._sequence = 1
        self._moment: tuple[int, ...] = ()
        self._latest: dict[int, int] = {}

    @property
    def moment(self) -> tuple[int, int, bool]:
        """Return the moment at which a result would be emitted."""
        return self._now()

    @property
    def bytes_per_row(self) -> int:
        """The size of the place and the timestamp of a result."""
        return 8 * (FIXED_COLUMNS + self._number + 2)

    def add(self, row: int, timestamp: int | None) -> None:
        """Note a result: for the element of this number among the current ones, or if that is negative, for a timer."""
        self._rows.append(row if row >= 0 else NOT_FIRED - len(self._fired))
        self._timestamps.append(MIN_TIMESTAMP if timestamp is None else timestamp)
        if row < 0:
            self._add_timer(timestamp)

    def _add_timer(self, timestamp: int | None) -> None:
        clock_ms, steps, by_watermark = self._now()
        moment = clock_ms, steps, AFTER_ALL_SPLITS, 0, cause_of_firing(self._number, by_watermark)
        if moment != self._moment:
            self._moment, self._latest = moment, {}
        # A timer that another one has registered for an earlier time comes after that nevertheless.
        group = self._key_context.key_group_of_id(self._key_context.current_key_id)
        time_ms = clock_ms if timestamp is None or not by_watermark else timestamp
        fired = max(self._latest.get(group, MIN_TIMESTAMP), time_ms)
        self._latest[group] = fired
        self._fired.append((*moment, fired, group))

    def take(self, elements: Order) -> tuple[Int64s, Order]:
        """Timestamps and places of the results since the last call.

        Parameters
        ----------
        elements
            Places of the current elements; empty columns without any.
        """
        rows, timestamps = np.array(self._rows, np.int64), np.array(self._timestamps, np.int64)
        n_rows = len(rows)
        sequence = np.arange(self._sequence, self._sequence + n_rows)
        self._sequence += n_rows
        by_timer = rows < 0
        order = tuple(np.zeros(n_rows, np.int64) for _ in range(len(elements) + 1))
        for column, places in zip(order, elements, strict=False):
            column[~by_timer] = places[rows[~by_timer]]
        order[-1][~by_timer] = sequence[~by_timer]
        fired = np.array(self._fired, np.int64).reshape(-1, FIXED_COLUMNS)[NOT_FIRED - rows[by_timer]]
        for column, places in zip(order, fired.T, strict=False):
            column[by_timer] = places
        order[FIXED_COLUMNS][by_timer] = sequence[by_timer]
        self._rows, self._timestamps, self._fired = array("q"), array("q"), []
        return timestamps, order
