"""Source contexts, and jobs with source functions, against the traces of Flink 1.20's StreamSourceContexts."""

from threading import RLock
from typing import Any

import pytest
from models.canonical import canonical
from models.recorders import OutputRecorder
from models.source_jobs import ScriptedSource, times_of
from models.traced_processing_time import TracedProcessingTimeService

from flinkcore.common import MAX_TIMESTAMP, Duration, Types, Watermark
from flinkcore.datastream import (
    ProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkcore.errors import FlinkcoreError
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.operators import OneInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
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


class Unused(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        raise AssertionError("the operator records elements itself")


class RecordingOperator(OneInputStreamOperator):
    """Stands behind the source of a job, and records what comes, and when."""

    heard: list[tuple[Any, ...]]

    def __init__(self, function: ProcessFunction, output: Output, clock: ProcessingTimeService) -> None:
        super().__init__(output)
        self._clock = clock

    def process_element(self, record: StreamRecord[Any]) -> None:
        self.hear("record", record.timestamp, record.value)

    def process_watermark(self, watermark: Watermark) -> None:
        self.hear("watermark", watermark.timestamp)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self.hear("status", status.value)

    def hear(self, *entry: Any) -> None:
        self.heard.append((self._clock.current_processing_time(), *entry))


def test_a_job_emits_what_its_source_function_does_in_flink(
    source_jobs_scenario: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    item, entries = source_jobs_scenario["input"], source_jobs_scenario["output"]["entries"]
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_stream_time_characteristic(CHARACTERISTICS[item["mode"]])
    env.get_config().set_auto_watermark_interval(item["watermark_interval"])
    if not item["emit_progressive"]:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = ScriptedSource(item["events"], bounded=not item["emit_progressive"])
    heard: list[tuple[Any, ...]] = []
    RecordingOperator.heard = heard
    monkeypatch.setattr("flinkcore.runtime.tasks.operator_makers.ProcessOperator", RecordingOperator)
    timeout = None if item["idle_timeout"] == -1 else Duration.of_millis(item["idle_timeout"])
    try:
        stream = env.add_source(source, type_info=Types.INT(), idle_timeout=timeout)
        assert list(stream.process(Unused()).execute_and_collect()) == []
        failed = False
    except FlinkcoreError:
        failed = True
    times = [*times_of(item["events"]), 0]
    expected = [
        (times[entry["at"]], entry["type"], *([entry["ts"]] if "ts" in entry else []), *_rest(entry))
        for entry in entries
        if entry["type"] in ("record", "watermark", "status")
    ]
    assert failed == any(entry["type"] == "error" for entry in entries)
    if not failed:
        statuses = [status for _, kind, status, *_ in expected if kind == "status"]
        if statuses[-1:] == ["idle"]:
            expected.append((times[-2], "status", "active"))
        expected.append((times[-2], "watermark", MAX_TIMESTAMP))
    assert heard == expected


def _rest(entry: dict[str, Any]) -> list[Any]:
    return [entry[field] for field in ("value", "status") if field in entry]
