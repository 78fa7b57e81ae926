"""How long latency markers take from their source to an operator."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from flinkcore.errors import ConfigurationError
from flinkcore.runtime.elements import LatencyMarker
from flinkcore.runtime.histogram import DescriptiveStatisticsHistogram
from flinkcore.runtime.processing_time import ProcessingTimeService


class Granularity(Enum):
    """Which markers share a histogram.

    Notes
    -----
    Flink's ``LatencyStats.Granularity``; the values are those of its setting ``metrics.latency.granularity``.
    """

    SINGLE = "single"
    """All markers that reach the operator's subtask."""

    OPERATOR = "operator"
    """Those of one source."""

    SUBTASK = "subtask"
    """Those of one subtask of one source."""


class LatencyScope(NamedTuple):
    """From where to where a latency is measured.

    Parameters
    ----------
    source_id : str or None
        None: any source.
    source_subtask_index : int or None
        None: any subtask of the source.
    operator_id : str
    operator_subtask_index : int
        The operator that measures.
    """

    source_id: str | None
    source_subtask_index: int | None
    operator_id: str
    operator_subtask_index: int


class LatencyStats:
    """The latencies that one subtask of an operator measures.

    Parameters
    ----------
    processing_time_service : ProcessingTimeService
        Its clock is compared with that of the source, which wrote its own time into the marker.
    history_size : int
        How many latencies each histogram keeps, at least 1.
    operator_id : str
    subtask_index : int
    granularity : Granularity

    Raises
    ------
    ConfigurationError
        If the history is of less than one latency.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.LatencyStats``. Deliberate difference: the time is that of the
    task's service, not the system's, so that replays measure on their own clock.
    """

    def __init__(
        self,
        processing_time_service: ProcessingTimeService,
        history_size: int,
        operator_id: str,
        subtask_index: int,
        granularity: Granularity,
    ) -> None:
        if history_size < 1:
            raise ConfigurationError(f"the history of latencies has at least one, not {history_size}")
        self._time_service = processing_time_service
        self._history_size = history_size
        self._operator_id = operator_id
        self._subtask_index = subtask_index
        self._granularity = granularity
        self._histograms: dict[LatencyScope, DescriptiveStatisticsHistogram] = {}

    def report_latency(self, marker: LatencyMarker) -> None:
        """Measure a marker that arrives now.

        Parameters
        ----------
        marker : LatencyMarker
            One marked later than now, by a source whose clock is ahead, counts with a negative latency.
        """
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
        histogram.update(self._time_service.current_processing_time() - marker.marked_time)

    @property
    def histograms(self) -> Mapping[LatencyScope, DescriptiveStatisticsHistogram]:
        """The latencies in ms by scope, in the order in which the scopes were first seen; read only."""
        return MappingProxyType(self._histograms)
