"""Firing again and again as time passes."""

from dataclasses import dataclass
from typing import Any

from flinkcore.common.time import Duration, Time, timeout_ms
from flinkcore.datastream.window.continuous_trigger import FIRE_TIME, ContinuousTrigger
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(ContinuousTrigger):
    """Fires at every multiple of an interval of processing time, from the first element on.

    Parameters
    ----------
    interval : int
        In ms, at least 1.

    Raises
    ------
    ConfigurationError
        If it is below 1.

    Notes
    -----
    Follows ``pyflink.datastream.window.ContinuousProcessingTimeTrigger``. Deliberate difference: a window of event time
    whose largest timestamp processing time has passed fires once for it; Flink fires without end.
    """

    @staticmethod
    def of(interval: Time | Duration) -> "ContinuousProcessingTimeTrigger":
        """Return a trigger that fires at every interval."""
        setting = "the interval of ContinuousProcessingTimeTrigger"
        return ContinuousProcessingTimeTrigger(timeout_ms(interval, setting))

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Set the timer for the first firing, once."""
        fire_time = ctx.get_partitioned_state(FIRE_TIME)
        if fire_time.get() is None:
            self._set_first(ctx.get_current_processing_time(), window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire, and set the timer for the next firing."""
        return self._fire_if_due(time, window, ctx)

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)
