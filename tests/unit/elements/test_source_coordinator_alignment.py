"""What groups of sources announce, after Flink's SourceCoordinatorAlignmentTest."""

from collections import defaultdict

import pytest
from equipment.recorders import OutputRecorder
from equipment.timestamped_source import TimestampedSource
from jobs.golden_generators import Punctuated

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Duration,
    WatermarkAlignmentParams,
    WatermarkStrategy,
)
from flinkcore.datastream.connectors.base import InputStatus
from flinkcore.elements.sources.source_operator import SourceOperator
from flinkcore.elements.sources.watermark_alignment import SourceCoordinator, WatermarkAlignmentGroups
from flinkcore.errors import LifecycleError
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService


class Receiver:
    def __init__(self) -> None:
        self.heard: list[int] = []

    def update_max_desired_watermark(self, max_watermark: int) -> None:
        self.heard.append(max_watermark)


class Job:
    def __init__(self) -> None:
        self.clock = DrivenProcessingTimeService(1000)
        self.groups = WatermarkAlignmentGroups()

    def source(
        self, name: str, drift_ms: int = 10, interval_ms: int = 100, group: str = "group", subtasks: int = 1
    ) -> tuple[SourceCoordinator, list[Receiver]]:
        parameters = WatermarkAlignmentParams(group, drift_ms, interval_ms)
        coordinator = SourceCoordinator(name, parameters, self.groups, self.clock)
        receivers = [Receiver() for _ in range(subtasks)]
        for subtask, receiver in enumerate(receivers):
            coordinator.subtask_ready(subtask, receiver)
        coordinator.start()
        return coordinator, receivers


def test_a_clock_that_passes_several_intervals_makes_each_announcement_with_the_reports_of_its_time() -> None:
    job = Job()
    coordinator, (receiver,) = job.source("clicks")
    for time, watermark in ((1050, 1), (1150, 2), (1250, 4)):
        job.clock.register_timer(time, lambda _, it=watermark: coordinator.handle_reported_watermark(0, it))
    job.clock.advance_to(1300)
    assert receiver.heard == [11, 12, 14]


def test_the_least_watermark_of_the_subtasks_and_the_drift_are_announced() -> None:
    job = Job()
    coordinator, (first, second) = job.source("clicks", subtasks=2)
    coordinator.handle_reported_watermark(0, 42)
    coordinator.handle_reported_watermark(1, 44)
    coordinator.announce_combined_watermark()
    assert (first.heard, second.heard) == ([52], [52])
    coordinator.reporter(0)(54)
    coordinator.announce_combined_watermark()
    assert (first.heard, second.heard) == ([52, 54], [52, 54])


def test_announcements_come_once_per_interval() -> None:
    job = Job()
    coordinator, (receiver,) = job.source("clicks")
    coordinator.handle_reported_watermark(0, 42)
    job.clock.advance_to(1099)
    assert receiver.heard == []
    job.clock.advance_to(1100)
    job.clock.advance_to(1250)
    assert receiver.heard == [52, 52]
    coordinator.close()
    job.clock.advance_to(2000)
    assert receiver.heard == [52, 52]


def test_a_subtask_that_has_not_reported_neither_counts_nor_is_told() -> None:
    job = Job()
    coordinator, (first, second) = job.source("clicks", subtasks=2)
    coordinator.announce_combined_watermark()
    coordinator.handle_reported_watermark(0, 42)
    coordinator.announce_combined_watermark()
    assert (first.heard, second.heard) == ([52], [])
    coordinator.handle_reported_watermark(1, 5)
    coordinator.announce_combined_watermark()
    assert (first.heard, second.heard) == ([52, 15], [15])


def test_an_idle_subtask_does_not_hold_the_group_back() -> None:
    job = Job()
    coordinator, (receiver, _) = job.source("clicks", subtasks=2)
    coordinator.handle_reported_watermark(0, 42)
    coordinator.handle_reported_watermark(1, MAX_TIMESTAMP)
    coordinator.announce_combined_watermark()
    assert receiver.heard == [52]


@pytest.mark.parametrize("watermark", [MAX_TIMESTAMP, MAX_TIMESTAMP - 9, MAX_TIMESTAMP - 10])
def test_the_sum_does_not_overflow(watermark: int) -> None:
    job = Job()
    coordinator, (receiver,) = job.source("clicks")
    coordinator.handle_reported_watermark(0, watermark)
    coordinator.announce_combined_watermark()
    assert receiver.heard == [MAX_TIMESTAMP]


def test_sources_of_a_group_wait_for_each_other_each_with_its_own_drift() -> None:
    job = Job()
    clicks, (click_reader,) = job.source("clicks", drift_ms=10)
    prices, (price_reader,) = job.source("prices", drift_ms=500)
    clicks.handle_reported_watermark(0, 100)
    prices.handle_reported_watermark(0, 20)
    job.clock.advance_to(1100)
    assert (click_reader.heard, price_reader.heard) == ([30], [520])


def test_groups_do_not_wait_for_each_other() -> None:
    job = Job()
    clicks, (click_reader,) = job.source("clicks", group="first")
    prices, (price_reader,) = job.source("prices", group="second")
    clicks.handle_reported_watermark(0, 100)
    prices.handle_reported_watermark(0, 20)
    job.clock.advance_to(1100)
    assert (click_reader.heard, price_reader.heard) == ([110], [30])


def test_a_watermark_that_goes_back_takes_the_group_back() -> None:
    job = Job()
    coordinator, (receiver, _) = job.source("clicks", subtasks=2)
    for watermark in (42, 12):
        coordinator.handle_reported_watermark(0, watermark)
        coordinator.announce_combined_watermark()
    assert receiver.heard == [52, 22]


def test_a_coordinator_is_started_once() -> None:
    coordinator, _ = Job().source("clicks")
    with pytest.raises(LifecycleError, match="'clicks' was started before"):
        coordinator.start()


def test_the_faster_source_waits_for_the_slower_one_and_nothing_is_lost() -> None:
    job = Job()
    strategy = WatermarkStrategy.for_generator(Punctuated).with_watermark_alignment(
        "group", Duration.of_millis(20), Duration.of_millis(5)
    )
    assert strategy.alignment_parameters is not None
    operators: dict[str, SourceOperator] = {}  # type: ignore[type-arg]
    outputs: dict[str, OutputRecorder] = {}
    # The fast source goes on by 10 ms of event time per poll, the slow one by 2, to the same end.
    for name, step in (("fast", 10), ("slow", 2)):
        elements = [(timestamp, timestamp) for timestamp in range(0, 1001, step)]
        source = TimestampedSource({f"{name} split": elements})
        outputs[name] = OutputRecorder()
        coordinator = SourceCoordinator(name, strategy.alignment_parameters, job.groups, job.clock)
        operator = SourceOperator(
            source.create_reader,
            strategy,
            outputs[name],
            job.clock,
            10,
            report_watermark=coordinator.reporter(0),
            watermark_buffer_size=0,
        )
        coordinator.subtask_ready(0, operator)
        coordinator.start()
        operator.open()
        operator.add_splits(source.create_splits())
        operator.notify_no_more_splits()
        operators[name] = operator

    drift = 0
    ended: dict[str, int] = defaultdict(int)
    for now in range(1000, 4000):
        job.clock.advance_to(now)
        for name, operator in operators.items():
            if operator.emit_next() is InputStatus.END_OF_INPUT:
                ended.setdefault(name, now)
        watermarks = [operators[name].watermark_gauge.value for name in ("fast", "slow")]
        if MAX_TIMESTAMP not in watermarks and MIN_TIMESTAMP not in watermarks:
            drift = max(drift, watermarks[0] - watermarks[1])
        if len(ended) == 2:
            break

    counts = {
        name: sum(entry["type"] == "record" for entry in output.entries) for name, output in outputs.items()
    }
    assert counts == {"fast": 101, "slow": 501}
    # What is announced is at most 2 intervals old: it may be 10 polls of the fast source late.
    assert 20 <= drift <= 20 + 10 * 10
    assert ended["fast"] - 1000 > 400
    paused = operators["fast"].split_metrics["fast split"]
    assert paused.pauses > 5
    assert paused.paused_time_ms == operators["fast"].alignment_waiting_time_ms > 300
    assert operators["slow"].split_metrics["slow split"].pauses == 0
