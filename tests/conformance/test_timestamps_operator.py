"""TimestampsAndWatermarksOperator against the traces of Flink's."""

from typing import Any

from models.canonical import canonical
from models.golden_generators import golden_strategy
from models.recorders import OutputRecorder
from models.traced_processing_time import TracedProcessingTimeService

from flinkcore.common import Watermark
from flinkcore.errors import FlinkcoreError
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.operators import TimestampsAndWatermarksOperator


def run(item: dict[str, Any], recorder: OutputRecorder) -> None:
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
    recorder = OutputRecorder()
    try:
        run(item, recorder)
    except FlinkcoreError:
        recorder.add("error")
    expected = timestamps_operator_scenario["output"]
    assert canonical("timestamps_operator", item, {"entries": recorder.entries}) == canonical(
        "timestamps_operator", item, expected
    )
