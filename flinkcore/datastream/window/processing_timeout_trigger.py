"""Firing when another trigger does, or after some time without a firing."""

from dataclasses import dataclass
from typing import Any, Final

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.window import Window
from flinkcore.errors import ConfigurationError

_TIMEOUT: Final[ValueStateDescriptor[int]] = ValueStateDescriptor("timeout")


@dataclass(frozen=True)
class ProcessingTimeoutTrigger(Trigger[Any, Window]):
    """Fires when another trigger does, and when a timeout in processing time has passed since an element.

    Parameters
    ----------
    nested_trigger : Trigger
    timeout_ms : int
        Not negative.
    reset_timer_on_new_record : bool
        Whether the timeout counts from the last element, or else from the first after a firing.
    should_clear_on_timeout : bool
        Whether the nested trigger forgets its state at the timeout.

    Raises
    ------
    ConfigurationError
        If the trigger is none, or the timeout negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.triggers.ProcessingTimeoutTrigger``: windows that use it cannot
    merge, and it fires at every timer of the nested trigger, too.
    """

    nested_trigger: Trigger[Any, Any]
    timeout_ms: int
    reset_timer_on_new_record: bool = False
    should_clear_on_timeout: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.nested_trigger, Trigger):
            raise ConfigurationError(f"ProcessingTimeoutTrigger takes a trigger, not {self.nested_trigger!r}")
        if self.timeout_ms < 0:
            raise ConfigurationError(
                f"ProcessingTimeoutTrigger: the timeout cannot be negative, it is {self.timeout_ms} ms"
            )

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Time | Duration,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> "ProcessingTimeoutTrigger":
        """Return a trigger with a timeout."""
        return ProcessingTimeoutTrigger(
            nested_trigger,
            interval_ms(timeout, "the timeout of ProcessingTimeoutTrigger"),
            reset_timer_on_new_record,
            should_clear_on_timeout,
        )

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Ask the other trigger; unless it fires, set the timer for the timeout."""
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if isinstance(result, TriggerResult) and result.is_fire():
            self.clear(window, ctx)
            return result
        timeout = ctx.get_partitioned_state(_TIMEOUT)
        set_time = timeout.value()
        if set_time is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(set_time)
            set_time = None
        if set_time is None:
            next_time = ctx.get_current_processing_time() + self.timeout_ms
            timeout.update(next_time)
            ctx.register_processing_time_timer(next_time)
        return result

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire; purge if the other trigger does."""
        return self._timed_out(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire; purge if the other trigger does."""
        return self._timed_out(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _timed_out(self, result: TriggerResult, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer of the timeout, and let the other trigger clear."""
        timeout = ctx.get_partitioned_state(_TIMEOUT)
        set_time = timeout.value()
        if set_time is not None:
            ctx.delete_processing_time_timer(set_time)
            timeout.clear()
        self.nested_trigger.clear(window, ctx)
