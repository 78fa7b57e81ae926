"""Fewer timers: timestamps rounded up, so that close ones are one timer."""

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.datastream.timerservice import TimerService
from flinkcore.errors import ConfigurationError


def coalesced_timestamp(timestamp: int, granularity_ms: int) -> int:
    """Return the first multiple of the granularity at or after a timestamp; at most 2**63 - 1.

    Parameters
    ----------
    timestamp : int
        In ms since the epoch; may be negative.
    granularity_ms : int
        At least 1; 1 changes nothing.

    Returns
    -------
    int

    Raises
    ------
    ConfigurationError
        If the granularity is below 1.

    Examples
    --------
    >>> coalesced_timestamp(1001, 1000), coalesced_timestamp(2000, 1000), coalesced_timestamp(-1, 1000)
    (2000, 2000, 0)
    """
    _check(granularity_ms)
    return min(-(-timestamp // granularity_ms) * granularity_ms, MAX_TIMESTAMP)


class CoalescingTimerService(TimerService):
    """A timer service whose timers fire at multiples of a granularity, never before the time asked for.

    An option for functions that set a timer for every element and for which it need not be exact: a key has at
    most one timer for each multiple. Deleting rounds alike, and so takes away a timer that several
    registrations share.

    Parameters
    ----------
    timer_service : TimerService
    granularity_ms : int
        At least 1.

    Raises
    ------
    ConfigurationError
        If the granularity is below 1.

    Notes
    -----
    Flink's documentation recommends the rounding and leaves it to functions.

    Examples
    --------
    In ``process_element``: ``CoalescingTimerService(ctx.timer_service(), 1000).register_event_time_timer(t)``.
    """

    def __init__(self, timer_service: TimerService, granularity_ms: int) -> None:
        _check(granularity_ms)
        self._timer_service = timer_service
        self._granularity_ms = granularity_ms

    def current_processing_time(self) -> int:
        """Return the processing time, not rounded."""
        return self._timer_service.current_processing_time()

    def current_watermark(self) -> int:
        """Return the watermark, not rounded."""
        return self._timer_service.current_watermark()

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a processing-time timer at the rounded timestamp."""
        self._timer_service.register_processing_time_timer(self._coalesced(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        """Register an event-time timer at the rounded timestamp."""
        self._timer_service.register_event_time_timer(self._coalesced(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete the processing-time timer at the rounded timestamp."""
        self._timer_service.delete_processing_time_timer(self._coalesced(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete the event-time timer at the rounded timestamp."""
        self._timer_service.delete_event_time_timer(self._coalesced(timestamp))

    def _coalesced(self, timestamp: int) -> int:
        return coalesced_timestamp(timestamp, self._granularity_ms)


def _check(granularity_ms: int) -> None:
    if granularity_ms < 1:
        raise ConfigurationError(f"timers are coalesced to at least 1 ms, not to {granularity_ms} ms")
