"""The pending callbacks of a processing-time service, in the order in which they are due."""

import operator
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import count
from threading import RLock
from typing import SupportsIndex

from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.runtime.processing_time.processing_time_service import ProcessingTimeCallback


class ServiceStatus(Enum):
    """What a service does with timers: run them, keep them for ever, or refuse them."""

    ALIVE = "alive"
    QUIESCED = "quiesced"
    SHUT_DOWN = "shut down"


class PendingTimer:
    """A callback in a :class:`TimerSchedule`; the `ScheduledTimer` of both services."""

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
        """Keep the callback from running (again); False if it has run, or was cancelled, before."""
        with self._schedule.lock:
            if self.is_done:
                return False
            self._cancelled = True
            self._schedule.forget_cancelled()
            return True

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` came in time."""
        return self._cancelled

    @property
    def is_done(self) -> bool:
        """Whether it has run, or was cancelled; a periodic one is done only when cancelled."""
        return self._cancelled or self._finished

    def finish(self) -> None:
        """Note that the only run has begun."""
        self._finished = True


class TimerSchedule:
    """Timers ordered by (time, order of registration), and whether any may still be added.

    Safe for threads: every method holds `lock`, which a service may hold over several calls.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._status = ServiceStatus.ALIVE
        self._heap: list[tuple[int, int, PendingTimer]] = []
        self._numbers = count()
        self._n_cancelled = 0

    @property
    def status(self) -> ServiceStatus:
        """Whether timers run, are kept for ever, or are refused."""
        return self._status

    def register(
        self,
        timestamp_ms: SupportsIndex,
        callback: ProcessingTimeCallback,
        *,
        fixed_rate_ms: int | None = None,
        fixed_delay_ms: int | None = None,
    ) -> PendingTimer:
        """Add a timer, one that never completes if the service is quiesced.

        Parameters
        ----------
        timestamp_ms : int
            May be negative; a time after 2**63 - 1 is never reached.
        callback : callable
        fixed_rate_ms, fixed_delay_ms : int or None
            How the timer repeats.

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
                raise LifecycleError(f"the timer at {first_ms} ms comes after the service was shut down")
            timer = PendingTimer(self, callback, fixed_rate_ms, fixed_delay_ms)
            self._push(first_ms, timer)
            return timer

    def register_periodic(
        self, now_ms: int, callback: ProcessingTimeCallback, initial_delay_ms: int, **repetition: int
    ) -> PendingTimer:
        """Add a timer that repeats, at `fixed_rate_ms` or with `fixed_delay_ms`.

        Raises
        ------
        ConfigurationError
            If the first delay is negative, or the other not above zero.
        LifecycleError
            If the service was shut down.
        """
        if initial_delay_ms < 0:
            raise ConfigurationError(f"initial_delay_ms cannot be negative, it is {initial_delay_ms}")
        for interval_ms in repetition.values():
            if interval_ms <= 0:
                raise ConfigurationError(f"a timer repeats after at least 1 ms, not after {interval_ms} ms")
        return self.register(now_ms + initial_delay_ms, callback, **repetition)

    def repeat_after_delay(self, timer: PendingTimer, now_ms: int) -> None:
        """Add a timer of fixed delay again, whose call has ended now."""
        with self.lock:
            if timer.fixed_delay_ms is not None and not timer.is_done:
                self._push(now_ms + timer.fixed_delay_ms, timer)

    def next_timestamp(self) -> int | None:
        """Return the time of the first timer; None if there is none."""
        with self.lock:
            self._drop_cancelled_head()
            return self._heap[0][0] if self._heap else None

    def pop_due(self, limit_ms: int) -> tuple[int, PendingTimer] | None:
        """Take out the first timer if its time is at or before the limit; a fixed rate goes back in at once.

        Returns
        -------
        (int, PendingTimer) or None
            The time that the timer was due at, which its callback is to be given, and the timer.
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

    def quiesce(self) -> None:
        """Forget all timers; those added from now on never complete."""
        self._stop(ServiceStatus.QUIESCED)

    def shut_down(self) -> None:
        """Forget all timers, and refuse more."""
        self._stop(ServiceStatus.SHUT_DOWN)

    def forget_cancelled(self) -> None:
        """Count one more cancelled timer, and let go of them once they are half of what is kept."""
        self._n_cancelled += 1
        if 2 * self._n_cancelled > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].is_cancelled]
            heapify(self._heap)
            self._n_cancelled = 0

    def __len__(self) -> int:
        with self.lock:
            return sum(not timer.is_cancelled for _, _, timer in self._heap)

    def _push(self, timestamp_ms: int, timer: PendingTimer) -> None:
        if self._status is ServiceStatus.ALIVE:
            heappush(self._heap, (timestamp_ms, next(self._numbers), timer))

    def _drop_cancelled_head(self) -> None:
        while self._heap and self._heap[0][2].is_cancelled:
            heappop(self._heap)
            self._n_cancelled = max(0, self._n_cancelled - 1)

    def _stop(self, status: ServiceStatus) -> None:
        with self.lock:
            if self._status is not ServiceStatus.SHUT_DOWN:
                self._status = status
            self._heap.clear()
            self._n_cancelled = 0
