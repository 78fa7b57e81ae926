"""Where an operator under test emits to."""

from typing import Any, Generic, TypeVar

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.copies import copied
from flinkcore.runtime.elements import LatencyMarker, StreamElement, StreamRecord, WatermarkStatus

OUT = TypeVar("OUT")


class CollectedOutput(Generic[OUT]):
    """An :class:`Output` that keeps everything, in order.

    Attributes
    ----------
    elements : list of StreamElement
        Of the main output. Records, and the lists, dictionaries and other containers that are their values, are copies:
        a value is shown as it was when it was emitted.

    Notes
    -----
    Flink's ``AbstractStreamOperatorTestHarness.MockOutput``.
    """

    def __init__(self) -> None:
        self.elements: list[StreamElement[OUT]] = []
        self._side: dict[OutputTag, list[StreamRecord[Any]]] = {}

    def side(self, output_tag: OutputTag) -> list[StreamRecord[Any]]:
        """Return the records of a side output.

        Raises
        ------
        ConfigurationError
            If it is no OutputTag.
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(f"a side output is asked for by its OutputTag, not by {output_tag!r}")
        return self._side.setdefault(output_tag, [])

    def collect(self, record: StreamRecord[Any]) -> None:
        """Keep a record."""
        self.elements.append(StreamRecord(copied(record.value), record.timestamp))

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Keep a record of a side output."""
        self.side(output_tag).append(StreamRecord(copied(record.value), record.timestamp))

    def emit_watermark(self, watermark: Watermark) -> None:
        """Keep a watermark."""
        self.elements.append(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Keep a status."""
        self.elements.append(status)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Keep a latency marker."""
        self.elements.append(latency_marker)
