"""Latency markers: who emits them, and what they take from their source to an operator."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from flinkcore.errors import ConfigurationError
from flinkcore.operators.metrics.histogram import DescriptiveStatisticsHistogram
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import LatencyMarker
from flinkcore.operators.timers.processing_time import ProcessingTimeService


class Granularity(Enum):
    """Granularity of latency histograms: the markers that share one.

    Notes
    -----
    Flink's ``LatencyStats.Granularity``; the values are those of its setting ``metrics.latency.granularity``.
    """

    SINGLE = "single"
    """All markers that reach a subtask of the operator."""

    OPERATOR = "operator"
    """Markers of the same source."""

    SUBTASK = "subtask"
    """Markers of the same subtask of a source."""


class LatencyMarkerEmitter:
    """Emits a latency marker at once, and then at every interval until it is closed.

    Parameters
    ----------
    processing_time_service : ProcessingTimeService
        Schedules the markers, and gives their time.
    output : Output
        Output of the source.
    interval_ms : int
        At least 1.
    operator_id : str
    subtask_index : int
        Index of the source's subtask.

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
        """Stop the markers."""
        self._timer.cancel()

    def _emit(self, _: int) -> None:
        now_ms = self._time_service.current_processing_time()
        self._output.emit_latency_marker(LatencyMarker(now_ms, self._operator_id, self._subtask_index))


class LatencyScope(NamedTuple):
    """The source and the operator between which a latency is measured.

    Parameters
    ----------
    source_id : str or None
        None for any source.
    source_subtask_index : int or None
        None for any subtask.
    operator_id : str
    operator_subtask_index : int
        Index of the subtask that measures.
    """

    source_id: str | None
    source_subtask_index: int | None
    operator_id: str
    operator_subtask_index: int


class LatencyStats:
    """The latencies measured by one subtask of an operator; set as its `latency_stats`.

    Parameters
    ----------
    metric_group : TaskMetricGroup
        Gets a histogram ``latency`` for each scope.
    processing_time_service : ProcessingTimeService
        Its time is compared with the time of the source in the marker.
    history_size : int
        The number of latencies that each histogram keeps, at least 1.
    operator_id : str
    subtask_index : int
    granularity : Granularity

    Raises
    ------
    ConfigurationError
        If the history is smaller.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.LatencyStats``. Deliberate difference: the time is that of the
    task's service, not of the system, so that replays measure on their own clock.
    """

    def __init__(
        self,
        metric_group: TaskMetricGroup,
        processing_time_service: ProcessingTimeService,
        history_size: int,
        operator_id: str,
        subtask_index: int,
        granularity: Granularity,
    ) -> None:
        if history_size < 1:
            raise ConfigurationError(f"the history of latencies has at least one, not {history_size}")
        self._metric_group = metric_group
        self._time_service = processing_time_service
        self._history_size = history_size
        self._operator_id = operator_id
        self._subtask_index = subtask_index
        self._granularity = granularity
        self._histograms: dict[LatencyScope, DescriptiveStatisticsHistogram] = {}

    def report_latency(self, marker: LatencyMarker) -> None:
        """Measure a marker that arrives now; if the source's clock is ahead, the latency is negative."""
        by_source = self._granularity is not Granularity.SINGLE
        by_subtask = self._granularity is Granularity.SUBTASK
        scope = LatencyScope(
            marker.operator_id if by_source else None,
            marker.subtask_index if by_subtask else None,
            self._operator_id,
            self._subtask_index,
        )
        histogram = self._histograms.get(scope)
        if histogram is None:
            histogram = self._histograms[scope] = DescriptiveStatisticsHistogram(self._history_size)
            self._register(scope, histogram)
        histogram.update(self._time_service.current_processing_time() - marker.marked_time)

    def _register(self, scope: LatencyScope, histogram: DescriptiveStatisticsHistogram) -> None:
        group = self._metric_group
        for name, value in scope._asdict().items():
            if value is not None:
                group = group.add_group(name, str(value))
        group.histogram("latency", histogram)

    @property
    def histograms(self) -> Mapping[LatencyScope, DescriptiveStatisticsHistogram]:
        """The latencies in ms by scope, in the order of the scopes' first markers; read only."""
        return MappingProxyType(self._histograms)
