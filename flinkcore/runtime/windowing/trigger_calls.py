"""How a window operator calls its trigger."""

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.window import Trigger, TriggerResult, Window
from flinkcore.errors import UserCodeError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.function_results import FunctionResults, shown
from flinkcore.runtime.windowing.window_contexts import OperatorTriggerContext


class TriggerCalls:
    """Calls a trigger for windows of the current key, and says what was the matter where it fails.

    Every call raises a UserCodeError if the trigger raises, or gives what is no TriggerResult.

    Parameters
    ----------
    trigger : Trigger
    context : OperatorTriggerContext
    results : FunctionResults
        Describes failures.
    """

    __slots__ = ("_context", "_results", "_trigger")

    def __init__(
        self, trigger: Trigger[Any, Any], context: OperatorTriggerContext, results: FunctionResults
    ) -> None:
        self._trigger = trigger
        self._context = context
        self._results = results

    def on_element(self, record: StreamRecord[Any], timestamp: int, window: Window) -> TriggerResult:
        """Ask for an element that has been added to a window."""
        self._context.window = window
        try:
            result = self._trigger.on_element(record.value, timestamp, window, self._context)
        except Exception as failure:
            raise self._results.failed("on_element", record, failure, self._trigger) from failure
        return result if result is TriggerResult.CONTINUE else self._checked("on_element", result, window)

    def on_event_time(self, time_ms: int, window: Window) -> TriggerResult:
        """Ask for an event-time timer of a window."""
        return self._on_timer(self._trigger.on_event_time, "on_event_time", time_ms, window)

    def on_processing_time(self, time_ms: int, window: Window) -> TriggerResult:
        """Ask for a processing-time timer of a window."""
        return self._on_timer(self._trigger.on_processing_time, "on_processing_time", time_ms, window)

    def _on_timer(
        self,
        method: Callable[[int, Any, Trigger.TriggerContext], TriggerResult],
        name: str,
        time_ms: int,
        window: Window,
    ) -> TriggerResult:
        self._context.window = window
        try:
            result = method(time_ms, window, self._context)
        except Exception as failure:
            raise self._results.failed(name, window, failure, self._trigger) from failure
        return result if result is TriggerResult.CONTINUE else self._checked(name, result, window)

    def _checked(self, method: str, result: TriggerResult, window: Window) -> TriggerResult:
        if type(result) is not TriggerResult:
            raise UserCodeError(
                f"{type(self._trigger).__qualname__}.{method} gave {shown(result)} at "
                f"{self._results.described(window)}: it is to return a TriggerResult"
            )
        return result

    def on_merge(self, window: Window, merged: list[Window]) -> None:
        """Tell that windows have become one."""
        self._context.window = window
        self._context.merged_windows = merged
        try:
            self._trigger.on_merge(window, self._context)
        except Exception as failure:
            raise self._results.failed("on_merge", window, failure, self._trigger) from failure

    def clear(self, window: Window) -> None:
        """Tell that a window is dropped, or has become another one."""
        self._context.window = window
        try:
            self._trigger.clear(window, self._context)
        except Exception as failure:
            raise self._results.failed("clear", window, failure, self._trigger) from failure
