"""The operator that runs a ProcessFunction."""

from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import ProcessFunction, RuntimeContext
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.element_calls import call_for_element
from flinkcore.runtime.operators.function_results import FunctionResults
from flinkcore.runtime.operators.process_contexts import ElementContext
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.operators.unkeyed_timer_service import UnkeyedTimerService
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService


class ProcessOperator(OneInputStreamOperator):
    """Calls a function for every element; its results carry the element's timestamp.

    Parameters
    ----------
    function : ProcessFunction
    output : Output
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

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
        super().__init__(output, latency_stats)
        self._function = function
        self._results = FunctionResults(function, output)
        self._timer_service = UnkeyedTimerService(processing_time_service)
        self._context = ElementContext(self._timer_service)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        self._function.open(runtime_context)

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Call the function.

        Raises
        ------
        UserCodeError
            If it raises, or gives what is no iterable.
        """
        call_for_element(self._function.process_element, self._context, self._results, record)

    def process_watermark(self, watermark: Watermark) -> None:
        """Remember a watermark for the function, and pass it on."""
        self._timer_service.watermark = watermark.timestamp
        super().process_watermark(watermark)

    def close(self) -> None:
        """Close the function."""
        self._function.close()
