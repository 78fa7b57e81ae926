"""Firing when the clock passes the end of a window."""

from dataclasses import dataclass
from typing import Any

from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger[Any, Window]):
    """Fires when the processing time passes the end of a window.

    Notes
    -----
    Follows ``pyflink.datastream.window.ProcessingTimeTrigger``.
    """

    @staticmethod
    def create() -> "ProcessingTimeTrigger":
        """Return such a trigger."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Set the timer for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Set the timer for the end of the new window, if it is to come."""
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())
