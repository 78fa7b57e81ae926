"""Latency markers at a source."""

from flinkcore.errors import ConfigurationError
from flinkcore.runtime.elements import LatencyMarker
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService


class LatencyMarkerEmitter:
    """Emits a latency marker now, and then at every interval until it is closed.

    Parameters
    ----------
    processing_time_service : ProcessingTimeService
        Schedules the markers, and gives them their time.
    output : Output
        Of the source.
    interval_ms : int
        At least 1.
    operator_id : str
    subtask_index : int
        The source.

    Raises
    ------
    ConfigurationError
        If the interval is not above zero.

    Notes
    -----
    Flink's ``LatencyMarkerEmitter`` of ``StreamSource`` and ``SourceOperator``. Deliberate difference: an
    error downstream fails the task, where Flink logs it.
    """

    def __init__(
        self,
        processing_time_service: ProcessingTimeService,
        output: Output,
        interval_ms: int,
        operator_id: str,
        subtask_index: int,
    ) -> None:
        if interval_ms < 1:
            raise ConfigurationError(
                f"the interval of latency markers must be at least 1 ms, it is {interval_ms} ms"
            )
        self._time_service = processing_time_service
        self._output = output
        self._operator_id = operator_id
        self._subtask_index = subtask_index
        self._timer = processing_time_service.schedule_with_fixed_delay(self._emit, 0, interval_ms)

    def close(self) -> None:
        """Emit no further marker."""
        self._timer.cancel()

    def _emit(self, _: int) -> None:
        now_ms = self._time_service.current_processing_time()
        self._output.emit_latency_marker(LatencyMarker(now_ms, self._operator_id, self._subtask_index))
