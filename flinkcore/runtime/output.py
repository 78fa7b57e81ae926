"""Where an operator puts its elements."""

from collections.abc import Callable
from typing import Any, Protocol

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus


class OutputFullError(Exception):
    """Raised by an output that has taken a record and can take no more now: the call that gives them is to wait.

    Attributes
    ----------
    rest : callable
        Emits what the call has still to give, once there is room; set by the operator. Raises the same when the
        output is full again.
    """

    rest: Callable[[], None]


class Output(Protocol):
    """The downstream side of an operator or a source.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.Output``.
    """

    def collect(self, record: StreamRecord[Any]) -> None:
        """Emit a record to the main output."""

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Emit a record to a side output."""

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark, which downstream may take as it is: it is not compared with the last."""

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Emit a status, which likewise is passed on as it is."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Emit a latency marker."""
