"""The outputs of the operators of a task: to the next operator of the chain, and into channels of other tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.elements.tasks.stream_partitioners import ChannelSelector
from flinkcore.errors import DataError
from flinkcore.operators.metrics.gauges import WatermarkGauge
from flinkcore.operators.records.copies import detached
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.records.stream_elements import (
    LatencyMarker,
    StreamElement,
    StreamRecord,
    WatermarkStatus,
)
from flinkcore.operators.stream_operator import Input

ElementCall = Callable[[StreamRecord[Any]], None]


class EdgeOutput(Protocol):
    """Takes everything but records for an operator that reads this one."""

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark."""

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Send a status."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Send a latency marker."""


@dataclass(frozen=True)
class Edge:
    """An operator that reads this one.

    Attributes
    ----------
    collect : callable
        Takes a record, which it may change.
    output : EdgeOutput
        Takes everything else.
    """

    collect: ElementCall
    output: EdgeOutput


@dataclass(frozen=True)
class InputChannel:
    """A channel of a subtask's input.

    Attributes
    ----------
    collect : callable
        Takes a record.
    process : callable
        Takes any other element, and the number of the channel.
    number : int
        Number of the channel within the input.
    end : callable
        Called when the channel has ended.
    """

    collect: ElementCall
    process: Callable[[StreamElement[Any], int], None]
    number: int
    end: Callable[[], None]


class RecordWriterOutput:
    """Sends elements into the channels of the subtasks of another operator.

    Watermarks and statuses go to all of them. A status is not repeated, and watermarks are dropped while it is idle.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.io.RecordWriterOutput``; a channel leads straight to the operator.
    """

    def __init__(self, channels: Sequence[InputChannel]) -> None:
        self._channels = channels
        self._announced_status = WatermarkStatus.ACTIVE

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark to all channels, unless the last status was idle."""
        if self._announced_status is not WatermarkStatus.IDLE:
            self._send(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Send a status to all channels, unless it was the last one."""
        if self._announced_status is not status:
            self._announced_status = status
            self._send(status)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Send a latency marker to the first channel, where Flink takes a random one."""
        first = self._channels[0]
        first.process(latency_marker, first.number)

    def _send(self, element: StreamElement[Any]) -> None:
        for channel in self._channels:
            channel.process(element, channel.number)


def selecting(channels: Sequence[InputChannel], select: ChannelSelector) -> ElementCall:
    """Return a call that sends each record to one of several channels."""
    collects = [channel.collect for channel in channels]
    return lambda record: collects[select(record)](record)


def detaching(collect: ElementCall, giver: str) -> ElementCall:
    """Return a call that forwards each record with a :func:`detached` value."""

    def collect_detached(record: StreamRecord[Any]) -> None:
        record.value = detached(record.value, giver)
        collect(record)

    return collect_detached


def broadcasting(channels: Sequence[InputChannel], values_change: bool, giver: str) -> ElementCall:
    """Return a call that sends each record to all channels (Flink's ``BroadcastPartitioner``).

    Parameters
    ----------
    channels : sequence of InputChannel
    values_change : bool
        Whether each channel needs its own copy of a value.
    giver : str
        The name in errors of the function that gave the values.
    """
    collects = [channel.collect for channel in channels]
    return copying([detaching(collect, giver) for collect in collects] if values_change else collects)


def copying(collects: Sequence[ElementCall]) -> ElementCall:
    """Return a call that gives a copy of each record to every reader (Flink's ``BroadcastingOutputCollector``)."""
    if not collects:
        return _ignore
    if len(collects) == 1:
        return collects[0]
    *others, last = collects

    def collect(record: StreamRecord[Any]) -> None:
        value, timestamp = record.value, record.timestamp
        for other in others:
            other(StreamRecord(value, timestamp))
        last(record)

    return collect


def _ignore(record: StreamRecord[Any]) -> None:
    """Drop a record that nobody reads."""


class TaskOutput:
    """The output of an operator to all that read it, and its side outputs.

    Parameters
    ----------
    edges : sequence of Edge
        Readers of the main output.
    side_edges : sequence of (OutputTag, Edge)
    conversion : callable, optional
        From a result for the main output to a value of the declared type.

    Attributes
    ----------
    collect : callable
        Emits a record to the main output; readers may change it.
    watermark_gauge : WatermarkGauge
        The last watermark that was emitted.
    """

    def __init__(
        self,
        edges: Sequence[Edge],
        side_edges: Sequence[tuple[OutputTag, Edge]] = (),
        conversion: Callable[[Any], Any] | None = None,
    ) -> None:
        collect = copying([edge.collect for edge in edges])
        self.collect: ElementCall = collect if conversion is None else _converting(conversion, collect)
        by_tag: dict[str, list[ElementCall]] = {}
        for tag, edge in side_edges:
            by_tag.setdefault(tag.tag_id, []).append(_of_tag(tag, edge.collect))
        self._sides = {tag_id: copying(collects) for tag_id, collects in by_tag.items()}
        self._outputs = [edge.output for edge in (*edges, *(edge for _, edge in side_edges))]
        self.watermark_gauge = WatermarkGauge()

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Emit a record to a side output; it is dropped if nobody reads that."""
        collect = self._sides.get(output_tag.tag_id)
        if collect is not None:
            collect(record)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark."""
        self.watermark_gauge.set_current_watermark(watermark.timestamp)
        for output in self._outputs:
            output.emit_watermark(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Emit a status."""
        for output in self._outputs:
            output.emit_watermark_status(status)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Emit a latency marker."""
        for output in self._outputs:
            output.emit_latency_marker(latency_marker)


def _of_tag(tag: OutputTag, collect: ElementCall) -> ElementCall:
    conversion = declared_type(tag.type_info).conversion()
    if conversion is None:
        return collect

    def convert(value: Any) -> Any:
        try:
            return conversion(value)
        except DataError as failure:
            raise DataError(
                f"the side output {tag.tag_id!r} got {shown(value)}: {failure}; emit what its OutputTag declares, "
                "or declare another type"
            ) from failure

    return _converting(convert, collect)


def _converting(conversion: Callable[[Any], Any], collect: ElementCall) -> ElementCall:
    def collect_converted(record: StreamRecord[Any]) -> None:
        record.value = conversion(record.value)
        collect(record)

    return collect_converted


class ChainingOutput(Output):
    """Passes the elements of an operator to the next one of the chain by direct calls.

    A status, active at first, is not repeated, and watermarks are dropped while it is idle. Records pass in either
    status, and do not change it.

    Parameters
    ----------
    input : Input
        The next operator.
    output_tag : OutputTag, optional
        The side output that the next operator reads; None for the main output.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.tasks.ChainingOutput``. An error of the next operator is
    raised as it is, where Flink wraps it.
    """

    def __init__(self, input: Input, output_tag: OutputTag | None = None) -> None:
        self._input = input
        self._output_tag = output_tag
        self._announced_status = WatermarkStatus.ACTIVE
        self._watermark_gauge = WatermarkGauge()

    @property
    def watermark_gauge(self) -> WatermarkGauge:
        """The last watermark that was passed to the next operator."""
        return self._watermark_gauge

    def collect(self, record: StreamRecord[Any]) -> None:
        """Pass on a record of the main output, if the next operator reads that."""
        if self._output_tag is None:
            self._input.process_element(record)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Pass on a record of a side output, if the next operator reads that."""
        if self._output_tag is not None and self._output_tag == output_tag:
            self._input.process_element(record)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Pass on a watermark, unless the last status was idle."""
        if self._announced_status is WatermarkStatus.IDLE:
            return
        self._watermark_gauge.set_current_watermark(watermark.timestamp)
        self._input.process_watermark(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Pass on a status, unless it was the last one."""
        if self._announced_status is not status:
            self._announced_status = status
            self._input.process_watermark_status(status)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self._input.process_latency_marker(latency_marker)
