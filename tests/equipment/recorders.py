"""Outputs that write down what they get, as golden traces do."""

from typing import Any

from flinkcore.common import OutputTag, Watermark
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus


class Recorder:
    """Entries, each with the index `at` of the event that is being handled."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.at = -1

    def add(self, kind: str, **fields: Any) -> None:
        self.entries.append({"at": self.at, "type": kind, **fields})

    def take(self) -> list[tuple[Any, ...]]:
        """Return what came since the last call, without `at`: the kind, then the fields."""
        taken = [tuple(entry.values())[1:] for entry in self.entries]
        self.entries.clear()
        return taken


class WatermarkOutputRecorder(Recorder):
    def emit_watermark(self, watermark: Watermark) -> None:
        self.add("watermark", ts=watermark.timestamp)

    def mark_idle(self) -> None:
        self.add("status", status="idle")

    def mark_active(self) -> None:
        self.add("status", status="active")


class OutputRecorder(Recorder):
    def collect(self, record: StreamRecord[Any]) -> None:
        self.add("record", ts=record.timestamp, value=record.value)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        self.add("side", ts=record.timestamp, value=record.value, tag=output_tag.tag_id)

    def emit_watermark(self, watermark: Watermark) -> None:
        self.add("watermark", ts=watermark.timestamp)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        self.add("status", status=status.value)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self.add("latency", marker=latency_marker)


class TimedRecorder(OutputRecorder):
    """Names the timer that fires in every entry that it causes."""

    timer: list[Any] | None = None

    def add(self, kind: str, **fields: Any) -> None:
        super().add(kind, **({} if self.timer is None else {"timer": self.timer}), **fields)
