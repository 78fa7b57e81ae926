"""Source contexts, and jobs with source functions, against the traces of Flink 1.20's StreamSourceContexts."""

from functools import partial
from threading import RLock
from typing import Any

import pytest
from equipment.canonical import canonical
from equipment.recorders import OutputRecorder
from equipment.traced_processing_time import TracedProcessingTimeService
from jobs.source_jobs import ScriptedSource, expected_of_job, job_environment, recorded_of_job

from flinkcore.common import Duration, Types, Watermark
from flinkcore.datastream import (
    TimeCharacteristic,
)
from flinkcore.elements.sources.source_contexts import get_source_context
from flinkcore.errors import FlinkcoreError

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


def test_a_job_emits_what_its_source_function_does_in_flink(
    source_jobs_scenario: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    item = source_jobs_scenario["input"]
    env = job_environment(item)
    env.set_stream_time_characteristic(CHARACTERISTICS[item["mode"]])
    env.get_config().set_auto_watermark_interval(item["watermark_interval"])
    timeout = None if item["idle_timeout"] == -1 else Duration.of_millis(item["idle_timeout"])
    source = ScriptedSource(item["events"], bounded=not item["emit_progressive"])
    stream = partial(env.add_source, source, type_info=Types.INT(), idle_timeout=timeout)
    assert recorded_of_job(stream, monkeypatch) == expected_of_job(source_jobs_scenario)
