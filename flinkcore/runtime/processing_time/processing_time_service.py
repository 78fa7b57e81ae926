"""What every processing-time clock offers to operators and sources."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

ProcessingTimeCallback = Callable[[int], object]
"""Called with the time it was registered for, in ms since the epoch; what it returns is ignored."""


class ScheduledTimer(Protocol):
    """A registered callback.

    Notes
    -----
    Stands for the ``ScheduledFuture`` that Flink returns.
    """

    def cancel(self) -> bool:
        """Keep the callback from running (again); False if it has run, or was cancelled, before."""

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` came in time."""

    @property
    def is_done(self) -> bool:
        """Whether it has run, or was cancelled; a periodic one is done only when cancelled."""


class ProcessingTimeService(ABC):
    """The current processing time, and callbacks at a time.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.tasks.TimerService`` with its ``ProcessingTimeService``.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The time that the clock shows, in ms since the epoch."""

    @abstractmethod
    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        """Call back once the clock has left `timestamp_ms` behind: all that came at that time comes first."""

    @abstractmethod
    def schedule_at_fixed_rate(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> ScheduledTimer:
        """Call back at the first delay from now, and then at every period after it, however long calls take."""

    @abstractmethod
    def schedule_with_fixed_delay(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, delay_ms: int
    ) -> ScheduledTimer:
        """Call back after the first delay, and then always a delay after the end of the call before."""

    @abstractmethod
    def quiesce(self) -> None:
        """Let no further callback begin; timers registered from now on never complete, and are no error."""

    @abstractmethod
    def shutdown_service(self) -> None:
        """End the service: pending callbacks are dropped, and registering is an error."""

    @property
    @abstractmethod
    def is_terminated(self) -> bool:
        """Whether `shutdown_service` was called."""
