"""The operator that runs a ProcessFunction."""

from typing import Any

from flinkcore.datastream.functions import ProcessFunction
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.element_calls import call_for_element
from flinkcore.runtime.operators.process_contexts import ElementContext
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.operators.unkeyed_function_operator import UnkeyedFunctionOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService


class ProcessOperator(UnkeyedFunctionOperator[ProcessFunction], OneInputStreamOperator):
    """Calls a function for every element; its results carry the element's timestamp.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.ProcessOperator``.
    """

    def __init__(
        self,
        function: ProcessFunction,
        output: Output,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(function, output, processing_time_service, latency_stats)
        self._context = ElementContext(self._timer_service)

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Call the function.

        Raises
        ------
        UserCodeError
            If it raises, or gives what is no iterable.
        """
        call_for_element(self._function.process_element, self._context, self._results, record)
