"""Never firing."""

from dataclasses import dataclass
from typing import Any

from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window


@dataclass(frozen=True)
class NeverTrigger(Trigger[Any, Window]):
    """Never fires; the default trigger of global windows.

    Notes
    -----
    Follows ``pyflink.datastream.window.NeverTrigger``. Windows that use it cannot merge.
    """

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Do nothing."""
