"""Splits that are too far ahead are paused, after Flink's SourceOperatorSplitWatermarkAlignmentTest."""

import pytest
from equipment.scripted_reader import OperatorUnderTest, Split
from jobs.golden_generators import Punctuated

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.errors import UnsupportedOperationError

PUNCTUATED = WatermarkStrategy.for_generator(Punctuated)
ALIGNED = PUNCTUATED.with_watermark_alignment("group", Duration.of_millis(10), Duration.of_millis(100))


def aligned(splits: list[str], *, buffer_size: int = 0, **settings: bool) -> OperatorUnderTest:
    return OperatorUnderTest(ALIGNED, splits, watermark_buffer_size=buffer_size, **settings)


def test_a_split_beyond_the_maximum_is_paused_when_the_maximum_is_announced() -> None:
    tested = aligned(["a", "b", "c"])
    tested.collect("a", 30)
    tested.collect("b", 20)
    tested.collect("c", 10)
    assert tested.reader.pauses() == []
    tested.operator.update_max_desired_watermark(20)
    assert tested.reader.pauses() == [(["a"], [])]
    assert not tested.operator.is_waiting_for_alignment


def test_a_split_is_paused_as_soon_as_its_watermark_is_beyond_the_maximum_and_once() -> None:
    tested = aligned(["a", "b"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 20)
    assert tested.reader.pauses() == []
    tested.collect("a", 22)
    tested.collect("a", 24)
    tested.operator.update_max_desired_watermark(21)
    assert tested.reader.pauses() == [(["a"], [])]


def test_splits_are_paused_and_resumed_by_the_same_announcement() -> None:
    tested = aligned(["a", "b"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.collect("b", 10)
    tested.reader.pauses()
    tested.collect("b", 40)
    assert tested.reader.pauses() == [(["b"], [])]
    tested.operator.update_max_desired_watermark(30)
    assert tested.reader.pauses() == [([], ["a"])]
    tested.operator.update_max_desired_watermark(25)
    tested.operator.update_max_desired_watermark(40)
    assert tested.reader.pauses() == [(["a"], []), ([], ["a", "b"])]


def test_a_single_split_is_paused_too() -> None:
    tested = aligned(["a"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 22)
    assert tested.reader.pauses() == [(["a"], [])]
    assert tested.operator.is_waiting_for_alignment


def test_with_a_buffer_a_split_is_paused_some_intervals_later() -> None:
    tested = aligned(["a", "b"], buffer_size=2)
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.clock.advance_to(1100)
    assert tested.reader.pauses() == []
    tested.clock.advance_to(1200)
    assert tested.reader.pauses() == [(["a"], [])]


def test_an_idle_split_is_not_paused_until_it_is_active() -> None:
    tested = aligned(["a", "b"])
    tested.collect("a", 30)
    tested.poll(lambda out: out.create_output_for_split("a").mark_idle())
    tested.operator.update_max_desired_watermark(20)
    assert tested.reader.pauses() == []
    tested.poll(lambda out: out.create_output_for_split("a").mark_active())
    assert tested.reader.pauses() == [(["a"], [])]


def test_a_paused_split_that_is_marked_idle_is_left_as_it_is() -> None:
    tested = aligned(["a", "b"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.reader.pauses()
    tested.poll(lambda out: out.create_output_for_split("a").mark_idle())
    tested.operator.update_max_desired_watermark(50)
    assert tested.reader.pauses() == []
    tested.poll(lambda out: out.create_output_for_split("a").mark_active())
    tested.operator.update_max_desired_watermark(50)
    assert tested.reader.pauses() == [([], ["a"])]


def test_a_split_that_was_released_is_neither_paused_nor_resumed() -> None:
    tested = aligned(["a", "b"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.poll(lambda out: out.release_output_for_split("a"))
    tested.reader.pauses()
    tested.operator.update_max_desired_watermark(40)
    tested.operator.update_max_desired_watermark(10)
    assert tested.reader.pauses() == []


def test_a_split_that_ended_while_paused_can_come_back_and_be_paused_again() -> None:
    tested = aligned(["a", "b"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.clock.advance_to(1040)
    tested.poll(lambda out: out.release_output_for_split("a"))
    tested.clock.advance_to(1050)
    tested.operator.add_splits([Split("a")])
    tested.reader.calls.clear()
    tested.collect("a", 32)
    assert tested.reader.pauses() == [(["a"], [])]
    tested.clock.advance_to(1055)
    metrics = tested.operator.split_metrics["a"]
    assert (metrics.pauses, metrics.paused_time_ms) == (2, 45)


def test_it_is_known_who_was_paused_for_how_long() -> None:
    tested = aligned(["a", "b"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("b", 10)
    tested.collect("a", 30)
    a, b = (tested.operator.split_metrics[split] for split in "ab")
    tested.clock.advance_to(1070)
    assert (a.is_paused, a.paused_time_ms, a.pauses) == (True, 70, 1)
    tested.operator.update_max_desired_watermark(30)
    tested.clock.advance_to(1090)
    tested.operator.update_max_desired_watermark(29)
    tested.clock.advance_to(1100)
    assert (a.paused_time_ms, a.active_time_ms, a.idle_time_ms, a.pauses) == (80, 20, 0, 2)
    assert (b.is_paused, b.paused_time_ms, b.active_time_ms, b.pauses) == (False, 0, 100, 0)
    tested.reader.ends = True
    tested.operator.emit_next()
    tested.clock.advance_to(5000)
    assert (a.is_paused, a.paused_time_ms, a.active_time_ms) == (False, 80, 20)


def test_time_is_counted_as_idle_or_paused_but_not_as_both() -> None:
    tested = aligned(["a", "b"])
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.clock.advance_to(1010)
    tested.poll(lambda out: out.create_output_for_split("a").mark_idle())
    tested.clock.advance_to(1030)
    metrics = tested.operator.split_metrics["a"]
    assert (metrics.paused_time_ms, metrics.idle_time_ms, metrics.active_time_ms) == (10, 20, 0)


def test_a_reader_that_cannot_pause_is_an_error_that_names_the_setting_and_the_splits() -> None:
    tested = aligned(["a", "b"], can_pause=False)
    tested.collect("a", 30)
    with pytest.raises(
        UnsupportedOperationError,
        match=r"\['a'\] are beyond 20, .* ScriptedReader .* "
        r"pipeline\.watermark-alignment\.allow-unaligned-source-splits",
    ):
        tested.operator.update_max_desired_watermark(20)


def test_the_error_comes_also_when_the_generators_watermark_is_the_cause() -> None:
    tested = aligned(["a", "b"], can_pause=False)
    tested.operator.update_max_desired_watermark(20)
    with pytest.raises(UnsupportedOperationError, match="allow-unaligned-source-splits"):
        tested.collect("a", 30)


def test_a_reader_that_cannot_pause_reads_on_where_unaligned_splits_are_allowed() -> None:
    tested = aligned(["a", "b"], can_pause=False, allow_unaligned_source_splits=True)
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.collect("a", 32)
    metrics = tested.operator.split_metrics["a"]
    assert (metrics.is_paused, metrics.pauses, metrics.current_watermark) == (False, 0, 32)
    # The source as a whole waits all the same.
    tested.collect("b", 40)
    assert tested.operator.is_waiting_for_alignment
    tested.operator.update_max_desired_watermark(32)
    assert not tested.operator.is_waiting_for_alignment


def test_splits_are_not_paused_in_batch_execution() -> None:
    tested = OperatorUnderTest(ALIGNED, ["a"], emit_progressive_watermarks=False, watermark_buffer_size=0)
    tested.operator.update_max_desired_watermark(20)
    tested.collect("a", 30)
    tested.clock.advance_to(1100)
    assert tested.reader.pauses() == []
    assert tested.reported == []
