"""Cleanup of windows: when they are late, and when they are dropped."""

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.datastream.window import EventTimeTrigger, Window, WindowOperation
from flinkcore.operators.timers import InternalTimerService


class WindowCleanup:
    """Decides when windows are dropped, and sets the timers for it.

    Parameters
    ----------
    operation : WindowOperation
    timers : InternalTimerService
        Timers of the windows.

    Notes
    -----
    ``cleanupTime``, ``isWindowLate``, ``registerCleanupTimer`` and the like of Flink's ``WindowOperator``.
    """

    __slots__ = ("_has_timers", "_is_event_time", "_lateness_ms", "_timers")

    def __init__(self, operation: WindowOperation, timers: InternalTimerService) -> None:
        self._timers = timers
        self._is_event_time = operation.assigner.is_event_time()
        self._lateness_ms = operation.allowed_lateness_ms if self._is_event_time else 0
        # The only timer of this trigger is at the cleanup time then, and serves for both.
        same_as_trigger = type(operation.trigger) is EventTimeTrigger and not self._lateness_ms
        self._has_timers = not (self._is_event_time and same_as_trigger)

    def time_of(self, window: Window) -> int:
        """Return when a window is dropped, in ms since the epoch; the maximum timestamp stands for never."""
        return min(window.max_timestamp() + self._lateness_ms, MAX_TIMESTAMP)

    def is_past(self, window: Window) -> bool:
        """Return whether the watermark has reached the time at which a window is dropped."""
        return self._is_event_time and self.time_of(window) <= self._timers.current_watermark()

    def is_element_late(self, timestamp: int) -> bool:
        """Return whether the watermark has reached an element's timestamp plus the allowed lateness."""
        over = min(timestamp + self._lateness_ms, MAX_TIMESTAMP)
        return self._is_event_time and over <= self._timers.current_watermark()

    def missed_ms(self, timestamp: int) -> int:
        """Return by how much the watermark would have to be lower for a late element not to be late."""
        return self._timers.current_watermark() - timestamp - self._lateness_ms + 1

    def is_merge_late(self, window: Window) -> str | None:
        """Return the time in words that a merged window is too late for; None if it is not late."""
        if self._is_event_time:
            time = self._timers.current_watermark()
            is_late = window.max_timestamp() + self._lateness_ms <= time
        else:
            time = self._timers.current_processing_time()
            is_late = window.max_timestamp() <= time
        if not is_late:
            return None
        if not self._is_event_time:
            return f"the current processing time {time}"
        return f"the current watermark {time}, with an allowed lateness of {self._lateness_ms} ms"

    def register(self, window: Window) -> None:
        """Set the timer that drops a window of the current key."""
        time = self.time_of(window)
        if self._has_timers and time < MAX_TIMESTAMP:
            if self._is_event_time:
                self._timers.register_event_time_timer(window, time)
            else:
                self._timers.register_processing_time_timer(window, time)

    def delete(self, window: Window) -> None:
        """Delete the timer that drops a window of the current key."""
        time = self.time_of(window)
        if self._has_timers and time < MAX_TIMESTAMP:
            if self._is_event_time:
                self._timers.delete_event_time_timer(window, time)
            else:
                self._timers.delete_processing_time_timer(window, time)
