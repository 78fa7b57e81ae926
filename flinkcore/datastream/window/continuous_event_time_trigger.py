"""Firing again and again as the watermark advances."""

from dataclasses import dataclass
from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.time import Duration, Time, timeout_ms
from flinkcore.datastream.window.continuous_trigger import FIRE_TIME, ContinuousTrigger
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(ContinuousTrigger):
    """Fires whenever the watermark has advanced by an interval, and at the end of the window.

    The first firing is at the first multiple of the interval behind the first element's timestamp; for a negative
    timestamp that is no multiple, at the second one.

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
    Follows ``pyflink.datastream.window.ContinuousEventTimeTrigger``; for negative timestamps Java's remainder, which
    Python's is not.

    Deliberate difference: at the end of the log it fires once for a window without end, where Flink fires for every
    interval up to 2**63 - 1.
    """

    @staticmethod
    def of(interval: Time | Duration) -> "ContinuousEventTimeTrigger":
        """Return a trigger that fires at every interval."""
        return ContinuousEventTimeTrigger(timeout_ms(interval, "the interval of ContinuousEventTimeTrigger"))

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fire if the window has ended; else set the timers for its end and, once, for the first firing."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        fire_time = ctx.get_partitioned_state(FIRE_TIME)
        if fire_time.get() is None:
            self._set_first(timestamp, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end of the window; at another firing set the timer for the next."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        result = self._fire_if_due(time, window, ctx)
        if (
            result is TriggerResult.FIRE
            and window.max_timestamp() == MAX_TIMESTAMP == ctx.get_current_watermark()
        ):
            self.clear(window, ctx)
            ctx.delete_event_time_timer(MAX_TIMESTAMP)
        return result

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(time)
