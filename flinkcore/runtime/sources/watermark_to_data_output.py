"""The last step of a source's watermarks and statuses on their way downstream."""

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import WatermarkStatus
from flinkcore.runtime.output import Output
from flinkcore.runtime.sources.timestamps_and_watermarks import WatermarkUpdateListener


class WatermarkToDataOutput:
    """Passes on the watermarks and statuses that are news, and tells a listener.

    Parameters
    ----------
    output : Output
    listener : WatermarkUpdateListener
        Hears of a watermark before the output does, and of a status after it.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.WatermarkToDataOutput``.
    """

    def __init__(self, output: Output, listener: WatermarkUpdateListener) -> None:
        self._output = output
        self._listener = listener
        self._max_watermark_so_far = MIN_TIMESTAMP
        self._is_idle = False

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark that advances, after marking the output active; else do neither."""
        if watermark.timestamp <= self._max_watermark_so_far:
            return
        self._max_watermark_so_far = watermark.timestamp
        self._listener.update_current_effective_watermark(watermark.timestamp)
        self.mark_active()
        self._output.emit_watermark(watermark)

    def mark_idle(self) -> None:
        """Emit the status if the output was active."""
        if not self._is_idle:
            self._output.emit_watermark_status(WatermarkStatus.IDLE)
            self._listener.update_idle(True)
            self._is_idle = True

    def mark_active(self) -> None:
        """Emit the status if the output was idle."""
        if self._is_idle:
            self._output.emit_watermark_status(WatermarkStatus.ACTIVE)
            self._listener.update_idle(False)
            self._is_idle = False
