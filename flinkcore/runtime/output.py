"""Where an operator puts its elements."""

from collections.abc import Callable
from typing import Any, Protocol

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus


class OutputFullError(Exception):
    """Raised by an output that has taken a record and can take no more now: the call that gives them is to wait.

    Whoever it passes adds what it would have done next, the innermost first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rest: list[Callable[[], object]] = []

    def then(self, step: Callable[[], object]) -> None:
        """Add what is to be done after all that has been added."""
        self._rest.append(step)

    def resume(self) -> None:
        """Do what was added, once there is room.

        Raises
        ------
        OutputFullError
            If the output is full again; has what is then left.
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
        """Emit a watermark, which downstream may take as it is: it is not compared with the last."""

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Emit a status, which likewise is passed on as it is."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Emit a latency marker."""
