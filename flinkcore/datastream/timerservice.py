"""Time and timers, as user functions see them."""

from abc import ABC, abstractmethod


class TimerService(ABC):
    """The current time in both domains, and timers of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.TimerService``. A timer is registered once per key and timestamp, and fires
    once. Timestamps are integers of 64 bits: one at or below the watermark fires when the watermark next
    advances, or at once after the callback that registers it; one at 2**63 - 1 fires at the end of the input.

    At the end of the log the watermark is the maximum, 2**63 - 1, and every event-time timer is due, also one that
    ``on_timer`` registers then: check ``ctx.timer_service().current_watermark()`` before registering it. A key whose
    timers register a million further ones is taken for one without end: an error.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the event-time watermark, in ms since the epoch; -2**63 where none has come yet."""

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
