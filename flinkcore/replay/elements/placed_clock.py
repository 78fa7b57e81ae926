"""The clock of one task of a job that runs in several processes."""

from __future__ import annotations

from collections.abc import Callable

from flinkcore.replay.elements.job_clock import JobClock, TaskClock
from flinkcore.replay.elements.order_key import Cause, cause_of, root_key


class PlacedClock(JobClock):
    """A clock that knows where in the order of the job what happens is; moved by arrivals, or by messages.

    Parameters
    ----------
    start_ms : int
    task : int
        Number of the task; what it emits before anything arrives comes in the order of tasks.
    moved : callable
        Told the key of each cause and each message before it is dealt with.
    """

    def __init__(self, start_ms: int, task: int, moved: Callable[[bytes], None]) -> None:
        super().__init__(start_ms)
        self._moved = moved
        moved(root_key(start_ms, Cause.END, task))

    def arrive(self, arrival_ms: int, origin: int) -> None:
        """Show the time of an arrival of the origin of a number, before which all timers have fired."""
        super().arrive(arrival_ms, origin)
        self._moved(root_key(arrival_ms, Cause.ARRIVAL, origin))

    def end(self, end_ms: int, origin: int) -> None:
        """Let an origin end, before which all timers have fired."""
        super().end(end_ms, origin)
        self._moved(root_key(end_ms, Cause.END, origin))

    def _fire(self, task: int, clock: TaskClock, time_ms: int) -> None:
        self._moved(root_key(time_ms, Cause.TIMER, task))
        super()._fire(task, clock, time_ms)

    def receive(self, key: bytes) -> None:
        """Show the time of a message, after all timers of the task that come before it have fired.

        Timers of its own time come later: a task reads only tasks of lesser numbers, whose timers come before its own.
        """
        time_ms, is_end = cause_of(key)
        if self.next_due_ms < time_ms:
            self.fire_before(time_ms)
        if is_end:
            super().end(time_ms, 0)
        else:
            self.now_ms = time_ms
        self._moved(key)
