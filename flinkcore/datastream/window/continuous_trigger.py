"""What the continuous triggers of both time domains have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final

from flinkcore.datastream.state import ReducingState, ReducingStateDescriptor
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window
from flinkcore.errors import ConfigurationError

FIRE_TIME: Final[ReducingStateDescriptor[int]] = ReducingStateDescriptor("fire-time", min)
"""When the window fires next."""


@dataclass(frozen=True)
class ContinuousTrigger(Trigger[Any, Window]):
    """Keeps the time of a window's next firing, and a timer for it."""

    interval: int

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise ConfigurationError(
                f"{type(self).__name__}: the interval must be at least 1 ms, it is {self.interval} ms"
            )

    @abstractmethod
    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        """Set the timer for a firing."""

    @abstractmethod
    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer of a firing."""

    def _set_first(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_time: ReducingState[int]
    ) -> None:
        truncated = abs(time) // self.interval * self.interval
        self._set_next(truncated if time >= 0 else -truncated, window, ctx, fire_time)

    def _set_next(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_time: ReducingState[int]
    ) -> None:
        next_time = min(time + self.interval, window.max_timestamp())
        fire_time.add(next_time)
        self._register(next_time, ctx)

    def _fire_if_due(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        fire_time = ctx.get_partitioned_state(FIRE_TIME)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        if time < window.max_timestamp():
            self._set_next(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Set the timer for the earliest of the next firings."""
        ctx.merge_partitioned_state(FIRE_TIME)
        next_time = ctx.get_partitioned_state(FIRE_TIME).get()
        if next_time is not None:
            self._register(next_time, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer of the next firing."""
        fire_time = ctx.get_partitioned_state(FIRE_TIME)
        next_time = fire_time.get()
        if next_time is not None:
            self._delete(next_time, ctx)
            fire_time.clear()
