"""The processing time of a job that runs on the time of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import RLock
from typing import Final

from flinkcore.errors import TimerError
from flinkcore.replay.elements.element_arrivals import Origin
from flinkcore.runtime.processing_time import SystemProcessingTimeService
from flinkcore.runtime.tasks.mailbox import JobMailbox, TaskMailbox, TaskProcessingTimeService

POLL_SECONDS: Final = 0.005
"""So long a source waits that had nothing when it was polled."""


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
        What due timers wait in.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        self._system = SystemProcessingTimeService(self._raise_in_job, RLock())
        self.mailbox = JobMailbox(check, self._system.run_due)
        self._tasks: dict[int, TaskProcessingTimeService] = {}

    def of_task(self, task: int) -> TaskProcessingTimeService:
        """Return the clock of the task of a number."""
        if task not in self._tasks:
            self._tasks[task] = TaskProcessingTimeService(self._system, self.mailbox.of_task(task))
        return self._tasks[task]

    def mailbox_of(self, task: int) -> TaskMailbox:
        """Return the mailbox of the task of a number."""
        return self.mailbox.of_task(task)

    def emit_all(self, origins: Sequence[Origin]) -> Iterator[None]:
        """Let all elements go on their way, as they come, and stop after some, and before each wait."""
        mailbox, left = self.mailbox, list(origins)
        while left:
            found = False
            for origin in left:
                if mailbox.was_woken:
                    found = True
                    mailbox.run()
                if origin.is_available():
                    origin.emit()
                    found |= not origin.found_nothing
            left = [origin for origin in left if origin.next_arrival_ms is not None]
            yield
            if left and not found:
                mailbox.wait(POLL_SECONDS if any(origin.found_nothing for origin in left) else None)

    def close(self) -> None:
        """Drop all timers, and end the thread that waits for them."""
        self._system.shutdown_service()

    def _raise_in_job(self, error: TimerError) -> None:
        def raise_it() -> None:
            raise error

        self.mailbox.of_task(0).put(raise_it)
