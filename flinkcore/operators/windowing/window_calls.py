"""Calls of a window operator to its trigger and its functions."""

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    Results,
    RuntimeContext,
    WindowFunction,
)
from flinkcore.datastream.functions.join_functions import CoGroupWindowFunction
from flinkcore.datastream.window import Trigger, TriggerResult, Window, WindowOperation
from flinkcore.errors import UserCodeError
from flinkcore.operators.function_results import FunctionResults
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.windowing.window_contexts import OperatorTriggerContext, OperatorWindowContext


class TriggerCalls:
    """Calls a trigger for windows of the current key.

    Every call raises a UserCodeError if the trigger raises, or returns no TriggerResult.

    Parameters
    ----------
    trigger : Trigger
    context : OperatorTriggerContext
    results : FunctionResults
        Describes elements and windows in errors.
    """

    __slots__ = ("_context", "_results", "_trigger")

    def __init__(
        self, trigger: Trigger[Any, Any], context: OperatorTriggerContext, results: FunctionResults
    ) -> None:
        self._trigger = trigger
        self._context = context
        self._results = results

    def on_element(self, record: StreamRecord[Any], timestamp: int, window: Window) -> TriggerResult:
        """Call the trigger for an element that was added to a window."""
        self._context.window = window
        try:
            result = self._trigger.on_element(record.value, timestamp, window, self._context)
        except Exception as failure:
            raise self._results.failed("on_element", record, failure, self._trigger) from failure
        return result if result is TriggerResult.CONTINUE else self._checked("on_element", result, window)

    def on_event_time(self, time_ms: int, window: Window) -> TriggerResult:
        """Call the trigger for an event-time timer of a window."""
        return self._on_timer(self._trigger.on_event_time, "on_event_time", time_ms, window)

    def on_processing_time(self, time_ms: int, window: Window) -> TriggerResult:
        """Call the trigger for a processing-time timer of a window."""
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
        """Call the trigger when windows were merged into one."""
        self._context.window = window
        self._context.merged_windows = merged
        try:
            self._trigger.on_merge(window, self._context)
        except Exception as failure:
            raise self._results.failed("on_merge", window, failure, self._trigger) from failure

    def clear(self, window: Window) -> None:
        """Call the trigger when a window is dropped, or was merged into another one."""
        self._context.window = window
        try:
            self._trigger.clear(window, self._context)
        except Exception as failure:
            raise self._results.failed("clear", window, failure, self._trigger) from failure


WindowCall = Callable[[Any], Results]
"""Calls a window function with the elements of the current window."""


class WindowFunctions(Function):
    """The functions of a window operation, opened and closed as one.

    Notes
    -----
    Deliberate difference from Flink, which refuses reduce and aggregate functions with an `open`: they are opened.
    """

    def __init__(self, operation: WindowOperation) -> None:
        self._functions: list[Function] = [
            function
            for function in (operation.pre_aggregation, operation.window_function)
            if function is not None
        ]

    def open(self, runtime_context: RuntimeContext) -> None:
        for function in self._functions:
            function.open(runtime_context)

    def close(self) -> None:
        """Close all functions, even after one of them has failed."""
        failure = None
        for function in reversed(self._functions):
            try:
                function.close()
            except Exception as raised:
                failure = raised
        if failure is not None:
            raise failure


def window_call(
    function: Function, context: OperatorWindowContext, key_context: KeyContext
) -> tuple[WindowCall, str]:
    """Return a call of a window function, and the name of its method.

    Parameters
    ----------
    function : WindowFunction, AllWindowFunction, ProcessWindowFunction or ProcessAllWindowFunction
    context : OperatorWindowContext
        Has the current window.
    key_context : KeyContext
        Has the current key.

    Notes
    -----
    Flink's ``InternalIterableWindowFunction`` and the like.
    """
    if isinstance(function, ProcessWindowFunction):
        process = function.process
        return lambda elements: process(key_context.current_key, context, elements), "process"
    if isinstance(function, ProcessAllWindowFunction):
        process_all = function.process
        return lambda elements: process_all(context, elements), "process"
    if isinstance(function, WindowFunction):
        apply = function.apply
        method = function.method if isinstance(function, CoGroupWindowFunction) else "apply"
        return lambda elements: apply(key_context.current_key, context.window(), elements), method
    assert isinstance(function, AllWindowFunction)
    apply_all = function.apply
    return lambda elements: apply_all(context.window(), elements), "apply"


def clear_call(function: Function | None, context: OperatorWindowContext) -> Callable[[], None] | None:
    """Return a call of a window function's `clear` for the current window; None if it does not override it."""
    if isinstance(function, ProcessWindowFunction):
        is_overridden = type(function).clear is not ProcessWindowFunction.clear
    elif isinstance(function, ProcessAllWindowFunction):
        is_overridden = type(function).clear is not ProcessAllWindowFunction.clear
    else:
        return None
    clear = function.clear
    return (lambda: clear(context)) if is_overridden else None


def reduced(function: ReduceFunction[Any], elements: list[Any]) -> Any:
    """Return elements reduced by a function; None for no elements.

    Notes
    -----
    Flink's ``ReduceApplyWindowFunction``.
    """
    result = None
    for element in elements:
        result = element if result is None else function.reduce(result, element)
    return result


def aggregated(function: AggregateFunction[Any, Any, Any], elements: list[Any]) -> Any:
    """Return the result of an aggregate function over elements.

    Notes
    -----
    Flink's ``AggregateApplyWindowFunction``.
    """
    accumulator = function.create_accumulator()
    for element in elements:
        accumulator = function.add(element, accumulator)
    return function.get_result(accumulator)
