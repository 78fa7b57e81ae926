"""The timer service that functions on keyed streams get."""

from flinkcore.datastream.timerservice import TimerService
from flinkcore.runtime.timers.internal_timer_service import InternalTimerService


class SimpleTimerService(TimerService):
    """Timers of the void namespace of an internal timer service.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.SimpleTimerService``.
    """

    __slots__ = ("_delete_event_time_timer", "_internal_timer_service", "_register_event_time_timer")

    def __init__(self, internal_timer_service: InternalTimerService) -> None:
        self._internal_timer_service = internal_timer_service
        self._register_event_time_timer = internal_timer_service.event_time_timers_of_void_namespace.add
        self._delete_event_time_timer = internal_timer_service.event_time_timers_of_void_namespace.remove

    def current_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""
        return self._internal_timer_service.current_processing_time()

    def current_watermark(self) -> int:
        """Return the operator's watermark; that which is being processed while event-time timers fire."""
        return self._internal_timer_service.current_watermark()

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer of the current key, as `InternalTimerService.register_processing_time_timer`."""
        self._internal_timer_service.register_processing_time_timer(None, timestamp)

    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer of the current key, as `InternalTimerService.register_event_time_timer`."""
        self._register_event_time_timer(timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a timer of the current key, as `InternalTimerService.delete_processing_time_timer`."""
        self._internal_timer_service.delete_processing_time_timer(None, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete a timer of the current key, as `InternalTimerService.delete_event_time_timer`."""
        self._delete_event_time_timer(timestamp)
