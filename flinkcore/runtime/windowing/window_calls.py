"""How a window operator calls its functions."""

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
from flinkcore.datastream.window import WindowOperation
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.windowing.window_contexts import OperatorWindowContext

WindowCall = Callable[[Any], Results]
"""Calls a window function with the elements of the window at hand."""


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
        """Open all."""
        for function in self._functions:
            function.open(runtime_context)

    def close(self) -> None:
        """Close all; after a failure the others, too."""
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
    """Return what calls a window function, and the name of its method.

    Parameters
    ----------
    function : WindowFunction, AllWindowFunction, ProcessWindowFunction or ProcessAllWindowFunction
    context : OperatorWindowContext
        Has the window at hand.
    key_context : KeyContext
        Has the key at hand.

    Notes
    -----
    Flink's ``InternalIterableWindowFunction`` and its kin.
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
    """Return what tells a window function that the window at hand is dropped; None if it does not want to know."""
    if isinstance(function, ProcessWindowFunction):
        wants_to_know = type(function).clear is not ProcessWindowFunction.clear
    elif isinstance(function, ProcessAllWindowFunction):
        wants_to_know = type(function).clear is not ProcessAllWindowFunction.clear
    else:
        return None
    clear = function.clear
    return (lambda: clear(context)) if wants_to_know else None


def reduced(function: ReduceFunction[Any], elements: list[Any]) -> Any:
    """Return what a function makes of elements; None of none.

    Notes
    -----
    Flink's ``ReduceApplyWindowFunction``.
    """
    result = None
    for element in elements:
        result = element if result is None else function.reduce(result, element)
    return result


def aggregated(function: AggregateFunction[Any, Any, Any], elements: list[Any]) -> Any:
    """Return the result of an aggregate function for elements.

    Notes
    -----
    Flink's ``AggregateApplyWindowFunction``.
    """
    accumulator = function.create_accumulator()
    for element in elements:
        accumulator = function.add(element, accumulator)
    return function.get_result(accumulator)
