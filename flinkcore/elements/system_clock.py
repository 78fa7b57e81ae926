"""The processing time of a job that runs on the time of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import RLock
from typing import Final

from flinkcore.elements.arrivals.element_arrivals import Origin
from flinkcore.elements.tasks.mailbox import JobMailbox, TaskMailbox, TaskProcessingTimeService
from flinkcore.elements.tasks.stream_task import StreamTask
from flinkcore.errors import TimerError
from flinkcore.operators.timers.processing_time import SystemProcessingTimeService

POLL_SECONDS: Final = 0.005
"""So long a source waits that had nothing when it was polled."""


def _not_ended(origins: Sequence[Origin]) -> list[Origin]:
    return [origin for origin in origins if origin.next_arrival_ms is not None]


class SystemJobClock:
    """The time of the machine, and the timers of a job's tasks.

    The thread of the job takes elements from all sources in turn, and runs due timers between them; where there is
    neither it waits.

    Parameters
    ----------
    check : callable
        Raises an error if the job is to stop.

    Attributes
    ----------
    mailbox : JobMailbox
        Mailbox in which due timers wait.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        self._system = SystemProcessingTimeService(self._raise_in_job, RLock())
        self.mailbox = JobMailbox(check, self._system.run_due)
        self._tasks: dict[int, TaskProcessingTimeService] = {}

    def of_task(self, task: int) -> TaskProcessingTimeService:
        """Return the clock of task `task`."""
        if task not in self._tasks:
            self._tasks[task] = TaskProcessingTimeService(self._system, self.mailbox.of_task(task))
        return self._tasks[task]

    def mailbox_of(self, task: int) -> TaskMailbox:
        """Return the mailbox of task `task`."""
        return self.mailbox.of_task(task)

    def emit_all(
        self, origins: Sequence[Origin], holds_ends: bool, is_stopping: Callable[[], bool]
    ) -> Iterator[None]:
        """Emit all elements as they come, and pause after some, and before each wait.

        Parameters
        ----------
        origins : sequence of Origin
        holds_ends : bool
            Whether nothing ends any more where only ends are left.
        is_stopping : callable
            Returns whether the job is to stop during its sources; who changes that wakes the mailbox.
        """
        mailbox, left = self.mailbox, list(origins)
        for origin in left:
            if origin.had_ended:  # before timers are due that ended with it
                origin.emit()
        left = _not_ended(left)
        while left:
            if is_stopping():
                yield from self._stop_all(left)
                return
            found = False
            for origin in left:
                if mailbox.was_woken:
                    found = True
                    mailbox.run()
                if not origin.is_available():
                    continue
                if holds_ends and origin.comes_to_end and all(other.comes_to_end for other in left):
                    return
                origin.emit()
                found |= not origin.found_nothing
            left = _not_ended(left)
            yield
            if left and not found and not is_stopping():
                mailbox.wait(POLL_SECONDS if any(origin.found_nothing for origin in left) else None)

    def _stop_all(self, origins: Sequence[Origin]) -> Iterator[None]:
        """Emit what functions have emitted, until they have returned."""
        for origin in origins:
            origin.stop()
        while emitting := [origin for origin in origins if not origin.has_stopped]:
            self.mailbox.was_woken = False
            available = [origin for origin in emitting if origin.is_available() and not origin.comes_to_end]
            for origin in available:
                origin.emit()
            yield
            if not available:
                self.mailbox.wait(POLL_SECONDS)

    def finish_calls(self, tasks: Sequence[StreamTask]) -> None:
        """Run what is due, let the calls of asynchronous functions end, and emit their results."""
        self.mailbox.run()
        for task in tasks:
            task.finish_calls()

    def close(self) -> None:
        """Drop all timers, and end the thread that waits for them."""
        self._system.shutdown_service()

    def _raise_in_job(self, error: TimerError) -> None:
        def raise_it() -> None:
            raise error

        self.mailbox.of_task(0).put(raise_it)
