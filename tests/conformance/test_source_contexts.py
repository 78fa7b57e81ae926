"""Source contexts against the traces of Flink 1.20's StreamSourceContexts."""

from threading import RLock
from typing import Any

from models.canonical import canonical
from models.recorders import OutputRecorder
from models.traced_processing_time import TracedProcessingTimeService

from flinkcore.common import Watermark
from flinkcore.datastream import TimeCharacteristic
from flinkcore.errors import FlinkcoreError
from flinkcore.runtime.sources.source_contexts import get_source_context

CHARACTERISTICS = {
    "event": TimeCharacteristic.EventTime,
    "ingestion": TimeCharacteristic.IngestionTime,
    "processing": TimeCharacteristic.ProcessingTime,
}


def drive(item: dict[str, Any], recorder: OutputRecorder) -> None:
    clock = TracedProcessingTimeService(item["now"], recorder)
    context = get_source_context(
        CHARACTERISTICS[item["mode"]],
        clock,
        RLock(),
        recorder,
        watermark_interval_ms=item["watermark_interval"],
        idle_timeout_ms=None if item["idle_timeout"] == -1 else item["idle_timeout"],
        emit_progressive_watermarks=item["emit_progressive"],
    )
    for recorder.at, (verb, *arguments) in enumerate(item["events"]):
        if verb == "collect":
            context.collect(*arguments)
        elif verb == "collect_ts":
            context.collect_with_timestamp(*arguments)
        elif verb == "wm":
            context.emit_watermark(Watermark(*arguments))
        elif verb == "idle":
            context.mark_as_temporarily_idle()
        elif verb == "pt":
            clock.advance_to(*arguments)
        else:
            assert verb == "close"
            context.close()


def test_a_source_emits_and_schedules_what_it_does_in_flink(source_contexts_scenario: dict[str, Any]) -> None:
    item = source_contexts_scenario["input"]
    recorder = OutputRecorder()
    try:
        drive(item, recorder)
    except FlinkcoreError:
        recorder.add("error")
    output = {"entries": recorder.entries}
    assert canonical("source_contexts", item, output) == canonical(
        "source_contexts", item, source_contexts_scenario["output"]
    )
