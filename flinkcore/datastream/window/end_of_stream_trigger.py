"""Firing at the end of the input."""

from dataclasses import dataclass
from typing import Any

from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger[Any, Window]):
    """Fires, and drops the elements, when the watermark reaches the largest timestamp: at the end of the input.

    Notes
    -----
    Flink's ``GlobalWindows.EndOfStreamTrigger``.
    """

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Set the timer for the end."""
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire and purge at the end."""
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Do nothing."""
