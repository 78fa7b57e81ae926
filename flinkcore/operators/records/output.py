"""The outputs of operators, and what is left to do when one is full."""

from collections.abc import Callable
from typing import Any, Protocol

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus


class OutputFullError(Exception):
    """Raised by an output that has taken a record and can take no more: the call that emits must pause.

    Each caller that it passes through adds its remaining steps, the innermost first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rest: list[Callable[[], object]] = []

    def then(self, step: Callable[[], object]) -> None:
        """Add a step, to be done after those that were added before."""
        self._rest.append(step)

    def resume(self) -> None:
        """Do the remaining steps, once the output has room.

        Raises
        ------
        OutputFullError
            If the output is full again; it has the steps that remain.
        """
        steps = iter(self._rest)
        try:
            for step in steps:
                step()
        except OutputFullError as again:
            again._rest += steps
            raise


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
        """Emit a watermark; it is not compared with the previous one."""

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Emit a status; it is not compared with the previous one."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Emit a latency marker."""
