"""What a source emits on its way to the next operator: measured, and refused after the end."""

from typing import Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.runtime.gauges import WatermarkGauge
from flinkcore.runtime.output import Output
from flinkcore.runtime.sources.source_output_with_watermarks import EndedOutput


class SourceDataOutput:
    """Passes elements on until the source ends, and refuses them after.

    Attributes
    ----------
    watermark_gauge : WatermarkGauge
        The watermark that was emitted last.

    Notes
    -----
    Flink's ``SourceOperatorStreamTask.AsyncDataOutputToOutput``. Deliberate difference: at the end of the input, a
    source that is idle is marked active before the last watermark. In Flink it is not, and a chained operator drops
    the watermarks of an idle input, so that at the end of the input not everything would fire.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._is_idle = False
        self.watermark_gauge = WatermarkGauge()

    def collect(self, record: StreamRecord[Any]) -> None:
        """Pass a record on."""
        self._output.collect(record)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Pass a record of a side output on."""
        self._output.collect_side(output_tag, record)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Measure a watermark, and pass it on."""
        self._output.emit_watermark(watermark)
        self.watermark_gauge.set_current_watermark(watermark.timestamp)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Pass a status on."""
        self._output.emit_watermark_status(status)
        self._is_idle = status is WatermarkStatus.IDLE

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Pass a latency marker on."""
        self._output.emit_latency_marker(latency_marker)

    def end(self) -> None:
        """Emit the last watermark, 2**63 - 1, and refuse everything after it."""
        if self._is_idle:
            self.emit_watermark_status(WatermarkStatus.ACTIVE)
        self.emit_watermark(Watermark.MAX_WATERMARK)
        self.refuse("the source has come to its end")

    def refuse(self, reason: str) -> None:
        """Refuse everything from now on, with a message that begins with the reason."""
        self._output = EndedOutput(reason)
