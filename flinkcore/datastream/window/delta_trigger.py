"""Firing when elements have changed enough."""

from dataclasses import dataclass
from typing import Any, Final

from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window.delta_function import Delta, delta_call
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window

_LAST_ELEMENT: Final[ValueStateDescriptor[Any]] = ValueStateDescriptor("last-element")


@dataclass(frozen=True)
class DeltaTrigger(Trigger[Any, Window]):
    """Fires when an element differs by more than a threshold from that of the last firing, or at first the first.

    Parameters
    ----------
    threshold : float
    delta_function : DeltaFunction or callable
        Of the old element and the new one.

    Raises
    ------
    ConfigurationError
        If the function is none.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.triggers.DeltaTrigger``. Windows that use it cannot merge.
    """

    threshold: float
    delta_function: Delta

    def __post_init__(self) -> None:
        delta_call("DeltaTrigger", self.delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Delta) -> "DeltaTrigger":
        """Return a trigger with a threshold."""
        return DeltaTrigger(threshold, delta_function)

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Compare with the last element that counted."""
        last_element = ctx.get_partitioned_state(_LAST_ELEMENT)
        last = last_element.value()
        if last is None:
            last_element.update(element)
            return TriggerResult.CONTINUE
        if delta_call("DeltaTrigger", self.delta_function)(last, element) > self.threshold:
            last_element.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Forget the last element."""
        ctx.get_partitioned_state(_LAST_ELEMENT).clear()
