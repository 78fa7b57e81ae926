"""Processing time: the clocks that timers and periodic watermarks run on, and their pending callbacks."""

import operator
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, SupportsIndex

from flinkcore._internal.python.interruptible_condition import InterruptibleCondition
from flinkcore._internal.show.times import dated
from flinkcore.errors import ConfigurationError, LifecycleError, TimerError
from flinkcore.operators.records.output import OutputFullError

ProcessingTimeCallback = Callable[[int], object]
"""Called with the time that it was registered for, in ms since the epoch; its result is ignored."""


class ServiceStatus(Enum):
    """Status of a service: it runs timers, keeps them forever, or refuses them."""

    ALIVE = "alive"
    QUIESCED = "quiesced"
    SHUT_DOWN = "shut down"


class ScheduledTimer:
    """A registered callback.

    Notes
    -----
    Stands for the ``ScheduledFuture`` that Flink returns.
    """

    __slots__ = ("_cancelled", "_finished", "_schedule", "callback", "fixed_delay_ms", "fixed_rate_ms")

    def __init__(
        self,
        schedule: "TimerSchedule",
        callback: ProcessingTimeCallback,
        fixed_rate_ms: int | None,
        fixed_delay_ms: int | None,
    ) -> None:
        self._schedule = schedule
        self._cancelled = False
        self._finished = False
        self.callback = callback
        self.fixed_rate_ms = fixed_rate_ms
        self.fixed_delay_ms = fixed_delay_ms

    def cancel(self) -> bool:
        """Keep the callback from running (again); return False if it has run, or was cancelled, before."""
        with self._schedule.lock:
            if self.is_done:
                return False
            self._cancelled = True
            self._schedule.forget_cancelled()
            return True

    @property
    def is_cancelled(self) -> bool:
        """Return whether `cancel` came in time."""
        return self._cancelled

    @property
    def is_done(self) -> bool:
        """Return whether it has run, or was cancelled; a periodic timer is done only when it is cancelled."""
        return self._cancelled or self._finished

    def finish(self) -> None:
        """Note that the only run has begun."""
        self._finished = True


class TimerSchedule:
    """Timers ordered by (time, order of registration), and whether further ones are accepted.

    Thread-safe: every method holds `lock`, which a service may hold over several calls.

    Parameters
    ----------
    on_change : callable, optional
        Called under the lock when a timer was added or the status has changed.
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self.lock = threading.RLock()
        self._on_change = on_change
        self._status = ServiceStatus.ALIVE
        self._heap: list[tuple[int, int, ScheduledTimer]] = []
        self._numbers = count()
        self._n_cancelled = 0

    @property
    def status(self) -> ServiceStatus:
        """Return whether timers run, are kept forever, or are refused."""
        return self._status

    def register(
        self,
        timestamp_ms: SupportsIndex,
        callback: ProcessingTimeCallback,
        *,
        fixed_rate_ms: int | None = None,
        fixed_delay_ms: int | None = None,
    ) -> ScheduledTimer:
        """Add a timer, which never completes if the service is quiesced.

        Parameters
        ----------
        timestamp_ms : int
            In ms since the epoch; may be negative. A time after 2**63 - 1 is never reached.
        callback : callable
        fixed_rate_ms, fixed_delay_ms : int or None
            Rate or delay at which the timer repeats.

        Raises
        ------
        ConfigurationError
            If the time is not a whole number.
        LifecycleError
            If the service was shut down.
        """
        try:
            first_ms = operator.index(timestamp_ms)
        except TypeError:
            raise ConfigurationError(
                f"the time of a timer is a whole number of milliseconds since the epoch, not {timestamp_ms!r}"
            ) from None
        with self.lock:
            if self._status is ServiceStatus.SHUT_DOWN:
                raise LifecycleError(
                    f"the timer at {dated(first_ms, ' ms')} comes after the service was shut down"
                )
            timer = ScheduledTimer(self, callback, fixed_rate_ms, fixed_delay_ms)
            self._push(first_ms, timer)
            return timer

    def register_periodic(
        self, now_ms: int, callback: ProcessingTimeCallback, initial_delay_ms: int, **repetition: int
    ) -> ScheduledTimer:
        """Add a timer that repeats, at `fixed_rate_ms` or with `fixed_delay_ms`.

        Raises
        ------
        ConfigurationError
            If the first delay is negative, or the rate or delay is not above zero.
        LifecycleError
            If the service was shut down.
        """
        if initial_delay_ms < 0:
            raise ConfigurationError(f"initial_delay_ms cannot be negative, it is {initial_delay_ms}")
        for interval_ms in repetition.values():
            if interval_ms <= 0:
                raise ConfigurationError(f"a timer repeats after at least 1 ms, not after {interval_ms} ms")
        return self.register(now_ms + initial_delay_ms, callback, **repetition)

    def repeat_after_delay(self, timer: ScheduledTimer, now_ms: int) -> None:
        """Add a timer of fixed delay again, whose call has just ended."""
        with self.lock:
            if timer.fixed_delay_ms is not None and not timer.is_done:
                self._push(now_ms + timer.fixed_delay_ms, timer)

    def next_timestamp(self) -> int | None:
        """Return the time of the first timer in ms since the epoch, or None."""
        with self.lock:
            self._drop_cancelled_head()
            return self._heap[0][0] if self._heap else None

    def pop_due(self, limit_ms: int) -> tuple[int, ScheduledTimer] | None:
        """Remove and return the first timer if it is due; one of fixed rate is added again at once.

        Parameters
        ----------
        limit_ms : int
            A timer at or before this time, in ms since the epoch, is due.

        Returns
        -------
        (int, ScheduledTimer) or None
            The time that the timer was due at, to be passed to its callback, and the timer.
        """
        with self.lock:
            self._drop_cancelled_head()
            if not self._heap or self._heap[0][0] > limit_ms:
                return None
            timestamp_ms, _, timer = heappop(self._heap)
            if timer.fixed_rate_ms is not None:
                self._push(timestamp_ms + timer.fixed_rate_ms, timer)
            elif timer.fixed_delay_ms is None:
                timer.finish()
            return timestamp_ms, timer

    def stop(self, status: ServiceStatus) -> None:
        """Drop all timers; further ones never complete (QUIESCED), or are refused (SHUT_DOWN)."""
        with self.lock:
            if self._status is not ServiceStatus.SHUT_DOWN:
                self._status = status
            self._heap.clear()
            self._n_cancelled = 0
            if self._on_change is not None:
                self._on_change()

    def forget_cancelled(self) -> None:
        """Count one more cancelled timer; drop the cancelled ones if they are more than half of all."""
        self._n_cancelled += 1
        if 2 * self._n_cancelled > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].is_cancelled]
            heapify(self._heap)
            self._n_cancelled = 0

    def __len__(self) -> int:
        with self.lock:
            return sum(not timer.is_cancelled for _, _, timer in self._heap)

    def _push(self, timestamp_ms: int, timer: ScheduledTimer) -> None:
        if self._status is ServiceStatus.ALIVE:
            heappush(self._heap, (timestamp_ms, next(self._numbers), timer))
            if self._on_change is not None:
                self._on_change()

    def _drop_cancelled_head(self) -> None:
        while self._heap and self._heap[0][2].is_cancelled:
            heappop(self._heap)
            self._n_cancelled = max(0, self._n_cancelled - 1)


class ProcessingTimeService(ABC):
    """The current processing time, and callbacks at a time.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.tasks.TimerService`` with its ``ProcessingTimeService``.
    """

    def __init__(self, schedule: TimerSchedule | None = None) -> None:
        self._schedule = TimerSchedule() if schedule is None else schedule

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the time that the clock shows, in ms since the epoch."""

    def relative_time(self) -> int:
        """Return a time in ms of which only differences count, for idleness.

        Notes
        -----
        Flink's ``Clock.relativeTimeNanos``; its manual clock shows one time for both.
        """
        return self.current_processing_time()

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        """Call back once the clock has passed `timestamp_ms`, after everything that came at that time.

        Raises
        ------
        LifecycleError
            If the service was shut down.
        """
        return self._schedule.register(timestamp_ms, callback)

    def schedule_at_fixed_rate(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> ScheduledTimer:
        """Call back at the first delay from now, and then at every period after it; late calls catch up.

        Errors are those of :meth:`TimerSchedule.register_periodic`.
        """
        now_ms = self.current_processing_time()
        return self._schedule.register_periodic(now_ms, callback, initial_delay_ms, fixed_rate_ms=period_ms)

    def schedule_with_fixed_delay(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, delay_ms: int
    ) -> ScheduledTimer:
        """Call back after the first delay, and then each time a delay after the end of the previous call.

        Errors are those of :meth:`TimerSchedule.register_periodic`.
        """
        now_ms = self.current_processing_time()
        return self._schedule.register_periodic(now_ms, callback, initial_delay_ms, fixed_delay_ms=delay_ms)

    def quiesce(self) -> None:
        """Let no further callback begin; timers registered from now on never complete, and are not errors."""
        self._schedule.stop(ServiceStatus.QUIESCED)

    def shutdown_service(self) -> None:
        """End the service without waiting: pending callbacks are dropped, and registering is an error."""
        self._schedule.stop(ServiceStatus.SHUT_DOWN)

    @property
    def is_terminated(self) -> bool:
        """Return whether `shutdown_service` was called."""
        return self._schedule.status is ServiceStatus.SHUT_DOWN


class DrivenProcessingTimeService(ProcessingTimeService):
    """The clock of replays and tests: it moves only by :meth:`advance_to`, on the thread that calls it.

    Parameters
    ----------
    start_ms : int, default 0
        The time that the clock shows at first, in ms since the epoch. For a log, pass its first arrival: a timer of
        fixed rate that was registered at 0 is called for every period since 1970.

    Attributes
    ----------
    now_ms : int
        The time that the clock shows, in ms since the epoch. Setting it runs nothing: timers that are due wait for the
        next advance, as more may come at this time.

    Notes
    -----
    Flink's ``TestProcessingTimeService``. A callback for T runs once the clock shows T, where the system service
    waits for T + 1: who drives the clock moves it after everything that came at T. Timers of equal time run in the
    order of their registration. A timer of fixed rate is called for each period that an advance passes, as Java's
    executors catch up with missed periods; a timer of fixed delay is called once.

    Examples
    --------
    >>> clock = DrivenProcessingTimeService(1000)
    >>> timer = clock.register_timer(1100, lambda timestamp: print(timestamp, clock.current_processing_time()))
    >>> clock.advance_to(1099)
    >>> clock.advance_to(1250)
    1100 1250
    """

    def __init__(self, start_ms: int = 0) -> None:
        super().__init__()
        self.now_ms = start_ms
        self._advancing = False

    def current_processing_time(self) -> int:
        return self.now_ms

    def advance_to(self, time_ms: int) -> None:
        """Set the clock, then run every callback due by then.

        Callbacks run ordered by (time, registration), including those registered meanwhile; all of them see
        the clock at `time_ms`. A timer registered for a time that has passed waits for the next advance, even
        one that does not move the clock. The clock may be set back, like a system's: nothing runs twice.

        Parameters
        ----------
        time_ms : int
            In ms since the epoch.

        Raises
        ------
        TimerError
            If a callback raises. The clock then shows `time_ms`, the failed timer is done, and the timers after it
            wait for the next advance.
        OutputFullError
            If the output of a callback is full. The timers after it wait likewise.
        LifecycleError
            If a callback of this clock advances it.
        """
        if self._advancing:
            raise LifecycleError(f"a callback cannot advance the clock that runs it (to {time_ms} ms)")
        self.now_ms = time_ms
        self._advancing = True
        try:
            while (due := self._schedule.pop_due(time_ms)) is not None:
                timestamp_ms, timer = due
                try:
                    timer.callback(timestamp_ms)
                except OutputFullError:
                    raise
                except Exception as error:
                    raise TimerError(timestamp_ms, error) from error
                finally:
                    self._schedule.repeat_after_delay(timer, time_ms)
        finally:
            self._advancing = False

    def next_timestamp(self) -> int | None:
        """Return the time of the first pending timer in ms since the epoch, or None."""
        return self._schedule.next_timestamp()

    @property
    def pending_timers(self) -> int:
        """The number of pending timers."""
        return len(self._schedule)


class SystemProcessingTimeService(ProcessingTimeService):
    """The system clock; callbacks run on one daemon thread, under the task's lock.

    A callback for T runs once the clock shows T + 1, after everything that came at T, as with a watermark T. Timers of
    equal time run in the order of their registration.

    Parameters
    ----------
    on_error : callable
        Called on the thread, under the lock, with the :class:`TimerError` of a callback that raised; the task must
        fail with it. Later callbacks still run, until the task shuts the service down. If it raises itself, the
        service shuts down.
    lock : context manager
        Held while a callback runs, so that none runs beside the task's own code, which holds it as well. It must be
        reentrant (``threading.RLock``) if callbacks call code that takes it, as source contexts do.

    Notes
    -----
    Flink's ``SystemProcessingTimeService``. Deliberate differences: periodic callbacks, too, wait for the millisecond
    after their time; one with a fixed delay is passed the time that it was due at; the period or delay, like the
    first delay, is validated.
    """

    def __init__(self, on_error: Callable[[TimerError], object], lock: AbstractContextManager[Any]) -> None:
        super().__init__(TimerSchedule(self._wake_up))
        self._on_error = on_error
        self._task_lock = lock
        # Notified when a timer was added, or the status or `_running` has changed.
        self._changed = InterruptibleCondition(self._schedule.lock)
        self._running = False
        self._thread: threading.Thread | None = None

    def current_processing_time(self) -> int:
        return time.time_ns() // 1_000_000

    def quiesce(self) -> None:
        """Let no further callback begin, and wait for the one that runs, unless that one calls this.

        Timers that are pending, or registered from now on, never complete, and are not errors.
        """
        with self._changed:
            super().quiesce()
            if threading.current_thread() is not self._thread:
                self._changed.wait_for(lambda: not self._running)

    def shutdown_and_await_pending(self, timeout_ms: int) -> bool:
        """Shut the service down, and wait for the end of its thread.

        Not to be called while holding the task's lock, for which the thread may be waiting.

        Parameters
        ----------
        timeout_ms : int
            Longest time to wait.

        Returns
        -------
        bool
            Whether the thread has ended; False also for a callback, which cannot wait for itself.
        """
        self.shutdown_service()
        thread = self._thread
        if thread is None:
            return True
        if thread is threading.current_thread():
            return False
        thread.join(timeout_ms / 1000)
        return not thread.is_alive()

    def _wake_up(self) -> None:
        if self._thread is None and self._schedule.status is ServiceStatus.ALIVE:
            self._thread = threading.Thread(target=self._run, name="processing-time timers", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        try:
            while self._wait_for_due():
                with self._task_lock:
                    self._run_one()
        finally:
            # If the error handler raised, further timers must be refused: nothing would run them.
            if self._schedule.status is ServiceStatus.ALIVE:
                self.shutdown_service()

    def _wait_for_due(self) -> bool:
        """Wait until a timer is due, and return True; False once the service has ended."""
        with self._changed:
            while self._schedule.status is ServiceStatus.ALIVE:
                timestamp_ms = self._schedule.next_timestamp()
                if timestamp_ms is None:
                    self._changed.wait()
                    continue
                remaining_ms = timestamp_ms + 1 - self.current_processing_time()
                if remaining_ms <= 0:
                    return True
                self._changed.wait(min(remaining_ms / 1000, threading.TIMEOUT_MAX))
            return False

    def run_due(self) -> None:
        """Run all callbacks that are due in the calling thread, instead of waiting until the service does."""
        with self._task_lock:
            while self._run_one():
                pass

    def _run_one(self) -> bool:
        # The task may have cancelled the timer, or ended the service, while this thread waited for its lock.
        with self._changed:
            due = self._schedule.pop_due(self.current_processing_time() - 1)
            if due is None:
                return False
            self._running = True
        timestamp_ms, timer = due
        try:
            timer.callback(timestamp_ms)
        except BaseException as error:  # a thread would swallow even SystemExit
            self._on_error(TimerError(timestamp_ms, error))
        finally:
            with self._changed:
                self._schedule.repeat_after_delay(timer, self.current_processing_time())
                self._running = False
                self._changed.notify_all()
        return True
