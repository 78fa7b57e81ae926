"""What an operator takes from its task, or from the operator before it."""

from typing import Any, Protocol

from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus


class Input(Protocol):
    """The upstream side of an operator with one input, or of one input of several.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.Input``.
    """

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Process a record."""

    def process_watermark(self, watermark: Watermark) -> None:
        """Process a watermark, which is the combined one where there are several channels."""

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Process that the input turns idle, or active again."""

    def process_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker, and pass it on."""


class TwoInputs(Protocol):
    """The upstream side of an operator with two inputs.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.TwoInputStreamOperator``.
    """

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Process a record of the first input."""

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Process a record of the second input."""

    def process_watermark1(self, watermark: Watermark) -> None:
        """Process a watermark of the first input."""

    def process_watermark2(self, watermark: Watermark) -> None:
        """Process a watermark of the second input."""

    def process_watermark_status1(self, status: WatermarkStatus) -> None:
        """Process that the first input turns idle, or active again."""

    def process_watermark_status2(self, status: WatermarkStatus) -> None:
        """Process that the second input turns idle, or active again."""

    def process_latency_marker1(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker of the first input, and pass it on."""

    def process_latency_marker2(self, latency_marker: LatencyMarker) -> None:
        """Measure a latency marker of the second input, and pass it on."""


class FirstInput:
    """The first input of an operator with two."""

    def __init__(self, operator: TwoInputs) -> None:
        self.process_element = operator.process_element1
        self.process_watermark = operator.process_watermark1
        self.process_watermark_status = operator.process_watermark_status1
        self.process_latency_marker = operator.process_latency_marker1


class SecondInput:
    """The second input of an operator with two."""

    def __init__(self, operator: TwoInputs) -> None:
        self.process_element = operator.process_element2
        self.process_watermark = operator.process_watermark2
        self.process_watermark_status = operator.process_watermark_status2
        self.process_latency_marker = operator.process_latency_marker2
