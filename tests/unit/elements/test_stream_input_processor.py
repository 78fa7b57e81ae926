"""Dispatch of the elements of several channels, after Flink's OneInputStreamTaskTest and TwoInputStreamTaskTest."""

import pytest
from equipment.operators import InputRecorder, Union
from equipment.recorders import OutputRecorder

from flinkcore.common import MIN_TIMESTAMP, Watermark
from flinkcore.elements.tasks.stream_input_processor import StreamOneInputProcessor
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import OneOfTwoInputs

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE


@pytest.fixture
def heard() -> InputRecorder:
    return InputRecorder()


@pytest.fixture
def emitted() -> OutputRecorder:
    return OutputRecorder()


def of_two_inputs(
    emitted: OutputRecorder, channels1: int, channels2: int
) -> tuple[StreamOneInputProcessor, StreamOneInputProcessor]:
    operator = Union(emitted)
    return (
        StreamOneInputProcessor(OneOfTwoInputs(operator, 1), channels1),
        StreamOneInputProcessor(OneOfTwoInputs(operator, 2), channels2),
    )


def test_records_and_latency_markers_go_to_the_operator_from_any_channel(heard: InputRecorder) -> None:
    processor = StreamOneInputProcessor(heard, 2)
    marker = LatencyMarker(5, "source", 0)
    processor.process_element(StreamRecord("a", 7), 1)
    processor.process_element(StreamRecord("b"), 0)
    processor.process_element(marker, 1)
    assert heard.take() == [
        ("record", 7, "a"),
        ("record", None, "b"),
        ("latency", marker),
    ]


def test_watermarks_and_statuses_go_through_the_valve(heard: InputRecorder) -> None:
    processor = StreamOneInputProcessor(heard, 2)
    processor.process_element(Watermark(5), 0)
    assert heard.take() == []
    processor.process_element(Watermark(3), 1)
    assert heard.take() == [("watermark", 3)]
    processor.process_element(IDLE, 1)
    assert heard.take() == [("watermark", 5)]
    processor.process_element(Watermark(9), 1)
    assert heard.take() == []
    processor.process_element(IDLE, 0)
    assert heard.take() == [("status", "idle")]
    processor.process_element(ACTIVE, 1)
    assert heard.take() == [("status", "active")]


def test_the_task_shows_its_current_watermark(heard: InputRecorder) -> None:
    processor = StreamOneInputProcessor(heard, 2)
    assert processor.watermark_gauge.value == MIN_TIMESTAMP
    processor.process_element(Watermark(5), 0)
    assert processor.watermark_gauge.value == MIN_TIMESTAMP
    processor.process_element(Watermark(3), 1)
    assert processor.watermark_gauge.value == 3


@pytest.mark.parametrize(
    ("element", "name"), [("a bare value", "str"), (None, "NoneType"), (StreamRecord, "type"), (7, "int")]
)
def test_an_unknown_element_is_refused_by_its_type_and_channel(
    heard: InputRecorder, element: object, name: str
) -> None:
    processor = StreamOneInputProcessor(heard, 4)
    with pytest.raises(
        DataError, match=f"channel 3 delivered an element of type {name}; an input takes Stream"
    ):
        processor.process_element(element, 3)  # type: ignore[arg-type]
    assert heard.take() == []


@pytest.mark.parametrize("element", [Watermark(1), IDLE])
@pytest.mark.parametrize("channel", [-1, 2])
def test_a_channel_that_is_not_there_is_refused(
    heard: InputRecorder, element: Watermark | WatermarkStatus, channel: int
) -> None:
    processor = StreamOneInputProcessor(heard, 2)
    with pytest.raises(DataError, match="channel"):
        processor.process_element(element, channel)


def test_an_input_without_channels_is_refused(heard: InputRecorder) -> None:
    with pytest.raises(ConfigurationError):
        StreamOneInputProcessor(heard, 0)


def test_each_of_two_inputs_has_its_own_valve(emitted: OutputRecorder) -> None:
    first, second = of_two_inputs(emitted, 2, 1)
    first.process_element(Watermark(5), 0)
    second.process_element(Watermark(4), 0)
    assert emitted.take() == []
    first.process_element(Watermark(7), 1)
    assert emitted.take() == [("watermark", 4)]
    second.process_element(Watermark(6), 0)
    assert emitted.take() == [("watermark", 5)]


def test_elements_of_two_inputs_come_to_the_operators_own_methods(emitted: OutputRecorder) -> None:
    first, second = of_two_inputs(emitted, 1, 1)
    marker = LatencyMarker(5, "source", 0)
    first.process_element(StreamRecord("a", 1), 0)
    second.process_element(StreamRecord("a", 1), 0)
    first.process_element(marker, 0)
    second.process_element(marker, 0)
    assert emitted.take() == [
        ("record", 1, (1, "a")),
        ("record", 1, (2, "a")),
        ("latency", marker),
        ("latency", marker),
    ]


def test_each_of_two_inputs_shows_its_own_watermark(emitted: OutputRecorder) -> None:
    first, second = of_two_inputs(emitted, 1, 1)
    gauges = first.watermark_gauge, second.watermark_gauge
    first.process_element(Watermark(5), 0)
    assert [gauge.value for gauge in gauges] == [5, MIN_TIMESTAMP]
    second.process_element(Watermark(9), 0)
    assert [gauge.value for gauge in gauges] == [5, 9]


@pytest.mark.parametrize("number", [0, 1])
def test_an_unknown_element_of_either_input_is_refused(emitted: OutputRecorder, number: int) -> None:
    processor = of_two_inputs(emitted, 1, 1)[number]
    with pytest.raises(DataError, match="channel 0 delivered an element of type dict"):
        processor.process_element({}, 0)  # type: ignore[arg-type]
