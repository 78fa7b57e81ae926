"""Timer services: the time and timers, as user functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.errors import ConfigurationError


class TimerService(ABC):
    """The current time in both time domains, and the timers of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.TimerService``. A timer is registered once per key and timestamp, and fires
    once. Timestamps are integers of 64 bits: one at or below the watermark fires when the watermark next
    advances, or at once after the callback that registers it; one at 2**63 - 1 fires at the end of the input.

    At the end of the log the watermark is the maximum, 2**63 - 1, and every event-time timer fires, also one that
    ``on_timer`` registers then: check ``ctx.timer_service().current_watermark()`` before registering it. A key whose
    timers register a million further ones would never end, and is an error.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the watermark, in ms since the epoch; -2**63 before the first one."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer that fires when processing time reaches `timestamp`, in ms since the epoch."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer that fires when the watermark reaches `timestamp`, in ms since the epoch."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete the processing-time timer of this timestamp, if the current key has it."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete the event-time timer of this timestamp, if the current key has it."""


def coalesced_timestamp(timestamp: int, granularity_ms: int) -> int:
    """Return the first multiple of the granularity at or after a timestamp; at most 2**63 - 1.

    Parameters
    ----------
    timestamp : int
        In ms since the epoch; may be negative.
    granularity_ms : int
        At least 1 (ConfigurationError); 1 changes nothing.

    Examples
    --------
    >>> coalesced_timestamp(1001, 1000), coalesced_timestamp(2000, 1000), coalesced_timestamp(-1, 1000)
    (2000, 2000, 0)
    """
    _check(granularity_ms)
    return min(-(-timestamp // granularity_ms) * granularity_ms, MAX_TIMESTAMP)


class CoalescingTimerService(TimerService):
    """A timer service whose timers fire at multiples of a granularity, never before the time asked for.

    For functions that register a timer for every element and do not need it to be exact: a key has at most one timer
    per multiple. Deleting rounds likewise, and therefore removes a timer that several registrations share.

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
        return self._timer_service.current_processing_time()

    def current_watermark(self) -> int:
        return self._timer_service.current_watermark()

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timer_service.register_processing_time_timer(self._coalesced(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timer_service.register_event_time_timer(self._coalesced(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timer_service.delete_processing_time_timer(self._coalesced(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timer_service.delete_event_time_timer(self._coalesced(timestamp))

    def _coalesced(self, timestamp: int) -> int:
        return coalesced_timestamp(timestamp, self._granularity_ms)


def _check(granularity_ms: int) -> None:
    if granularity_ms < 1:
        raise ConfigurationError(f"timers are coalesced to at least 1 ms, not to {granularity_ms} ms")


class BatchTimerService(ABC):
    """Registers and deletes timers of the keys of the current batch.

    Timers are those of :class:`~flinkcore.datastream.TimerService`. Columns are Arrow arrays without nulls, or anything
    that numpy converts to an array of integers; a time may be one number for all keys.
    """

    @abstractmethod
    def register_event_time_timers(self, key_ids: Any, timestamps: Any) -> None:
        """Register timers that fire when the watermark reaches their time.

        Parameters
        ----------
        key_ids : int array (n_rows,)
            Dense ids of keys of the batch.
        timestamps : int array (n_rows,) or int
            In ms since the epoch.

        Raises
        ------
        DataError
            If an id is not one of the batch, a time is not an integer of 64 bits or earlier than the function has
            declared, or the columns are not equally long. Nothing is registered then.
        """

    @abstractmethod
    def register_processing_time_timers(self, key_ids: Any, timestamps: Any) -> None:
        """Register timers that fire when processing time reaches their time; as `register_event_time_timers`."""

    @abstractmethod
    def delete_event_time_timers(self, key_ids: Any, timestamps: Any = None) -> None:
        """Delete the timers that are registered.

        Parameters
        ----------
        key_ids : int array (n_rows,)
            Dense ids of keys of the batch.
        timestamps : int array (n_rows,) or int, optional
            Times for which the timers were registered, in ms since the epoch; by default all timers of these keys.

        Raises
        ------
        DataError
            As of `register_event_time_timers`.
        """

    @abstractmethod
    def delete_processing_time_timers(self, key_ids: Any, timestamps: Any = None) -> None:
        """Delete the timers that are registered; as `delete_event_time_timers`."""
