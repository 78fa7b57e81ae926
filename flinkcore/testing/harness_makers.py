"""Makers of harnesses that are closed when a test ends."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from flinkcore.testing.abstract_stream_operator_test_harness import AbstractStreamOperatorTestHarness
from flinkcore.testing.process_function_test_harnesses import (
    for_broadcast_process_function,
    for_co_process_function,
    for_interval_join,
    for_keyed_broadcast_process_function,
    for_keyed_co_process_function,
    for_keyed_process_function,
    for_process_function,
    for_watermark_strategy,
    for_window_operation,
)

P = ParamSpec("P")
H = TypeVar("H", bound=AbstractStreamOperatorTestHarness[Any])


class HarnessMakers:
    """The makers of ``flinkcore.testing``, and `close_at_end` for harnesses that are made otherwise.

    As a context manager it closes all of them, the last one first, even if closing another one fails.

    Examples
    --------
    >>> from flinkcore.datastream import ProcessFunction
    >>> class Double(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield 2 * value
    >>> with HarnessMakers() as harnesses:
    ...     harness = harnesses.for_process_function(Double())
    ...     harness.process_element(4)
    ...     harness.extract_output_values()
    [8]
    """

    def __init__(self) -> None:
        self._made: list[AbstractStreamOperatorTestHarness[Any]] = []
        self._at_end = ExitStack()
        self.for_process_function = self._closing(for_process_function)
        self.for_keyed_process_function = self._closing(for_keyed_process_function)
        self.for_co_process_function = self._closing(for_co_process_function)
        self.for_keyed_co_process_function = self._closing(for_keyed_co_process_function)
        self.for_broadcast_process_function = self._closing(for_broadcast_process_function)
        self.for_keyed_broadcast_process_function = self._closing(for_keyed_broadcast_process_function)
        self.for_window_operation = self._closing(for_window_operation)
        self.for_interval_join = self._closing(for_interval_join)
        self.for_watermark_strategy = self._closing(for_watermark_strategy)

    def close_at_end(self, harness: H) -> H:
        """Return a harness, open or not yet, to be closed at the end."""
        self._made.append(harness)
        self._at_end.callback(harness.close)
        return harness

    def refuse_leaks(self) -> None:
        """Raise an AssertionError if keyed state or timers are left in one of the harnesses."""
        __tracebackhide__ = True
        for harness in self._made:
            harness.refuse_leaks()

    def _closing(self, make: Callable[P, H]) -> Callable[P, H]:
        @wraps(make)
        def made(*args: P.args, **kwargs: P.kwargs) -> H:
            return self.close_at_end(make(*args, **kwargs))

        return made

    def __enter__(self) -> "HarnessMakers":
        return self

    def __exit__(self, *error: object) -> None:
        self._at_end.__exit__(None, None, None)
