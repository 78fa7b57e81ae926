"""Dropping the elements of a window whenever it fires."""

from dataclasses import dataclass
from typing import Any

from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class PurgingTrigger(Trigger[Any, Window]):
    """Fires when another trigger does, and drops the elements of the window then.

    Parameters
    ----------
    nested_trigger : Trigger

    Raises
    ------
    ConfigurationError
        If it is no trigger.

    Notes
    -----
    Follows ``pyflink.datastream.window.PurgingTrigger``.
    """

    nested_trigger: Trigger[Any, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.nested_trigger, Trigger):
            raise ConfigurationError(f"PurgingTrigger takes a trigger, not {self.nested_trigger!r}")

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> "PurgingTrigger":
        """Return a trigger that purges."""
        return PurgingTrigger(nested_trigger)

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Ask the other trigger; purge when it fires."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the other trigger; purge when it fires."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the other trigger; purge when it fires."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Return whether the other trigger can."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Let the other trigger do it."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Let the other trigger do it."""
        self.nested_trigger.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result
