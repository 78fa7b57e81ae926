"""The clock of the machine, with callbacks on a thread."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from flinkcore.errors import TimerError
from flinkcore.runtime.processing_time.processing_time_service import (
    ProcessingTimeCallback,
    ProcessingTimeService,
    ScheduledTimer,
)
from flinkcore.runtime.processing_time.timer_schedule import PendingTimer, ServiceStatus, TimerSchedule


class SystemProcessingTimeService(ProcessingTimeService):
    """Processing time of the system clock; callbacks run on one daemon thread, under the task's lock.

    A callback for T runs once the clock shows T + 1, so that it has seen all of T, as a watermark T has.
    Timers of equal time run in the order of their registration.

    Parameters
    ----------
    on_error : callable
        Called on the thread, under the lock, with the :class:`TimerError` of a callback that raised; the task
        is to fail with it. Later callbacks still run, until the task shuts the service down. If it raises
        itself, the service shuts down.
    lock : context manager
        Held while a callback runs, so that none runs beside the task's own code, which holds it as well. It
        must be reentrant (``threading.RLock``) if callbacks call what takes it, as source contexts do.

    Notes
    -----
    Flink's ``SystemProcessingTimeService``. Deliberate differences: periodic callbacks, too, wait for the
    millisecond after their time; one with a fixed delay is passed the time that it was due at; the period or
    delay, like the first delay, is validated.
    """

    def __init__(self, on_error: Callable[[TimerError], object], lock: AbstractContextManager[Any]) -> None:
        self._on_error = on_error
        self._task_lock = lock
        self._schedule = TimerSchedule()
        # Notified when the first timer, the status or `_running` changes.
        self._changed = threading.Condition(self._schedule.lock)
        self._running = False
        self._thread: threading.Thread | None = None

    def current_processing_time(self) -> int:
        """Return the system's time, in ms since the epoch."""
        return time.time_ns() // 1_000_000

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        """Call back once the clock shows a time after `timestamp_ms`.

        Raises
        ------
        LifecycleError
            If the service was shut down.
        """
        with self._changed:
            return self._awaited(self._schedule.register(timestamp_ms, callback))

    def schedule_at_fixed_rate(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> ScheduledTimer:
        """Call back at the first delay from now, then at every period after it; late calls catch up.

        Raises
        ------
        ConfigurationError
            If the delay is negative, or the period not above zero.
        LifecycleError
            If the service was shut down.
        """
        with self._changed:
            now_ms = self.current_processing_time()
            return self._awaited(
                self._schedule.register_periodic(now_ms, callback, initial_delay_ms, fixed_rate_ms=period_ms)
            )

    def schedule_with_fixed_delay(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, delay_ms: int
    ) -> ScheduledTimer:
        """Call back after the first delay, then always a delay after the end of the call before.

        Raises
        ------
        ConfigurationError
            If the first delay is negative, or the other not above zero.
        LifecycleError
            If the service was shut down.
        """
        with self._changed:
            now_ms = self.current_processing_time()
            return self._awaited(
                self._schedule.register_periodic(now_ms, callback, initial_delay_ms, fixed_delay_ms=delay_ms)
            )

    def quiesce(self) -> None:
        """Let no further callback begin, and wait for the one that runs; timers no longer complete.

        Timers registered from now on never complete either, and are no error. Called by a callback, it does
        not wait for that one.
        """
        with self._changed:
            self._schedule.quiesce()
            self._changed.notify_all()
            if threading.current_thread() is not self._thread:
                self._changed.wait_for(lambda: not self._running)

    def shutdown_service(self) -> None:
        """End the service: pending callbacks are dropped, and registering is an error; waits for nothing."""
        with self._changed:
            self._schedule.shut_down()
            self._changed.notify_all()

    def shutdown_and_await_pending(self, timeout_ms: int) -> bool:
        """Shut the service down, and wait for the end of its thread.

        Not to be called while holding the task's lock, for which the thread may be waiting.

        Parameters
        ----------
        timeout_ms : int
            How long to wait at most.

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

    @property
    def is_terminated(self) -> bool:
        """Whether `shutdown_service` was called."""
        return self._schedule.status is ServiceStatus.SHUT_DOWN

    def _awaited(self, timer: PendingTimer) -> PendingTimer:
        if self._thread is None and self._schedule.status is ServiceStatus.ALIVE:
            self._thread = threading.Thread(target=self._run, name="processing-time timers", daemon=True)
            self._thread.start()
        self._changed.notify_all()
        return timer

    def _run(self) -> None:
        try:
            while self._wait_for_due():
                with self._task_lock:
                    self._run_one()
        finally:
            # Also the end of a thread whose error handler raised: registering must not look as if all were well.
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

    def _run_one(self) -> None:
        # The task may have cancelled the timer, or ended the service, while this thread waited for its lock.
        with self._changed:
            due = self._schedule.pop_due(self.current_processing_time() - 1)
            if due is None:
                return
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
