"""The link from one operator of a chain to the next."""

from typing import Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.runtime.gauges import WatermarkGauge
from flinkcore.runtime.operators.stream_operator import Input


class ChainingOutput:
    """Hands what an operator emits to the next one at once, and maintains the status between them.

    The status announced last is remembered, active at first: it is not repeated, and watermarks are dropped
    while it is idle. Records pass in either status, and do not change it.

    Parameters
    ----------
    input : Input
        The next operator.
    output_tag : OutputTag, optional
        The side output that the next operator reads; None: it reads the main output.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.tasks.ChainingOutput``. An error of the next operator passes
    through as it is, where Flink wraps it.
    """

    def __init__(self, input: Input, output_tag: OutputTag | None = None) -> None:
        self._input = input
        self._output_tag = output_tag
        self._announced_status = WatermarkStatus.ACTIVE
        self._watermark_gauge = WatermarkGauge()

    @property
    def watermark_gauge(self) -> WatermarkGauge:
        """The watermark that the next operator was given last."""
        return self._watermark_gauge

    def collect(self, record: StreamRecord[Any]) -> None:
        """Hand a record of the main output on, if the next operator reads it."""
        if self._output_tag is None:
            self._input.process_element(record)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Hand a record of a side output on, if the next operator reads it."""
        if self._output_tag is not None and self._output_tag == output_tag:
            self._input.process_element(record)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Hand a watermark on, unless the announced status is idle."""
        if self._announced_status is WatermarkStatus.IDLE:
            return
        self._watermark_gauge.set_current_watermark(watermark.timestamp)
        self._input.process_watermark(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Hand a status on, unless it is the announced one."""
        if self._announced_status is not status:
            self._announced_status = status
            self._input.process_watermark_status(status)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Hand a latency marker on."""
        self._input.process_latency_marker(latency_marker)
