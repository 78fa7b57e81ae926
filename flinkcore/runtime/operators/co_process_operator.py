"""The operator that runs a CoProcessFunction."""

from typing import Any

from flinkcore.datastream.functions import CoProcessFunction
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.element_calls import call_for_element
from flinkcore.runtime.operators.process_contexts import ElementContext
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator
from flinkcore.runtime.operators.unkeyed_function_operator import UnkeyedFunctionOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService


class CoProcessOperator(UnkeyedFunctionOperator[CoProcessFunction], TwoInputStreamOperator):
    """Calls a function for every element of two streams; its results carry the element's timestamp.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoProcessOperator``.
    """

    def __init__(
        self,
        function: CoProcessFunction,
        output: Output,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(function, output, processing_time_service, latency_stats)
        self._context = ElementContext(self._timer_service)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Call the function for the first input.

        Raises
        ------
        UserCodeError
            If it raises, or gives what is no iterable.
        """
        call_for_element(self._function.process_element1, self._context, self._results, record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Call the function for the second input; errors as of `process_element1`."""
        call_for_element(self._function.process_element2, self._context, self._results, record)
