"""The processing time of a job that runs element by element: the arrivals of its elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.show.times import dated
from flinkcore._native.element_calls import ArrivalClock
from flinkcore.common import MAX_TIMESTAMP
from flinkcore.elements.arrivals.order_key import ChainCause, cause_of, root_key, timer_task_of
from flinkcore.operators.replay_clock import ReplayClock
from flinkcore.operators.timers.processing_time import ProcessingTimeCallback, ScheduledTimer

MANY_TIMES: Final = 1_000_000
"""Between two arrivals: half a minute or more."""


class JobClock(ArrivalClock):
    """The time of a job, and the timers of its tasks.

    At one time, ends of sources come first, in the order of the sources' splits; then arrivals, in that order, too;
    then timers, those of one task after the other, as the tasks are numbered: those first that others read. A timer
    for a time that has passed counts as one for now. So each task, from the times of what comes to it, knows by
    itself which of its timers come before.

    Parameters
    ----------
    start_ms : int
        Initial time, in ms since the epoch.

    """

    def __init__(self, start_ms: int) -> None:
        self.now_ms = start_ms
        self.next_due_ms = MAX_TIMESTAMP
        self._earliest_ms = start_ms
        self._tasks: dict[int, TaskClock] = {}
        self._in_order: list[tuple[int, TaskClock]] = []

    def of_task(self, task: int) -> TaskClock:
        """Return the clock of task `task`."""
        if task not in self._tasks:
            self._tasks[task] = TaskClock(self)
            self._in_order = sorted(self._tasks.items())
        return self._tasks[task]

    def arrive(self, arrival_ms: int, origin: int) -> None:
        """Show the time of an arrival of origin `origin`, before which all timers have fired."""
        self.now_ms = arrival_ms

    def end(self, end_ms: int, origin: int) -> None:
        """Let an origin end, before which all timers have fired: the clock shows the last ms in which it was there."""
        self.now_ms = max(self.now_ms, end_ms - 1)
        self._earliest_ms = end_ms

    def fire_before(self, time_ms: int) -> None:
        """Fire what is due before a time, each at its own; warn where these are very many times."""
        begin_ms, times = self.now_ms, 0
        while self.next_due_ms < time_ms:
            self.fire_due(self.next_due_ms)
            times += 1
            if times == MANY_TIMES:
                warn_user(self._of_a_gap(begin_ms, time_ms))

    def _of_a_gap(self, begin_ms: int, end_ms: int) -> str:
        return (
            f"nothing arrives between {dated(begin_ms, ' ms')} and {dated(end_ms, ' ms')}, and processing time has "
            f"fired {MANY_TIMES:,} times on the way, up to {dated(self.now_ms, ' ms')}: watermark generators are "
            "called at each auto-watermark interval, timers of functions when these want it. If that takes too long, "
            "set a longer interval, or 0 for none (set_auto_watermark_interval), or close the gap in the arrivals"
        )

    def fire_due(self, time_ms: int, before_task: int | None = None) -> None:
        """Set the clock, and fire all timers due by then, or only those of the tasks before one.

        Raises
        ------
        FlinkcoreError
            Error of a timer's callback, unchanged.
        """
        self.now_ms = time_ms
        for task, clock in self._in_order:
            if before_task is not None and task >= before_task:
                break
            if clock.next_due_ms <= time_ms:
                self._fire(task, clock, time_ms)
        self.next_due_ms = min([clock.next_due_ms for _, clock in self._in_order], default=MAX_TIMESTAMP)

    def _fire(self, task: int, clock: TaskClock, time_ms: int) -> None:
        clock.fire_due(time_ms)

    def due_ms(self, timestamp_ms: int) -> int:
        """Return when a timer that is registered now fires."""
        return max(timestamp_ms, self.now_ms, self._earliest_ms)


class TaskClock(ReplayClock):
    """The clock of a job as a task sees it, with timers of its own.

    Parameters
    ----------
    job : JobClock
    """

    def __init__(self, job: JobClock) -> None:
        self._job = job
        super().__init__(job.now_ms)

    @property
    def now_ms(self) -> int:
        """Return what the clock of the job shows."""
        return self._job.now_ms

    @now_ms.setter
    def now_ms(self, time_ms: int) -> None:
        self._job.now_ms = time_ms

    def current_processing_time(self) -> int:
        return self._job.now_ms

    def schedule_at_fixed_rate(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> ScheduledTimer:
        timer = super().schedule_at_fixed_rate(callback, initial_delay_ms, period_ms)
        self._wait_until(self.now_ms + initial_delay_ms)
        return timer

    def schedule_with_fixed_delay(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, delay_ms: int
    ) -> ScheduledTimer:
        timer = super().schedule_with_fixed_delay(callback, initial_delay_ms, delay_ms)
        self._wait_until(self.now_ms + initial_delay_ms)
        return timer

    def _wait_until(self, timestamp_ms: int) -> None:
        super()._wait_until(self._job.due_ms(timestamp_ms))
        if self.next_due_ms < self._job.next_due_ms:
            self._job.next_due_ms = self.next_due_ms

    def quiesce(self) -> None:
        super().quiesce()
        self.next_due_ms = MAX_TIMESTAMP


class PlacedClock(JobClock):
    """A clock that knows where in the order of the job what happens is; moved by arrivals, or by messages.

    Parameters
    ----------
    start_ms : int
    task : int
        Number of the task; what it emits before anything arrives comes in the order of tasks.
    moved : callable
        Called with the key of each cause and each message before it is processed.
    """

    def __init__(self, start_ms: int, task: int, moved: Callable[[bytes], None]) -> None:
        super().__init__(start_ms)
        self._moved = moved
        moved(root_key(start_ms, ChainCause.END, task))

    def arrive(self, arrival_ms: int, origin: int) -> None:
        super().arrive(arrival_ms, origin)
        self._moved(root_key(arrival_ms, ChainCause.ARRIVAL, origin))

    def end(self, end_ms: int, origin: int) -> None:
        super().end(end_ms, origin)
        self._moved(root_key(end_ms, ChainCause.END, origin))

    def _fire(self, task: int, clock: TaskClock, time_ms: int) -> None:
        self._moved(root_key(time_ms, ChainCause.TIMER, task))
        super()._fire(task, clock, time_ms)

    def receive(self, key: bytes) -> None:
        """Show the time of a message, after all timers that come before it have fired.

        If it comes from a timer itself, timers of the same time fire only of lesser tasks.
        """
        time_ms, is_end = cause_of(key)
        if self.next_due_ms <= time_ms:
            self.fire_before(time_ms)
            if self.next_due_ms == time_ms and (task := timer_task_of(key)):
                self.fire_due(time_ms, before_task=task)
        if is_end:
            super().end(time_ms, 0)
        else:
            self.now_ms = time_ms
        self._moved(key)
