"""Where an operator of a task puts its elements: to all that read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.declared_type import declared_type
from flinkcore.errors import DataError
from flinkcore.runtime.elements import LatencyMarker, StreamElement, StreamRecord, WatermarkStatus
from flinkcore.runtime.messages import shown
from flinkcore.runtime.tasks.detached_value import detached
from flinkcore.runtime.tasks.stream_partitioners import ChannelSelector

ElementCall = Callable[[StreamRecord[Any]], None]


class EdgeOutput(Protocol):
    """The way to one operator that reads this one."""

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark."""

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Send a status."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Send a latency marker."""


@dataclass(frozen=True)
class Edge:
    """A way to an operator that reads this one.

    Attributes
    ----------
    collect : callable
        Takes a record, which may then be changed.
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
        Of the channel within the input.
    end : callable
        Called when nothing comes any more.
    """

    collect: ElementCall
    process: Callable[[StreamElement[Any], int], None]
    number: int
    end: Callable[[], None]


class RecordWriterOutput:
    """Sends elements into the channels of the subtasks of another operator.

    Watermarks and statuses go to all of them; a status that was announced already does not, and while it is idle no
    watermark.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.io.RecordWriterOutput``; a channel leads straight to the operator.
    """

    def __init__(self, channels: Sequence[InputChannel]) -> None:
        self._channels = channels
        self._announced_status = WatermarkStatus.ACTIVE

    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark to all, unless the announced status is idle."""
        if self._announced_status is not WatermarkStatus.IDLE:
            self._send(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Send a status to all, unless it is the announced one."""
        if self._announced_status is not status:
            self._announced_status = status
            self._send(status)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Send a latency marker to the first, where Flink draws one."""
        first = self._channels[0]
        first.process(latency_marker, first.number)

    def _send(self, element: StreamElement[Any]) -> None:
        for channel in self._channels:
            channel.process(element, channel.number)


def selecting(channels: Sequence[InputChannel], select: ChannelSelector) -> ElementCall:
    """Return what sends each record to one of several channels."""
    collects = [channel.collect for channel in channels]
    return lambda record: collects[select(record)](record)


def detaching(collect: ElementCall, giver: str) -> ElementCall:
    """Return what hands records on with values that later changes of an object do not reach; see :func:`detached`."""

    def collect_detached(record: StreamRecord[Any]) -> None:
        record.value = detached(record.value, giver)
        collect(record)

    return collect_detached


def broadcasting(channels: Sequence[InputChannel], values_change: bool, giver: str) -> ElementCall:
    """Return what sends each record to all channels (Flink's ``BroadcastPartitioner``).

    Parameters
    ----------
    channels : sequence of InputChannel
    values_change : bool
        Whether each is to have a value of its own.
    giver : str
        How messages name what gave the values.
    """
    collects = [channel.collect for channel in channels]
    return copying([detaching(collect, giver) for collect in collects] if values_change else collects)


def copying(collects: Sequence[ElementCall]) -> ElementCall:
    """Return what gives each record to several readers, a copy of the record each (``BroadcastingOutputCollector``)."""
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
    """Nobody reads it."""


class TaskOutput:
    """The output of an operator to all that read it, and its side outputs.

    Parameters
    ----------
    edges : sequence of Edge
        Of the main output.
    side_edges : sequence of (OutputTag, Edge)
    conversion : callable, optional
        From what the operator's function gives to a value of the declared type; of the main output.

    Attributes
    ----------
    collect : callable
        Takes a record of the main output; it may then be changed.
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

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Emit a record to a side output; nowhere if nobody reads it."""
        collect = self._sides.get(output_tag.tag_id)
        if collect is not None:
            collect(record)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark."""
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
