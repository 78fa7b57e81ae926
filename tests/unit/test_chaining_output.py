"""Status maintenance between chained operators, after Flink's ChainingOutput."""

import pytest
from models.recording import Recorder, RecordingOutput
from models.recording_operators import Forward, RecordingInput

from flinkcore.common import MIN_TIMESTAMP, OutputTag, Watermark
from flinkcore.runtime.chaining_output import ChainingOutput
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE


@pytest.fixture
def heard() -> Recorder:
    return Recorder()


def test_the_announced_status_is_active_at_first_and_not_repeated(heard: Recorder) -> None:
    output = ChainingOutput(RecordingInput(heard))
    for status in (ACTIVE, IDLE, IDLE, ACTIVE, ACTIVE, IDLE):
        output.emit_watermark_status(status)
    assert [entry["status"] for entry in heard.taken()] == ["idle", "active", "idle"]


def test_watermarks_are_dropped_while_idle_and_not_made_up_for(heard: Recorder) -> None:
    output = ChainingOutput(RecordingInput(heard))
    output.emit_watermark(Watermark(1))
    output.emit_watermark_status(IDLE)
    output.emit_watermark(Watermark(2))
    assert output.watermark_gauge.value == 1
    output.emit_watermark_status(ACTIVE)
    output.emit_watermark(Watermark(3))
    assert heard.taken() == [
        {"type": "watermark", "ts": 1},
        {"type": "status", "status": "idle"},
        {"type": "status", "status": "active"},
        {"type": "watermark", "ts": 3},
    ]


def test_records_and_latency_markers_pass_while_idle_and_leave_the_status(heard: Recorder) -> None:
    output = ChainingOutput(RecordingInput(heard))
    marker = LatencyMarker(5, "source", 0)
    output.emit_watermark_status(IDLE)
    output.collect(StreamRecord("a", 3))
    output.emit_latency_marker(marker)
    output.emit_watermark(Watermark(9))
    assert heard.taken() == [
        {"type": "status", "status": "idle"},
        {"type": "record", "ts": 3, "value": "a"},
        {"type": "latency", "marker": marker},
    ]


def test_a_watermark_that_goes_back_is_passed_as_it_is(heard: Recorder) -> None:
    output = ChainingOutput(RecordingInput(heard))
    assert output.watermark_gauge.value == MIN_TIMESTAMP
    output.emit_watermark(Watermark(5))
    output.emit_watermark(Watermark(4))
    assert [entry["ts"] for entry in heard.taken()] == [5, 4]
    assert output.watermark_gauge.value == 4


def test_the_main_output_leaves_side_outputs_aside(heard: Recorder) -> None:
    output = ChainingOutput(RecordingInput(heard))
    output.collect_side(OutputTag("late"), StreamRecord("a"))
    assert heard.taken() == []


def test_a_side_output_takes_its_own_records_and_all_watermarks(heard: Recorder) -> None:
    output = ChainingOutput(RecordingInput(heard), OutputTag("late"))
    output.collect(StreamRecord("main"))
    output.collect_side(OutputTag("early"), StreamRecord("other"))
    output.collect_side(OutputTag("late"), StreamRecord("mine", 4))
    output.emit_watermark(Watermark(5))
    assert heard.taken() == [
        {"type": "record", "ts": 4, "value": "mine"},
        {"type": "watermark", "ts": 5},
    ]


def test_a_status_travels_to_the_end_of_a_chain(heard: Recorder) -> None:
    last = ChainingOutput(Forward(RecordingOutput(heard)))
    first = ChainingOutput(Forward(last))
    first.emit_watermark(Watermark(1))
    first.emit_watermark_status(IDLE)
    last.emit_watermark(Watermark(2))
    first.emit_watermark_status(ACTIVE)
    first.emit_watermark(Watermark(3))
    assert heard.taken() == [
        {"type": "watermark", "ts": 1},
        {"type": "status", "status": "idle"},
        {"type": "status", "status": "active"},
        {"type": "watermark", "ts": 3},
    ]
