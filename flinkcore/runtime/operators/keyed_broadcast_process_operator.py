"""The operator that runs a KeyedBroadcastProcessFunction."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flinkcore.datastream.functions import KeyedBroadcastProcessFunction, RuntimeContext
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.broadcast_contexts import (
    BroadcastElementContext,
    KeyedBroadcastTimerContext,
    KeyedReadOnlyElementContext,
)
from flinkcore.runtime.operators.element_calls import call_for_element
from flinkcore.runtime.operators.function_results import FunctionResults
from flinkcore.runtime.operators.keyed_calls import KeySelector
from flinkcore.runtime.operators.keyed_function_operator import KeyedFunctionOperator, refuse_before_open
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend, OperatorStateBackend


class KeyedBroadcastProcessOperator(
    KeyedFunctionOperator[KeyedBroadcastProcessFunction], TwoInputStreamOperator
):
    """Calls a function for every element of a keyed stream, for its timers, and for a broadcast second input.

    Timers follow the combined watermark of both inputs, which is passed on after them.

    Parameters
    ----------
    function : KeyedBroadcastProcessFunction
    key_selector : callable
        From an element of the first input to its key.
    broadcast_states : sequence of MapStateDescriptor
        Those that the function can ask for.
    output : Output
    keyed_state_backend : KeyedStateBackend
        The operator's own, with its key context.
    operator_state_backend : OperatorStateBackend
        Has the broadcast states.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoBroadcastWithKeyedOperator``. Deliberate difference:
    a broadcast element has no current key, where Flink leaves that of the element before it in place, so that
    keyed state is not changed by accident.
    """

    def __init__(
        self,
        function: KeyedBroadcastProcessFunction,
        key_selector: KeySelector,
        broadcast_states: Sequence[MapStateDescriptor[Any, Any]],
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        operator_state_backend: OperatorStateBackend,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(function, output, keyed_state_backend, processing_time_service, latency_stats)
        self._key_selector = key_selector
        self._broadcast_states = broadcast_states
        self._operator_state_backend = operator_state_backend
        self._process: Callable[[StreamRecord[Any]], None] = refuse_before_open
        self._process_broadcast: Callable[[StreamRecord[Any]], None] = refuse_before_open

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the broadcast states, start the timers and open the function; before anything is processed."""
        broadcast = self._operator_state_backend
        for descriptor in self._broadcast_states:
            broadcast.get_broadcast_state(descriptor)
        key_context = self._keyed_state_backend.key_context
        calls = self._keyed_calls(
            partial(KeyedBroadcastTimerContext, operator_state_backend=broadcast, key_context=key_context)
        )
        self._process = calls.element_call(
            self._function.process_element,
            self._key_selector,
            KeyedReadOnlyElementContext(calls.timer_service, broadcast, key_context),
        )
        self._process_broadcast = partial(
            call_for_element,
            self._function.process_broadcast_element,
            BroadcastElementContext(calls.timer_service, broadcast),
            FunctionResults(self._function, self._output),
        )
        self._function.open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Call `process_element` with the element's key; errors as of `KeyedProcessOperator.process_element`."""
        self._process(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Call `process_broadcast_element` without a current key.

        Raises
        ------
        UserCodeError
            If it raises, or gives what is no iterable.
        """
        self._keyed_state_backend.key_context.clear_current_key()
        self._process_broadcast(record)
