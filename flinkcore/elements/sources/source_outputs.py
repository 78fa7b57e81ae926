"""The outputs of sources: records get their timestamps, and generators see them."""

from collections.abc import Callable
from typing import Any, NoReturn

from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.timestamp_assigner import NO_TIMESTAMP, TimestampAssigner, as_timestamp
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import WatermarkGenerator, WatermarkOutput
from flinkcore.errors import DataError, LifecycleError
from flinkcore.operators.metrics.gauges import WatermarkGauge
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus

Emit = Callable[[Any, int], None]
"""Emits a record, given with the timestamp of the source in ms since the epoch; -2**63 if it has none."""


class SourceOutputWithWatermarks:
    """Emits records with timestamps, each before the watermark that it causes.

    Parameters
    ----------
    record_output : Output
    on_event_output : WatermarkOutput
        Receives the watermarks that the generator emits at an event, and those of the source itself.
    periodic_output : WatermarkOutput
        Receives the watermarks that the generator emits periodically.
    timestamp_assigner : TimestampAssigner
        Assigner that gets the source's timestamp, or -2**63 without one.
    watermark_generator : WatermarkGenerator
    split_id : str or None
        Named in errors; None for the main output.
    conversion : callable, optional
        Conversion of each record to its declared type, before its timestamp is assigned.

    Attributes
    ----------
    conversion : callable or None
    emit : callable
        Emits a record of the declared type, given with the timestamp of the source in ms since the epoch, then passes
        it to the generator.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.SourceOutputWithWatermarks``.
    """

    def __init__(
        self,
        record_output: Output,
        on_event_output: WatermarkOutput,
        periodic_output: WatermarkOutput,
        timestamp_assigner: TimestampAssigner,
        watermark_generator: WatermarkGenerator[Any],
        split_id: str | None = None,
        conversion: Conversion | None = None,
    ) -> None:
        self._record_output = record_output
        self._on_event_output = on_event_output
        self._periodic_output = periodic_output
        self._timestamp_assigner = timestamp_assigner
        self._watermark_generator = watermark_generator
        self._split_id = split_id
        self.conversion = conversion
        self.emit = self._emitting()

    def collect(self, record: Any, timestamp_ms: int | None = None) -> None:
        """Emit a record with its timestamp, then pass it to the generator.

        Parameters
        ----------
        record : object
        timestamp_ms : int or None
            The source's timestamp in ms since the epoch, or None.

        Raises
        ------
        DataError
            If the source or the assigner gives an invalid timestamp.
        UserCodeError
            If the assigner or the generator raises.
        LifecycleError
            If the output was released, or the source has ended.
        """
        given = source_timestamp(timestamp_ms, record, self._split_id)
        self.emit(record if self.conversion is None else self.conversion(record), given)

    def _emitting(self) -> Emit:
        extract_timestamp = self._timestamp_assigner.extract_timestamp
        on_event, on_event_output = self._watermark_generator.on_event, self._on_event_output
        record_output, emitted = self._record_output, StreamRecord[Any](None)

        def emit(value: Any, given: int) -> None:
            timestamp = extract_timestamp(value, given)
            emitted.value = value
            emitted.timestamp = timestamp
            record_output.collect(emitted)
            on_event(value, timestamp, on_event_output)

        return emit

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark of the source itself."""
        self._on_event_output.emit_watermark(watermark)

    def mark_idle(self) -> None:
        """Mark the output idle."""
        self._on_event_output.mark_idle()

    def mark_active(self) -> None:
        """Mark the output active."""
        self._on_event_output.mark_active()

    def emit_periodic_watermark(self) -> None:
        """Let the generator emit."""
        self._watermark_generator.on_periodic_emit(self._periodic_output)

    def snapshot_generator(self) -> Any:
        """Return what its generator of watermarks holds."""
        return self._watermark_generator.snapshot_state()

    def restore_generator(self, state: Any) -> None:
        """Let its generator of watermarks go on from what another one held."""
        self._watermark_generator.restore_state(state)

    def release(self) -> None:
        """Refuse everything from now on, as the split has ended."""
        ended = EndedOutput(f"the output of the split {self._split_id!r} was released")
        self._record_output = self._on_event_output = self._periodic_output = ended
        self.emit = self._emitting()


def source_timestamp(timestamp_ms: object, record: object, split_id: str | None) -> int:
    """Return the timestamp of a source as an int, in ms since the epoch; -2**63 for None.

    Raises
    ------
    DataError
        If it is neither None nor an integer of 64 bits.
    """
    if timestamp_ms is None:
        return NO_TIMESTAMP
    if type(timestamp_ms) is int and MIN_TIMESTAMP <= timestamp_ms <= MAX_TIMESTAMP:
        return timestamp_ms
    timestamp = as_timestamp(timestamp_ms)
    if timestamp is None:
        where = "the source" if split_id is None else f"the split {split_id!r}"
        raise DataError(
            f"{where} gave the timestamp {timestamp_ms!r} for the element {record!r}: an event time is an int of 64 "
            "bits, in milliseconds since the epoch, or None"
        )
    return timestamp


class EndedOutput:
    """Refuses everything with a LifecycleError; an Output and a WatermarkOutput.

    Parameters
    ----------
    reason : str
        The beginning of the message.

    Notes
    -----
    Stands where Flink has ``FinishedDataOutput``, which logs a warning.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def collect(self, record: StreamRecord[Any]) -> None:
        self._refuse(f"the record {record.value!r}")

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        self._refuse(f"the record {record.value!r}")

    def emit_watermark(self, watermark: Watermark) -> None:
        self._refuse(f"the watermark {dated(watermark.timestamp)}")

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        self._refuse(f"the status {status.value}")

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self._refuse("a latency marker")

    def mark_idle(self) -> None:
        self._refuse("its idleness")

    def mark_active(self) -> None:
        self._refuse("its activity")

    def _refuse(self, what: str) -> NoReturn:
        raise LifecycleError(f"{self._reason}: the source cannot emit {what} any more")


class SourceDataOutput:
    """Forwards elements until the source ends, and then refuses them.

    Attributes
    ----------
    collect : callable
        Emits a record.
    watermark_gauge : WatermarkGauge
        The last watermark that was emitted.

    Notes
    -----
    Flink's ``SourceOperatorStreamTask.AsyncDataOutputToOutput``. Deliberate difference: at the end of the input, an
    idle source is marked active before the last watermark. In Flink it is not, and a chained operator drops the
    watermark of an idle input, so that not everything fires.
    """

    def __init__(self, output: Output) -> None:
        self._output: Output = output
        self.collect: Callable[[StreamRecord[Any]], None] = output.collect
        self._is_idle = False
        self.watermark_gauge = WatermarkGauge()

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        self._output.collect_side(output_tag, record)

    def emit_watermark(self, watermark: Watermark) -> None:
        self._output.emit_watermark(watermark)
        self.watermark_gauge.set_current_watermark(watermark.timestamp)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        self._output.emit_watermark_status(status)
        self._is_idle = status is WatermarkStatus.IDLE

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self._output.emit_latency_marker(latency_marker)

    def end(self) -> None:
        """Emit the last watermark, 2**63 - 1, and refuse everything after it."""
        if self._is_idle:
            self.emit_watermark_status(WatermarkStatus.ACTIVE)
        self.emit_watermark(Watermark.MAX_WATERMARK)
        self.refuse("the source has come to its end")

    def refuse(self, reason: str) -> None:
        """Refuse everything from now on, for a reason that begins the message."""
        self._output = EndedOutput(reason)
        self.collect = self._output.collect
