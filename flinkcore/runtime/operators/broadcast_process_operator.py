"""The operator that runs a BroadcastProcessFunction."""

from collections.abc import Sequence
from typing import Any

from flinkcore.datastream.functions import BroadcastProcessFunction, RuntimeContext
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.broadcast_contexts import BroadcastElementContext, ReadOnlyElementContext
from flinkcore.runtime.operators.element_calls import call_for_element
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator
from flinkcore.runtime.operators.unkeyed_function_operator import UnkeyedFunctionOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import OperatorStateBackend


class BroadcastProcessOperator(UnkeyedFunctionOperator[BroadcastProcessFunction], TwoInputStreamOperator):
    """Calls a function for every element of a stream, and of a broadcast one, which is the second input.

    Parameters
    ----------
    function : BroadcastProcessFunction
    broadcast_states : sequence of MapStateDescriptor
        Those that the function can ask for.
    output : Output
    operator_state_backend : OperatorStateBackend
        Has the broadcast states.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoBroadcastWithNonKeyedOperator``.
    """

    def __init__(
        self,
        function: BroadcastProcessFunction,
        broadcast_states: Sequence[MapStateDescriptor[Any, Any]],
        output: Output,
        operator_state_backend: OperatorStateBackend,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(function, output, processing_time_service, latency_stats)
        self._broadcast_states = broadcast_states
        self._operator_state_backend = operator_state_backend
        self._context = ReadOnlyElementContext(self._timer_service, operator_state_backend)
        self._broadcast_context = BroadcastElementContext(self._timer_service, operator_state_backend)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the broadcast states and open the function; before anything is processed."""
        for descriptor in self._broadcast_states:
            self._operator_state_backend.get_broadcast_state(descriptor)
        super().open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Call `process_element`.

        Raises
        ------
        UserCodeError
            If it raises, or gives what is no iterable.
        """
        call_for_element(self._function.process_element, self._context, self._results, record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Call `process_broadcast_element`; errors as of `process_element1`."""
        call_for_element(
            self._function.process_broadcast_element, self._broadcast_context, self._results, record
        )
