"""Firing at every so many elements."""

from dataclasses import dataclass
from operator import add
from typing import Any, Final

from flinkcore.datastream.state import ReducingStateDescriptor
from flinkcore.datastream.window.counts import require_count
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window

_COUNT: Final[ReducingStateDescriptor[int]] = ReducingStateDescriptor("count", add)


@dataclass(frozen=True)
class CountTrigger(Trigger[Any, Window]):
    """Fires when so many elements have come since the last firing; the elements stay in the window.

    Parameters
    ----------
    window_size : int
        Not negative; at 0 every element fires.

    Raises
    ------
    ConfigurationError
        If the count is negative. (Flink takes that for 0.)

    Notes
    -----
    Follows ``pyflink.datastream.window.CountTrigger``. It takes the place of a time window's own trigger: what has not
    fired when the window ends is dropped.
    """

    window_size: int

    def __post_init__(self) -> None:
        require_count("CountTrigger", "count", self.window_size, least=0)

    @staticmethod
    def of(window_size: int) -> "CountTrigger":
        """Return a trigger for so many elements."""
        return CountTrigger(window_size)

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Count; at the last element start anew, and fire."""
        count = ctx.get_partitioned_state(_COUNT)
        count.add(1)
        if count.get() < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Add up the counts."""
        ctx.merge_partitioned_state(_COUNT)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Forget the count."""
        ctx.get_partitioned_state(_COUNT).clear()
