"""Status maintenance between chained operators, after Flink's ChainingOutput."""

import pytest
from equipment.operators import Forward, InputRecorder
from equipment.recorders import OutputRecorder

from flinkcore.common import MIN_TIMESTAMP, OutputTag, Watermark
from flinkcore.elements.tasks.task_output import ChainingOutput
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE


@pytest.fixture
def heard() -> InputRecorder:
    return InputRecorder()


def test_the_announced_status_is_active_at_first_and_not_repeated(heard: InputRecorder) -> None:
    output = ChainingOutput(heard)
    for status in (ACTIVE, IDLE, IDLE, ACTIVE, ACTIVE, IDLE):
        output.emit_watermark_status(status)
    assert heard.take() == [("status", "idle"), ("status", "active"), ("status", "idle")]


def test_watermarks_are_dropped_while_idle_and_not_made_up_for(heard: InputRecorder) -> None:
    output = ChainingOutput(heard)
    output.emit_watermark(Watermark(1))
    output.emit_watermark_status(IDLE)
    output.emit_watermark(Watermark(2))
    assert output.watermark_gauge.value == 1
    output.emit_watermark_status(ACTIVE)
    output.emit_watermark(Watermark(3))
    assert heard.take() == [
        ("watermark", 1),
        ("status", "idle"),
        ("status", "active"),
        ("watermark", 3),
    ]


def test_records_and_latency_markers_pass_while_idle_and_leave_the_status(heard: InputRecorder) -> None:
    output = ChainingOutput(heard)
    marker = LatencyMarker(5, "source", 0)
    output.emit_watermark_status(IDLE)
    output.collect(StreamRecord("a", 3))
    output.emit_latency_marker(marker)
    output.emit_watermark(Watermark(9))
    assert heard.take() == [
        ("status", "idle"),
        ("record", 3, "a"),
        ("latency", marker),
    ]


def test_a_watermark_that_goes_back_is_passed_as_it_is(heard: InputRecorder) -> None:
    output = ChainingOutput(heard)
    assert output.watermark_gauge.value == MIN_TIMESTAMP
    output.emit_watermark(Watermark(5))
    output.emit_watermark(Watermark(4))
    assert heard.take() == [("watermark", 5), ("watermark", 4)]
    assert output.watermark_gauge.value == 4


def test_the_main_output_leaves_side_outputs_aside(heard: InputRecorder) -> None:
    output = ChainingOutput(heard)
    output.collect_side(OutputTag("late"), StreamRecord("a"))
    assert heard.take() == []


def test_a_side_output_takes_its_own_records_and_all_watermarks(heard: InputRecorder) -> None:
    output = ChainingOutput(heard, OutputTag("late"))
    output.collect(StreamRecord("main"))
    output.collect_side(OutputTag("early"), StreamRecord("other"))
    output.collect_side(OutputTag("late"), StreamRecord("mine", 4))
    output.emit_watermark(Watermark(5))
    assert heard.take() == [
        ("record", 4, "mine"),
        ("watermark", 5),
    ]


def test_a_status_travels_to_the_end_of_a_chain() -> None:
    emitted = OutputRecorder()
    last = ChainingOutput(Forward(emitted))
    first = ChainingOutput(Forward(last))
    first.emit_watermark(Watermark(1))
    first.emit_watermark_status(IDLE)
    last.emit_watermark(Watermark(2))
    first.emit_watermark_status(ACTIVE)
    first.emit_watermark(Watermark(3))
    assert emitted.take() == [
        ("watermark", 1),
        ("status", "idle"),
        ("status", "active"),
        ("watermark", 3),
    ]
