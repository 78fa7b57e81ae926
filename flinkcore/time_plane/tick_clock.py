"""The ticks of a replay: when its operators are called besides events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s


@dataclass(frozen=True)
class TickClock:
    """The replay clock of a log, from its first arrival to its last; ticks lie on the multiples of the interval.

    Parameters
    ----------
    interval_ms : int
        The auto-watermark interval; 0: no ticks.
    first_arrival_ms, last_arrival_ms : int
        First and last arrival of all splits.
    restored_opened_ms, stopped_ms : int or None
        Where the log is resumed from a checkpoint: its opening, and the last arrival before. Ticks up to there are
        done, but not one at that arrival.
    """

    interval_ms: int
    first_arrival_ms: int
    last_arrival_ms: int
    restored_opened_ms: int | None = None
    stopped_ms: int | None = None

    @property
    def opened_ms(self) -> int:
        """Return when all operators are opened: one interval before the first tick that sees an event of the log."""
        if self.restored_opened_ms is not None:
            return self.restored_opened_ms
        if self.interval_ms == 0:
            return self.first_arrival_ms
        return -(-self.first_arrival_ms // self.interval_ms) * self.interval_ms - self.interval_ms

    def ticks_of(self, arrivals_ms: Int64s) -> Int64s:
        """Return the first tick that sees each event; without ticks the opening."""
        if self.interval_ms == 0:
            return np.full(len(arrivals_ms), self.opened_ms)
        return -(-arrivals_ms // self.interval_ms) * self.interval_ms

    @property
    def first_tick_ms(self) -> int:
        """The first tick to come; without ticks the opening."""
        if self.stopped_ms is None:
            return self.opened_ms + self.interval_ms
        return int(self.ticks_of(np.array([self.stopped_ms]))[0])

    @property
    def stop_of_ticks_ms(self) -> int:
        """The first tick that is left to another log, where the log stops with a checkpoint; else the opening."""
        return int(self.ticks_of(np.array([self.last_arrival_ms]))[0])

    @property
    def end_of_ticks_ms(self) -> int:
        """The first tick that does not come any more, beyond the last arrival; without ticks the opening."""
        if self.interval_ms == 0:
            return self.opened_ms
        return self.last_arrival_ms // self.interval_ms * self.interval_ms + self.interval_ms
