"""Processing time in a replay: the arrival of the current event."""

from __future__ import annotations

from functools import partial

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import FlinkcoreError, TimerError
from flinkcore.operators.records.output import OutputFullError
from flinkcore.operators.timers.processing_time import (
    DrivenProcessingTimeService,
    ProcessingTimeCallback,
    ScheduledTimer,
)


class ReplayClock(DrivenProcessingTimeService):
    """A driven clock that knows at every moment when the next timer may be due.

    Parameters
    ----------
    start_ms : int
        Initial time, in ms since the epoch.

    Attributes
    ----------
    next_due_ms : int
        A lower bound of the times of all pending timers, in ms since the epoch; `MAX_TIMESTAMP` without timers.
    """

    def __init__(self, start_ms: int = MIN_TIMESTAMP) -> None:
        super().__init__(start_ms)
        self.next_due_ms = MAX_TIMESTAMP

    def relative_time(self) -> int:
        # Arrivals lie within 2**61 ms of the epoch, and an idleness timer takes 0 for no time.
        return self.current_processing_time() + 2**62

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        """Call back at a time; one that has passed counts as now, and callbacks come with the next `fire_due`."""
        timer = super().register_timer(timestamp_ms, callback)
        self._wait_until(timestamp_ms)
        return timer

    def _wait_until(self, timestamp_ms: int) -> None:
        if timestamp_ms < self.next_due_ms:
            self.next_due_ms = timestamp_ms

    def fire_due(self, time_ms: int) -> None:
        """Set the clock, and fire all timers due by then.

        Raises
        ------
        FlinkcoreError
            Error of a timer's callback, unchanged.
        OutputFullError
            If a callback gives more than its output can take now.
        """
        self.next_due_ms = MAX_TIMESTAMP
        try:
            self.advance_to(time_ms)
        except OutputFullError as full:
            full.then(partial(self.fire_due, time_ms))
            raise
        except TimerError as failure:
            if isinstance(failure.__cause__, FlinkcoreError):
                raise failure.__cause__ from failure.__cause__.__cause__
            raise
        waiting = self.next_timestamp()
        self.next_due_ms = MAX_TIMESTAMP if waiting is None else waiting
