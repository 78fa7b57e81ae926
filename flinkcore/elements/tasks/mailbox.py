"""Mailboxes: callbacks of the system clock, which wait for the thread of their job."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final

from flinkcore._internal.python.interruptible_condition import InterruptibleCondition
from flinkcore.elements.tasks.task_output import InputChannel
from flinkcore.errors import FlinkcoreError, TimerError
from flinkcore.operators.records.stream_elements import StreamElement, StreamRecord
from flinkcore.operators.timers.processing_time import (
    ProcessingTimeCallback,
    ProcessingTimeService,
    ScheduledTimer,
    ServiceStatus,
    SystemProcessingTimeService,
    TimerSchedule,
)

Mail = Callable[[], None]
"""Called in the thread of the job."""

LEAST_SECONDS: Final = 0.01
"""Time for which a task always may run mails that come meanwhile: the notice that a timer is due may be late itself."""


class JobMailbox:
    """The mailboxes of all tasks of a job, and what the job's thread waits for when it has nothing to do.

    Parameters
    ----------
    check : callable
        Raises an error if the job is to stop; the thread then no longer waits.
    deliver_due : callable
        Puts the mails of all timers that are due.

    Attributes
    ----------
    was_woken : bool
        Whether there is mail, or something else to look for, since `run`.
    lock, changed : Lock, InterruptibleCondition
        Lock and condition on which the thread waits: whoever stops the job notifies it.

    Notes
    -----
    Stands where Flink has ``MailboxProcessor``: each task has a mailbox, but all tasks of a job share one thread.
    """

    def __init__(self, check: Callable[[], None], deliver_due: Callable[[], None]) -> None:
        self._check = check
        self._deliver_due = deliver_due
        self._tasks: dict[int, TaskMailbox] = {}
        self._in_order: list[TaskMailbox] = []
        self.was_woken = False
        self.lock = Lock()
        self.changed = InterruptibleCondition(self.lock)

    def of_task(self, task: int) -> TaskMailbox:
        """Return the mailbox of task `task`."""
        if task not in self._tasks:
            self._tasks[task] = TaskMailbox(self.wake, self._deliver_due, self._check, self._wait_while)
            self._in_order = [mailbox for _, mailbox in sorted(self._tasks.items())]
        return self._tasks[task]

    def wake(self) -> None:
        """Let the thread look for what there is to do; may be called in any thread."""
        with self.lock:
            self.was_woken = True
            self.changed.notify()

    def run(self) -> None:
        """Run mails, those of a task after those of the tasks that it reads; mails that are left wake the thread."""
        self.was_woken = False
        for mailbox in self._in_order:
            mailbox.run()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the thread is woken, but not longer than a timeout."""
        with self.lock:
            self._check()
            if not self.was_woken:
                self.changed.wait(timeout_s)

    def _wait_while(self, is_waiting: Callable[[], bool]) -> None:
        """Wait, without running anything, until what is waited for has come and woken the thread."""
        with self.lock:
            while is_waiting():
                self._check()
                self.changed.wait()


class TaskMailbox:
    """The mails of a task.

    Parameters
    ----------
    wake : callable
        Called when there is a mail, or a source of the task has something.
    deliver_due : callable
        Puts the mails of all timers that are due.
    check : callable
        Raises an error if the job is to stop; no further mail is run then.
    wait_while : callable
        Lets the thread wait while what it is given returns true, which `wake` has it look at.

    Notes
    -----
    Flink's ``TaskMailbox``.
    """

    def __init__(
        self,
        wake: Callable[[], None],
        deliver_due: Callable[[], None],
        check: Callable[[], None],
        wait_while: Callable[[Callable[[], bool]], None],
    ) -> None:
        self._mails: deque[Mail] = deque()
        self._deliver_due = deliver_due
        self._check = check
        self._wait_while = wait_while
        self._waits_since_s = monotonic()
        self.wake = wake

    def put(self, mail: Mail) -> None:
        """Add a mail; may be called in any thread."""
        if not self._mails:
            self._waits_since_s = monotonic()
        self._mails.append(mail)
        self.wake()

    def __len__(self) -> int:
        return len(self._mails)

    def wait(self) -> None:
        """Wait in the thread of the job until there is a mail; all that the thread does waits with it."""
        self._wait_while(lambda: not self._mails)

    def run(self) -> None:
        """Run queued mails until the queue is empty, including those of overdue timers that come meanwhile.

        These, however, for no longer than mail has waited for the thread: as with a thread of its own, timers that
        register due timers without end hold up no elements.
        """
        mails, check = self._mails, self._check
        now_s = monotonic()
        self._deliver_due()
        until_s = now_s + max(now_s - self._waits_since_s, LEAST_SECONDS)
        while mails:
            for _ in range(len(mails)):
                check()
                mails.popleft()()
            if monotonic() >= until_s:
                break
            self._deliver_due()
        self._waits_since_s = monotonic()

    def before(self, channel: InputChannel) -> InputChannel:
        """Return a channel whose elements come after the mails that there are.

        A function that sleeps upstream holds up the thread. The timers of this task that were due meanwhile come before
        what the function gives, as if the task had a thread of its own.
        """
        mails, run, collect, process, end = (
            self._mails,
            self.run,
            channel.collect,
            channel.process,
            channel.end,
        )

        def collect_after_mails(record: StreamRecord[Any]) -> None:
            if mails:
                run()
            collect(record)

        def process_after_mails(element: StreamElement[Any], number: int) -> None:
            if mails:
                run()
            process(element, number)

        def end_after_mails() -> None:
            if mails:
                run()
            end()

        return InputChannel(collect_after_mails, process_after_mails, channel.number, end_after_mails)


class TaskProcessingTimeService(ProcessingTimeService):
    """The system clock as a task sees it: callbacks are mails.

    Parameters
    ----------
    system : SystemProcessingTimeService
        Clock of the job.
    mailbox : TaskMailbox

    Notes
    -----
    Flink's ``ProcessingTimeServiceImpl`` with ``StreamTask.deferCallbackToMailbox``. Deliberate difference: a timer
    that is cancelled while its mail waits is not called.
    """

    def __init__(self, system: SystemProcessingTimeService, mailbox: TaskMailbox) -> None:
        super().__init__()
        self._system = system
        self._mailbox = mailbox

    def current_processing_time(self) -> int:
        return self._system.current_processing_time()

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        timer = _MailedTimer(self._schedule, callback, repeats=False)
        if self._schedule.status is ServiceStatus.ALIVE:
            timer.behind = self._system.register_timer(timestamp_ms, self._to_mailbox(timer))
        return timer

    def schedule_at_fixed_rate(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> ScheduledTimer:
        timer = _MailedTimer(self._schedule, callback, repeats=True)
        if self._schedule.status is ServiceStatus.ALIVE:
            mailed = self._to_mailbox(timer)
            timer.behind = self._system.schedule_at_fixed_rate(mailed, initial_delay_ms, period_ms)
        return timer

    def schedule_with_fixed_delay(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, delay_ms: int
    ) -> ScheduledTimer:
        timer = _MailedTimer(self._schedule, callback, repeats=True)
        if self._schedule.status is ServiceStatus.ALIVE:
            mailed = self._to_mailbox(timer)
            timer.behind = self._system.schedule_with_fixed_delay(mailed, initial_delay_ms, delay_ms)
        return timer

    def _to_mailbox(self, timer: _MailedTimer) -> ProcessingTimeCallback:
        return lambda timestamp_ms: self._mailbox.put(partial(self._call, timer, timestamp_ms))

    def _call(self, timer: _MailedTimer, timestamp_ms: int) -> None:
        if timer.is_cancelled or self._schedule.status is not ServiceStatus.ALIVE:
            return
        if not timer.repeats:
            timer.finish()
        try:
            timer.callback(timestamp_ms)
        except FlinkcoreError:
            raise
        except Exception as error:
            raise TimerError(timestamp_ms, error) from error


class _MailedTimer(ScheduledTimer):
    """Timer of a task, and the system's timer for it, whose callback is a mail."""

    __slots__ = ("behind", "repeats")

    def __init__(self, schedule: TimerSchedule, callback: ProcessingTimeCallback, repeats: bool) -> None:
        super().__init__(schedule, callback, None, None)
        self.repeats = repeats
        self.behind: ScheduledTimer | None = None

    def cancel(self) -> bool:
        if self.behind is not None:
            self.behind.cancel()
        return super().cancel()
