"""What operators do with watermarks, statuses and latency markers, after Flink's AbstractStreamOperatorTest."""

import pytest
from equipment.operators import Forward, Union
from equipment.recorders import OutputRecorder

from flinkcore.common import MAX_TIMESTAMP, Watermark
from flinkcore.operators.metrics.latency import Granularity, LatencyStats
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE


@pytest.fixture
def heard() -> OutputRecorder:
    return OutputRecorder()


@pytest.fixture
def union(heard: OutputRecorder) -> Union:
    return Union(heard)


def test_an_operator_passes_everything_on(heard: OutputRecorder) -> None:
    operator = Forward(heard)
    marker = LatencyMarker(5, "source", 0)
    operator.process_element(StreamRecord("a", 3))
    operator.process_watermark(Watermark(2))
    operator.process_watermark(Watermark(2))
    operator.process_watermark_status(IDLE)
    operator.process_latency_marker(marker)
    assert heard.take() == [
        ("record", 3, "a"),
        ("watermark", 2),
        ("watermark", 2),
        ("status", "idle"),
        ("latency", marker),
    ]


def test_a_latency_marker_is_measured_and_passed_on(heard: OutputRecorder) -> None:
    clock = DrivenProcessingTimeService(108)
    stats = LatencyStats(TaskMetricGroup(), clock, 10, "map", 0, Granularity.SINGLE)
    operator = Forward(heard)
    operator.latency_stats = stats
    operator.process_latency_marker(LatencyMarker(100, "source", 0))
    (histogram,) = stats.histograms.values()
    assert histogram.statistics.values == (8,)
    assert len(heard.take()) == 1


def test_the_watermark_of_two_inputs_is_the_lesser(union: Union, heard: OutputRecorder) -> None:
    union.process_watermark1(Watermark(10))
    assert heard.take() == []
    union.process_watermark2(Watermark(7))
    assert heard.take() == [("watermark", 7)]
    union.process_watermark2(Watermark(7))
    union.process_watermark2(Watermark(3))
    assert heard.take() == []
    union.process_watermark2(Watermark(20))
    assert heard.take() == [("watermark", 10)]
    union.process_watermark1(Watermark(MAX_TIMESTAMP))
    assert heard.take() == [("watermark", 20)]
    union.process_watermark2(Watermark(MAX_TIMESTAMP))
    assert heard.take() == [("watermark", MAX_TIMESTAMP)]


def test_an_idle_input_does_not_hold_the_other_back(union: Union, heard: OutputRecorder) -> None:
    union.process_watermark1(Watermark(10))
    union.process_watermark_status2(IDLE)
    assert heard.take() == [("watermark", 10)]
    union.process_watermark1(Watermark(15))
    assert heard.take() == [("watermark", 15)]


def test_the_operator_turns_idle_with_its_last_input_and_flushes_the_greater_watermark_first(
    union: Union, heard: OutputRecorder
) -> None:
    union.process_watermark1(Watermark(10))
    union.process_watermark2(Watermark(30))
    assert heard.take() == [("watermark", 10)]
    union.process_watermark_status2(IDLE)
    assert heard.take() == []
    union.process_watermark_status1(IDLE)
    assert heard.take() == [("watermark", 30), ("status", "idle")]
    union.process_watermark_status1(IDLE)
    assert heard.take() == []
    union.process_watermark_status2(ACTIVE)
    assert heard.take() == [("status", "active")]
    union.process_watermark_status1(ACTIVE)
    assert heard.take() == []


def test_an_input_that_returns_behind_the_combined_watermark_does_not_take_it_back(
    union: Union, heard: OutputRecorder
) -> None:
    union.process_watermark_status2(IDLE)
    union.process_watermark1(Watermark(10))
    union.process_watermark_status2(ACTIVE)
    union.process_watermark2(Watermark(5))
    assert heard.take() == [("watermark", 10)]
    union.process_watermark1(Watermark(20))
    assert heard.take() == []
    union.process_watermark2(Watermark(12))
    assert heard.take() == [("watermark", 12)]
