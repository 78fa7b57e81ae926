"""Flink's punctuated example of a watermark generator."""

from typing import Any

from flinkcore.common import Watermark, WatermarkGenerator, WatermarkOutput


class EvenTimestamps(WatermarkGenerator[Any]):
    """An even timestamp is a watermark."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp % 2 == 0:
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass
