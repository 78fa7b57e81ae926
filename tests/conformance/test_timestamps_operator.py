"""TimestampsAndWatermarksOperator, and jobs with it, against the traces of Flink's."""

from typing import Any

import pytest
from models.canonical import canonical
from models.golden_generators import golden_argument, golden_strategy
from models.recorders import OutputRecorder
from models.source_jobs import ScriptedSource, expected_of_job, job_environment, recorded_of_job
from models.traced_processing_time import TracedProcessingTimeService

from flinkcore.common import Types, Watermark
from flinkcore.errors import FlinkcoreError
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.timestamps_and_watermarks_operator import TimestampsAndWatermarksOperator


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


def test_a_job_assigns_timestamps_and_watermarks_as_flink_does(
    timestamps_jobs_scenario: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    item = timestamps_jobs_scenario["input"]
    env = job_environment(item)
    env.get_config().set_auto_watermark_interval(item["interval"])
    source = ScriptedSource(item["events"][:-2], bounded=not item["emit_progressive"])
    # The last two events are the end of the job.
    given = golden_argument(item["generator"], item["assigner"])
    stream = env.add_source(source, type_info=Types.LONG()).assign_timestamps_and_watermarks(given)
    assert recorded_of_job(lambda: stream, monkeypatch) == expected_of_job(timestamps_jobs_scenario)
