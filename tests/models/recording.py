"""What a test hears: the elements that are emitted, and what a processing-time service is asked, as golden entries."""

from typing import Any

from flinkcore.common import OutputTag, Watermark
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.runtime.processing_time import (
    DrivenProcessingTimeService,
    ProcessingTimeCallback,
    ScheduledTimer,
)

Entry = dict[str, Any]


class Recorder:
    """Entries in the order in which they happen; `at` is the event being handled."""

    def __init__(self) -> None:
        self.at = -1
        self.entries: list[Entry] = []

    def add(self, kind: str, **fields: Any) -> None:
        self.entries.append({"at": self.at, "type": kind, **fields})

    def taken(self) -> list[Entry]:
        """Return the entries since the last call, without `at`."""
        taken = [{name: value for name, value in entry.items() if name != "at"} for entry in self.entries]
        self.entries.clear()
        return taken


class RecordingOutput:
    """An Output whose elements become entries."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self, record: StreamRecord[Any]) -> None:
        self._recorder.add("record", ts=record.timestamp, value=record.value)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        self._recorder.add("side", ts=record.timestamp, value=record.value, tag=output_tag.tag_id)

    def emit_watermark(self, watermark: Watermark) -> None:
        self._recorder.add("watermark", ts=watermark.timestamp)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        self._recorder.add("status", status=status.value)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self._recorder.add("latency", marker=latency_marker)


class _RecordedTimer:
    def __init__(self, timer: ScheduledTimer, recorder: Recorder, timestamp_ms: int) -> None:
        self._timer = timer
        self._recorder = recorder
        self._timestamp_ms = timestamp_ms

    def cancel(self) -> bool:
        cancelled = self._timer.cancel()
        if cancelled:
            self._recorder.add("physical", op="cancel", time=self._timestamp_ms)
        return cancelled

    @property
    def is_cancelled(self) -> bool:
        return self._timer.is_cancelled

    @property
    def is_done(self) -> bool:
        return self._timer.is_done


class RecordingProcessingTimeService(DrivenProcessingTimeService):
    """A driven clock that also records who registers, cancels and fires one-shot timers."""

    def __init__(self, recorder: Recorder, start_ms: int) -> None:
        super().__init__(start_ms)
        self._recorder = recorder

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        def fire(timestamp: int) -> None:
            self._recorder.add("physical", op="fire", time=timestamp)
            callback(timestamp)

        self._recorder.add("physical", op="register", time=timestamp_ms)
        return _RecordedTimer(super().register_timer(timestamp_ms, fire), self._recorder, timestamp_ms)
