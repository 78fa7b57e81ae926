"""Firing when the watermark passes the end of a window."""

from dataclasses import dataclass
from typing import Any

from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window


@dataclass(frozen=True)
class EventTimeTrigger(Trigger[Any, Window]):
    """Fires when the watermark passes the end of a window, and for every element that comes later.

    Notes
    -----
    Follows ``pyflink.datastream.window.EventTimeTrigger``.
    """

    @staticmethod
    def create() -> "EventTimeTrigger":
        """Return such a trigger."""
        return EventTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fire if the window has ended; else set the timer for its end."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end of the window."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Set the timer for the end of the new window, if it is to come."""
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())
