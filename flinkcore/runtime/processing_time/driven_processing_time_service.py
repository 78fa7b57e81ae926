"""A clock that stands still until it is told to move: that of replays and tests."""

from flinkcore.errors import LifecycleError, TimerError
from flinkcore.runtime.output import OutputFullError
from flinkcore.runtime.processing_time.processing_time_service import (
    ProcessingTimeCallback,
    ProcessingTimeService,
    ScheduledTimer,
)
from flinkcore.runtime.processing_time.timer_schedule import ServiceStatus, TimerSchedule


class DrivenProcessingTimeService(ProcessingTimeService):
    """Processing time that moves only by :meth:`advance_to`, on the thread that calls it.

    Parameters
    ----------
    start_ms : int, default 0
        What the clock shows at first, in ms since the epoch. Of a log, take the first arrival: a timer of fixed
        rate that was registered at 0 is called for every period of the decades up to it.

    Attributes
    ----------
    now_ms : int
        What the clock shows. Setting it leaves what is due to the next advance: more may come at this time.

    Notes
    -----
    Flink's ``TestProcessingTimeService``. A callback for T runs once the clock shows T, where the system
    service waits for T + 1: who drives the clock moves it after all that came at T. Timers of equal time run
    in the order of their registration. A timer of fixed rate is called for each period that an advance passes, as
    Java's executors catch up with what they missed; only one of fixed delay is called once.

    Examples
    --------
    >>> clock = DrivenProcessingTimeService(1000)
    >>> timer = clock.register_timer(1100, lambda timestamp: print(timestamp, clock.current_processing_time()))
    >>> clock.advance_to(1099)
    >>> clock.advance_to(1250)
    1100 1250
    """

    def __init__(self, start_ms: int = 0) -> None:
        self.now_ms = start_ms
        self._schedule = TimerSchedule()
        self._advancing = False

    def current_processing_time(self) -> int:
        """Return what the clock was last set to, in ms since the epoch."""
        return self.now_ms

    def advance_to(self, time_ms: int) -> None:
        """Set the clock, then run every callback due by then.

        Callbacks run ordered by (time, registration), including those registered meanwhile; all of them see
        the clock at `time_ms`. A timer registered for a time that has passed waits for the next advance, even
        one that does not move the clock. The clock may be set back, as a system's may: nothing runs twice.

        Parameters
        ----------
        time_ms : int
            In ms since the epoch.

        Raises
        ------
        TimerError
            If a callback raises. The clock then shows `time_ms`, the failed timer has had its turn, and the
            timers after it wait for the next advance.
        OutputFullError
            If a callback gives more than its output can take now. The timers after it wait likewise.
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
        """Return the time of the first timer that waits; None if there is none."""
        return self._schedule.next_timestamp()

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        """Call back in the first advance to `timestamp_ms` or later.

        Raises
        ------
        LifecycleError
            If the service was shut down.
        """
        return self._schedule.register(timestamp_ms, callback)

    def schedule_at_fixed_rate(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> ScheduledTimer:
        """Call back at the first delay from now, then at every period after it, all of them in one long advance.

        Raises
        ------
        ConfigurationError
            If the delay is negative, or the period not above zero.
        LifecycleError
            If the service was shut down.
        """
        return self._schedule.register_periodic(
            self.now_ms, callback, initial_delay_ms, fixed_rate_ms=period_ms
        )

    def schedule_with_fixed_delay(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, delay_ms: int
    ) -> ScheduledTimer:
        """Call back after the first delay, then a delay after what the clock shows at the end of each call.

        Raises
        ------
        ConfigurationError
            If the first delay is negative, or the other not above zero.
        LifecycleError
            If the service was shut down.
        """
        return self._schedule.register_periodic(
            self.now_ms, callback, initial_delay_ms, fixed_delay_ms=delay_ms
        )

    def quiesce(self) -> None:
        """Let no further callback run; timers registered from now on never complete, and are no error."""
        self._schedule.quiesce()

    def shutdown_service(self) -> None:
        """End the service: pending callbacks are dropped, and registering is an error."""
        self._schedule.shut_down()

    @property
    def is_terminated(self) -> bool:
        """Whether `shutdown_service` was called."""
        return self._schedule.status is ServiceStatus.SHUT_DOWN

    @property
    def pending_timers(self) -> int:
        """How many timers wait for the clock."""
        return len(self._schedule)
