"""The operator that runs a KeyedCoProcessFunction."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flinkcore.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.keyed_calls import KeySelector
from flinkcore.runtime.operators.keyed_function_operator import KeyedFunctionOperator, refuse_before_open
from flinkcore.runtime.operators.process_contexts import KeyedElementContext, KeyedTimerContext
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend


class KeyedCoProcessOperator(KeyedFunctionOperator[KeyedCoProcessFunction], TwoInputStreamOperator):
    """Calls a function for every element of two keyed streams, and for the timers that it registers.

    Timers follow the combined watermark of both inputs, which is passed on after them.

    Parameters
    ----------
    function : KeyedCoProcessFunction
    key_selector1, key_selector2 : callable
        From an element of either input to its key.
    output : Output
    keyed_state_backend : KeyedStateBackend
        The operator's own, with its key context.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.KeyedCoProcessOperator``.
    """

    def __init__(
        self,
        function: KeyedCoProcessFunction,
        key_selector1: KeySelector,
        key_selector2: KeySelector,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(function, output, keyed_state_backend, processing_time_service, latency_stats)
        self._key_selectors = (key_selector1, key_selector2)
        self._process1: Callable[[StreamRecord[Any]], None] = refuse_before_open
        self._process2: Callable[[StreamRecord[Any]], None] = refuse_before_open

    def open(self, runtime_context: RuntimeContext) -> None:
        """Start the timers and open the function; before anything is processed."""
        key_context = self._keyed_state_backend.key_context
        calls = self._keyed_calls(partial(KeyedTimerContext, key_context=key_context))
        context = KeyedElementContext(calls.timer_service, key_context)
        key_selector1, key_selector2 = self._key_selectors
        self._process1 = calls.element_call(self._function.process_element1, key_selector1, context)
        self._process2 = calls.element_call(self._function.process_element2, key_selector2, context)
        self._function.open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Call the function for the first input; errors as of `KeyedProcessOperator.process_element`."""
        self._process1(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Call the function for the second input; errors as of `KeyedProcessOperator.process_element`."""
        self._process2(record)
