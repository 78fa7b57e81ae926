"""TimestampsAndWatermarksOperator against the traces of Flink's."""

from typing import Any

from models.canonical import canonical
from models.golden_generators import golden_strategy

from flinkcore.common import OutputTag, Watermark
from flinkcore.errors import FlinkcoreError
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.runtime.operators import TimestampsAndWatermarksOperator
from flinkcore.runtime.processing_time import DrivenProcessingTimeService, ScheduledTimer
from flinkcore.runtime.processing_time.processing_time_service import ProcessingTimeCallback


class Recorder:
    """The operator's output."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.at = -1

    def add(self, kind: str, **fields: Any) -> None:
        self.entries.append({"at": self.at, "type": kind, **fields})

    def collect(self, record: StreamRecord[Any]) -> None:
        self.add("record", ts=record.timestamp, value=record.value)

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        raise AssertionError("no side output")

    def emit_watermark(self, watermark: Watermark) -> None:
        self.add("watermark", ts=watermark.timestamp)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        self.add("status", status=status.value)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        raise AssertionError("no latency markers")


class TracedProcessingTimeService(DrivenProcessingTimeService):
    def __init__(self, start_ms: int, recorder: Recorder) -> None:
        super().__init__(start_ms)
        self.recorder = recorder

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        self.recorder.add("physical", op="register", time=timestamp_ms)

        def traced(time_ms: int) -> None:
            self.recorder.add("physical", op="fire", time=time_ms)
            callback(time_ms)

        return super().register_timer(timestamp_ms, traced)


def run(item: dict[str, Any], recorder: Recorder) -> None:
    clock = TracedProcessingTimeService(item["now"], recorder)
    operator = TimestampsAndWatermarksOperator(
        golden_strategy(item["generator"], item["assigner"]),
        recorder,
        clock,
        item["interval"],
        item["emit_progressive"],
    )
    operator.open()
    for recorder.at, (verb, *arguments) in enumerate(item["events"]):
        if verb == "r":
            timestamp, value = arguments
            operator.process_element(StreamRecord(value, timestamp))
        elif verb == "w":
            operator.process_watermark(Watermark(arguments[0]))
        elif verb == "s":
            operator.process_watermark_status(WatermarkStatus(arguments[0]))
        elif verb == "pt":
            clock.advance_to(arguments[0])
        else:
            assert verb == "finish"
            operator.finish()


def test_every_event_puts_out_what_flinks_operator_does(timestamps_operator_scenario: dict[str, Any]) -> None:
    item = timestamps_operator_scenario["input"]
    recorder = Recorder()
    try:
        run(item, recorder)
    except FlinkcoreError:
        recorder.add("error")
    expected = timestamps_operator_scenario["output"]
    assert canonical("timestamps_operator", item, {"entries": recorder.entries}) == canonical(
        "timestamps_operator", item, expected
    )
