"""Firing again and again as the watermark advances."""

from dataclasses import dataclass
from typing import Any, Final

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.time import Duration, Time, timeout_ms
from flinkcore.datastream.state import ReducingState, ReducingStateDescriptor
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window
from flinkcore.errors import ConfigurationError

_FIRE_TIME: Final[ReducingStateDescriptor[int]] = ReducingStateDescriptor("fire-time", min)


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(Trigger[Any, Window]):
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

    interval: int

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise ConfigurationError(
                f"ContinuousEventTimeTrigger: the interval must be at least 1 ms, it is {self.interval} ms"
            )

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
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() is None:
            truncated = abs(timestamp) // self.interval * self.interval
            self._set_next(truncated if timestamp >= 0 else -truncated, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end of the window; at another firing set the timer for the next."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        if window.max_timestamp() == MAX_TIMESTAMP == ctx.get_current_watermark():
            ctx.delete_event_time_timer(MAX_TIMESTAMP)
        else:
            self._set_next(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def _set_next(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_time: ReducingState[int]
    ) -> None:
        next_time = min(time + self.interval, window.max_timestamp())
        fire_time.add(next_time)
        ctx.register_event_time_timer(next_time)

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Set the timer for the earliest of the next firings."""
        ctx.merge_partitioned_state(_FIRE_TIME)
        next_time = ctx.get_partitioned_state(_FIRE_TIME).get()
        if next_time is not None:
            ctx.register_event_time_timer(next_time)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer of the next firing."""
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        next_time = fire_time.get()
        if next_time is not None:
            ctx.delete_event_time_timer(next_time)
            fire_time.clear()
