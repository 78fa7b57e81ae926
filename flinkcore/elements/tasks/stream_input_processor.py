"""An input of a task: from its channels, each kind of element goes its way to the operator."""

from collections.abc import Sequence
from typing import Any

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.valve import StatusWatermarkValve
from flinkcore.common.watermark import Watermark
from flinkcore.errors import DataError
from flinkcore.operators.metrics.gauges import WatermarkGauge
from flinkcore.operators.records.stream_elements import (
    LatencyMarker,
    StreamElement,
    StreamRecord,
    WatermarkStatus,
)
from flinkcore.operators.stream_operator import Input

_STATUSES = {status.value: status for status in WatermarkStatus}


class StreamOneInputProcessor:
    """Takes the elements of all channels of one input to an operator.

    Records and latency markers go to the operator as they come. Watermarks and statuses go through the watermark valve,
    whose output goes to the operator.

    Parameters
    ----------
    operator : Input
    channels : int
        Number of input channels, at least 1; all are active at first.

    Attributes
    ----------
    ended : set of int
        The channels that have come to their end.

    Raises
    ------
    ConfigurationError
        If there is no channel.

    Notes
    -----
    Flink's ``StreamOneInputProcessor`` with ``AbstractStreamTaskNetworkInput.processElement`` and the
    ``StreamTaskNetworkOutput`` of its task.
    """

    def __init__(self, operator: Input, channels: int) -> None:
        self._operator = operator
        self._valve = StatusWatermarkValve(channels)
        self.ended: set[int] = set()
        self._watermark_gauge = WatermarkGauge()

    @property
    def watermark_gauge(self) -> WatermarkGauge:
        """The last watermark that the operator has processed."""
        return self._watermark_gauge

    def state(self) -> tuple[list[tuple[int, bool]], int]:
        """Return watermark and idleness of each channel, and the last watermark of all, in ms since the epoch."""
        watermarks_ms, idle, last_ms = self._valve.state()
        return list(zip(watermarks_ms.tolist(), map(bool, idle.tolist()), strict=True)), last_ms

    def restore(self, channels: Sequence[tuple[int, bool]], last_ms: int) -> None:
        """Restore the `state` of another input, before any element; nothing is emitted.

        Raises
        ------
        DataError
            If these are not as many channels as the input has.
        """
        import numpy as np

        self._valve.restore(
            np.array([watermark_ms for watermark_ms, _ in channels], np.int64),
            np.array([is_idle for _, is_idle in channels], np.uint8),
            last_ms,
        )
        if last_ms != MIN_TIMESTAMP:
            self._watermark_gauge.set_current_watermark(last_ms)

    def process_element(self, element: StreamElement[Any], channel: int) -> None:
        """Dispatch an element.

        Parameters
        ----------
        element : StreamRecord, Watermark, WatermarkStatus or LatencyMarker
        channel : int
            Index of the channel.

        Raises
        ------
        DataError
            If the element is of another kind, or a watermark or status comes from a channel that does not exist.
        """
        if isinstance(element, StreamRecord):
            self._operator.process_element(element)
        elif isinstance(element, Watermark):
            self._hand_over(self._valve.input_watermark(channel, element.timestamp))
        elif isinstance(element, WatermarkStatus):
            self._hand_over(self._valve.input_watermark_status(channel, element.value))
        elif isinstance(element, LatencyMarker):
            self._operator.process_latency_marker(element)
        else:
            raise DataError(
                f"channel {channel} delivered an element of type {type(element).__qualname__}; an input takes "
                "StreamRecord, Watermark, WatermarkStatus and LatencyMarker"
            )

    def _hand_over(self, put_out: list[Any]) -> None:
        for kind, value in put_out:
            if kind == "watermark":
                self._watermark_gauge.set_current_watermark(value)
                self._operator.process_watermark(Watermark(value))
            else:
                self._operator.process_watermark_status(_STATUSES[value])
