"""Latencies of markers by source and subtask, after Flink's LatencyStatsTest, and who emits the markers."""

import pytest
from equipment.recorders import OutputRecorder

from flinkcore.errors import ConfigurationError
from flinkcore.operators.metrics.latency import Granularity, LatencyMarkerEmitter, LatencyScope, LatencyStats
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.records.stream_elements import LatencyMarker
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

MARKERS = [
    LatencyMarker(100, "clicks", 0),
    LatencyMarker(90, "clicks", 0),
    LatencyMarker(80, "clicks", 1),
    LatencyMarker(70, "views", 2),
    LatencyMarker(60, "views", 2),
]


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        (Granularity.SINGLE, {(None, None): (0, 10, 20, 30, 40)}),
        (Granularity.OPERATOR, {("clicks", None): (0, 10, 20), ("views", None): (30, 40)}),
        (
            Granularity.SUBTASK,
            {("clicks", 0): (0, 10), ("clicks", 1): (20,), ("views", 2): (30, 40)},
        ),
    ],
)
def test_markers_share_histograms_by_granularity(
    granularity: Granularity, expected: dict[tuple[str | None, int | None], tuple[int, ...]]
) -> None:
    stats = LatencyStats(TaskMetricGroup(), DrivenProcessingTimeService(100), 128, "sink", 3, granularity)
    for marker in MARKERS:
        stats.report_latency(marker)
    assert {scope: histogram.statistics.values for scope, histogram in stats.histograms.items()} == {
        LatencyScope(source, subtask, "sink", 3): values for (source, subtask), values in expected.items()
    }


def test_the_history_slides_and_all_markers_are_counted() -> None:
    clock = DrivenProcessingTimeService(100)
    stats = LatencyStats(TaskMetricGroup(), clock, 2, "sink", 0, Granularity.SINGLE)
    for marker in MARKERS[:3]:
        stats.report_latency(marker)
    (histogram,) = stats.histograms.values()
    assert histogram.count == 3
    assert histogram.statistics.values == (10, 20)


def test_a_marker_of_a_source_whose_clock_is_ahead_counts_as_negative() -> None:
    stats = LatencyStats(
        TaskMetricGroup(), DrivenProcessingTimeService(100), 2, "sink", 0, Granularity.SINGLE
    )
    stats.report_latency(LatencyMarker(103, "clicks", 0))
    (histogram,) = stats.histograms.values()
    assert histogram.statistics.min == -3


def test_granularities_are_named_as_in_flinks_setting() -> None:
    assert [Granularity(name) for name in ("single", "operator", "subtask")] == list(Granularity)


def test_a_history_without_room_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one, not 0"):
        LatencyStats(TaskMetricGroup(), DrivenProcessingTimeService(), 0, "sink", 0, Granularity.SINGLE)


def test_a_source_emits_a_marker_at_once_and_then_at_every_interval_until_closed() -> None:
    heard = OutputRecorder()
    clock = DrivenProcessingTimeService(1000)
    emitter = LatencyMarkerEmitter(clock, heard, 50, "clicks", 1)
    for time in (1000, 1049, 1060, 1109, 1110):
        clock.advance_to(time)
    emitter.close()
    clock.advance_to(2000)
    assert heard.take() == [("latency", LatencyMarker(time, "clicks", 1)) for time in (1000, 1060, 1110)]


@pytest.mark.parametrize("interval", [0, -1])
def test_an_interval_of_markers_that_is_not_above_zero_is_refused(interval: int) -> None:
    with pytest.raises(ConfigurationError, match="interval of latency markers"):
        LatencyMarkerEmitter(DrivenProcessingTimeService(), OutputRecorder(), interval, "a", 0)
