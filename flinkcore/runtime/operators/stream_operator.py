"""What operators do with the elements that are no records, unless they do otherwise."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import RuntimeContext
from flinkcore.runtime.combined_watermark_status import IndexedCombinedWatermarkStatus
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.output import Output
from flinkcore.runtime.timers import InternalTimeServiceManager


class AbstractStreamOperator:
    """Passes watermarks, statuses and latency markers on, and measures the markers; has nothing to open or close.

    Parameters
    ----------
    output : Output
        Where the operator emits to.
    latency_stats : LatencyStats, optional
        Measures the latency markers that come by; without it they are only passed on.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.AbstractStreamOperator``.
    """

    def __init__(self, output: Output, latency_stats: LatencyStats | None = None) -> None:
        self._output = output
        self._latency_stats = latency_stats

    @property
    def time_service_manager(self) -> InternalTimeServiceManager | None:
        """The operator's timers; None for an operator that has none."""
        return None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Prepare for work: after the operator's state was restored, and before anything is processed."""

    def finish(self) -> None:
        """Emit what is still held back, at the end of the input."""

    def close(self) -> None:
        """Let go of what `open` took."""

    def process_watermark(self, watermark: Watermark) -> None:
        """Pass a watermark on."""
        self._output.emit_watermark(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Pass a status on."""
        self._output.emit_watermark_status(status)

    def process_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker, and pass it on."""
        if self._latency_stats is not None:
            self._latency_stats.report_latency(latency_marker)
        self._output.emit_latency_marker(latency_marker)


class OneInputStreamOperator(AbstractStreamOperator, ABC):
    """An operator with one input; an :class:`Input`.

    Parameters
    ----------
    output, latency_stats
        As of :class:`AbstractStreamOperator`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.OneInputStreamOperator``.
    """

    @abstractmethod
    def process_element(self, record: StreamRecord[Any]) -> None:
        """Process a record."""

    @property
    def element_call(self) -> Callable[[StreamRecord[Any]], None]:
        """What processes a record as `process_element` does, in fewer calls; to be asked for once it is open."""
        return self.process_element


class TwoInputStreamOperator(AbstractStreamOperator, ABC):
    """An operator with two inputs, whose watermark is the lesser of theirs; :class:`TwoInputs`.

    An idle input does not hold the watermark back. The operator is idle while both are; when the second one
    turns idle, the greater watermark of both is passed on before the status.

    Parameters
    ----------
    output, latency_stats
        As of :class:`AbstractStreamOperator`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.TwoInputStreamOperator``, with what
    ``AbstractStreamOperator`` does for two inputs.
    """

    def __init__(self, output: Output, latency_stats: LatencyStats | None = None) -> None:
        super().__init__(output, latency_stats)
        self._combined = IndexedCombinedWatermarkStatus(2)

    @property
    def combined_watermark(self) -> int:
        """The lesser watermark of the inputs that are not idle, in ms since the epoch; -2**63 before the first."""
        return self._combined.combined_watermark

    @abstractmethod
    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Process a record of the first input."""

    @abstractmethod
    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Process a record of the second input."""

    def process_watermark1(self, watermark: Watermark) -> None:
        """Take a watermark of the first input; process the combined one if it advances."""
        self._process_watermark_of(0, watermark)

    def process_watermark2(self, watermark: Watermark) -> None:
        """Take a watermark of the second input; process the combined one if it advances."""
        self._process_watermark_of(1, watermark)

    def process_watermark_status1(self, status: WatermarkStatus) -> None:
        """Take the status of the first input; pass the combined one on if it changes."""
        self._process_status_of(0, status)

    def process_watermark_status2(self, status: WatermarkStatus) -> None:
        """Take the status of the second input; pass the combined one on if it changes."""
        self._process_status_of(1, status)

    def process_latency_marker1(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker of the first input, and pass it on."""
        self.process_latency_marker(latency_marker)

    def process_latency_marker2(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker of the second input, and pass it on."""
        self.process_latency_marker(latency_marker)

    def _process_watermark_of(self, index: int, watermark: Watermark) -> None:
        if self._combined.update_watermark(index, watermark.timestamp):
            self.process_watermark(Watermark(self._combined.combined_watermark))

    def _process_status_of(self, index: int, status: WatermarkStatus) -> None:
        was_idle = self._combined.is_idle
        if self._combined.update_status(index, status is WatermarkStatus.IDLE):
            self.process_watermark(Watermark(self._combined.combined_watermark))
        if was_idle != self._combined.is_idle:
            self._output.emit_watermark_status(status)
