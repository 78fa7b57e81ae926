"""What operators of functions without a key have in common."""

from typing import Generic, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import Function, RuntimeContext
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.function_results import FunctionResults
from flinkcore.runtime.operators.stream_operator import AbstractStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.timers.function_timer_services import UnkeyedTimerService

F = TypeVar("F", bound=Function)


class UnkeyedFunctionOperator(AbstractStreamOperator, Generic[F]):
    """Opens and closes a function, and tells it the watermark.

    Notes
    -----
    Flink's ``AbstractUdfStreamOperator``, with what ``ProcessOperator``, ``CoProcessOperator`` and
    ``CoBroadcastWithNonKeyedOperator`` have in common.
    """

    def __init__(
        self,
        function: F,
        output: Output,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(output, latency_stats)
        self._function = function
        self._results = FunctionResults(function, output)
        self._timer_service = UnkeyedTimerService(processing_time_service)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        self._function.open(runtime_context)

    def process_watermark(self, watermark: Watermark) -> None:
        """Remember the watermark for the function, and pass it on."""
        self._timer_service.watermark = watermark.timestamp
        super().process_watermark(watermark)

    def close(self) -> None:
        """Close the function."""
        self._function.close()
