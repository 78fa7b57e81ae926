"""A source that is too far ahead waits as a whole, after Flink's SourceOperatorAlignmentTest."""

import pytest
from equipment.scripted_reader import OperatorUnderTest
from jobs.golden_generators import Punctuated

from flinkcore.common import MAX_TIMESTAMP, Duration, WatermarkAlignmentParams, WatermarkStrategy
from flinkcore.datastream.connectors.base import InputStatus
from flinkcore.errors import ConfigurationError

PUNCTUATED = WatermarkStrategy.for_generator(Punctuated)
ALIGNED = PUNCTUATED.with_watermark_alignment("group", Duration.of_millis(10), Duration.of_millis(100))


def statuses(tested: OperatorUnderTest, polls: int = 1) -> list[InputStatus]:
    return [tested.operator.emit_next() for _ in range(polls)]


def test_a_source_beyond_the_maximum_is_not_polled_until_the_maximum_has_caught_up() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"], watermark_buffer_size=0)
    tested.collect("a", 20)
    tested.operator.update_max_desired_watermark(19)
    assert tested.operator.is_waiting_for_alignment
    tested.reader.script.append(lambda out: out.create_output_for_split("a").collect("v", 21))
    assert statuses(tested, 2) == [InputStatus.NOTHING_AVAILABLE] * 2
    tested.clock.advance_to(1030)
    tested.operator.update_max_desired_watermark(20)
    assert not tested.operator.is_waiting_for_alignment
    assert statuses(tested) == [InputStatus.MORE_AVAILABLE]
    assert tested.operator.alignment_waiting_time_ms == 30
    assert tested.taken() == [("record", 20, "v"), ("watermark", 20), ("record", 21, "v")]


def test_a_source_waits_as_soon_as_its_own_watermark_is_beyond_the_maximum() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"], watermark_buffer_size=0)
    tested.operator.update_max_desired_watermark(19)
    tested.collect("a", 18)
    assert not tested.operator.is_waiting_for_alignment
    tested.collect("a", 20)
    assert tested.operator.is_waiting_for_alignment
    # The watermark that went too far was emitted.
    assert tested.watermarks() == [("watermark", 18), ("watermark", 20)]


def test_a_maximum_may_go_back() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"], watermark_buffer_size=0)
    tested.operator.update_max_desired_watermark(30)
    tested.collect("a", 20)
    tested.operator.update_max_desired_watermark(10)
    assert tested.operator.is_waiting_for_alignment
    assert tested.operator.max_desired_watermark == 10


def test_by_default_the_watermark_of_three_intervals_ago_counts() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"])
    tested.collect("a", 20)
    tested.operator.update_max_desired_watermark(10)
    for now, waiting in ((1100, False), (1200, False), (1300, True)):
        assert not tested.operator.is_waiting_for_alignment
        tested.clock.advance_to(now)
        assert tested.operator.is_waiting_for_alignment is waiting
    tested.operator.update_max_desired_watermark(20)
    assert not tested.operator.is_waiting_for_alignment


def test_the_watermark_is_reported_once_per_interval_from_the_first_poll() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"])
    tested.clock.advance_to(1100)
    assert tested.reported == []
    tested.collect("a", 20)
    tested.collect("a", 22)
    tested.clock.advance_to(1199)
    assert tested.reported == []
    tested.clock.advance_to(1200)
    tested.clock.advance_to(1300)
    assert tested.reported == [22, 22]


def test_an_idle_source_reports_that_it_waits_for_nothing() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"])
    tested.collect("a", 20)
    tested.poll(lambda out: out.create_output_for_split("a").mark_idle())
    tested.clock.advance_to(1100)
    tested.collect("a", 22)
    tested.clock.advance_to(1200)
    assert tested.reported == [MAX_TIMESTAMP, 22]


def test_an_idle_source_without_a_watermark_reports_nothing() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"])
    tested.poll(lambda out: out.create_output_for_split("a").mark_idle())
    tested.clock.advance_to(1100)
    assert tested.reported == []


def test_the_end_of_the_input_is_reported_and_the_last_report() -> None:
    tested = OperatorUnderTest(ALIGNED, [])
    tested.reader.ends = True
    tested.operator.emit_next()
    assert tested.reported == [MAX_TIMESTAMP]
    tested.clock.advance_to(9000)
    tested.operator.update_max_desired_watermark(5)
    assert tested.reported == [MAX_TIMESTAMP]
    assert not tested.operator.is_waiting_for_alignment


def test_a_source_that_ends_while_it_would_wait_has_ended() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"], watermark_buffer_size=0)
    tested.collect("a", 20)
    tested.operator.update_max_desired_watermark(19)
    tested.clock.advance_to(1040)
    tested.operator.close()
    tested.clock.advance_to(2000)
    assert tested.operator.alignment_waiting_time_ms == 40
    assert tested.clock.pending_timers == 0


def test_the_time_of_waiting_does_not_make_the_main_output_idle() -> None:
    strategy = ALIGNED.with_idleness(Duration.of_millis(25))
    tested = OperatorUnderTest(strategy, [], watermark_buffer_size=0)
    tested.collect(None, 20)
    tested.clock.advance_to(1010)
    tested.operator.update_max_desired_watermark(10)
    for now in range(1020, 1101, 10):
        tested.clock.advance_to(now)
    assert ("status", "idle") not in tested.taken()
    tested.operator.update_max_desired_watermark(20)
    for now in range(1110, 1141, 10):
        tested.clock.advance_to(now)
    assert tested.taken() == [("status", "idle")]


def test_without_alignment_nothing_is_reported_and_nothing_waits() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    assert tested.operator.max_desired_watermark == MAX_TIMESTAMP
    tested.collect("a", MAX_TIMESTAMP - 1)
    tested.clock.advance_to(100_000)
    assert not tested.operator.is_waiting_for_alignment
    assert tested.reported == []


@pytest.mark.parametrize(("drift", "interval", "named"), [(-1, 1, "-1 ms"), (0, 0, "0 ms"), (0, -3, "-3 ms")])
def test_a_negative_drift_or_an_interval_of_zero_is_refused(drift: int, interval: int, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        WatermarkAlignmentParams("group", drift, interval)
