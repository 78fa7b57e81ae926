"""Outputs of a reader with a generator each, after Flink's ProgressiveTimestampsAndWatermarks and its tests."""

from typing import Any

import numpy as np
import pytest
from models.golden_generators import Punctuated
from models.recorders import OutputRecorder
from models.scripted_reader import OperatorUnderTest

from flinkcore.common import (
    MIN_TIMESTAMP,
    Duration,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.elements.sources.source_watermarks import (
    NoOpTimestampsAndWatermarks,
    PausableRelativeClock,
    ProgressiveTimestampsAndWatermarks,
)
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, TimerError, UserCodeError
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

ASCENDING = WatermarkStrategy.for_monotonous_timestamps()
PUNCTUATED = WatermarkStrategy.for_generator(Punctuated)


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def update_idle(self, is_idle: bool) -> None:
        self.heard.append(("idle", is_idle))

    def update_current_effective_watermark(self, watermark: int) -> None:
        self.heard.append(("watermark", watermark))

    def update_current_split_watermark(self, split_id: str, watermark: int) -> None:
        self.heard.append((split_id, "watermark", watermark))

    def update_current_split_idle(self, split_id: str, is_idle: bool) -> None:
        self.heard.append((split_id, "idle", is_idle))

    def split_finished(self, split_id: str) -> None:
        self.heard.append((split_id, "finished"))


class TenTimesTheSourcesTimestamp(TimestampAssigner):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        self.seen.append(record_timestamp)
        return 10 * value if record_timestamp == MIN_TIMESTAMP else 10 * record_timestamp


class Fails(WatermarkGenerator[Any]):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event == "bad":
            raise ValueError("no such event")

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        raise KeyError("tick")


def test_the_assigner_sees_the_sources_timestamp_and_has_the_last_word() -> None:
    tested = OperatorUnderTest(ASCENDING.with_timestamp_assigner(TenTimesTheSourcesTimestamp()))
    tested.collect("a", 7, value=1)
    tested.collect(None, 8, value=1)
    assert tested.taken() == [("record", 70, 1), ("record", 80, 1)]


def test_without_a_source_timestamp_the_assigner_sees_the_minimum() -> None:
    tested = OperatorUnderTest(ASCENDING.with_timestamp_assigner(TenTimesTheSourcesTimestamp()))
    tested.collect("a", None, value=4)
    assert tested.taken() == [("record", 40, 4)]


def test_without_both_the_record_carries_the_minimum() -> None:
    tested = OperatorUnderTest(ASCENDING)
    tested.collect("a", None)
    tested.collect(None, None)
    tested.clock.advance_to(1010)
    assert tested.taken() == [("record", MIN_TIMESTAMP, "v")] * 2


def test_a_record_is_emitted_before_the_watermark_that_it_causes() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.collect("a", 8)
    assert tested.taken() == [("record", 8, "v"), ("watermark", 8)]


def test_periodic_watermarks_come_at_the_interval_and_only_if_they_advance() -> None:
    tested = OperatorUnderTest(ASCENDING, ["a"])
    tested.collect("a", 5)
    tested.clock.advance_to(1009)
    assert tested.watermarks() == []
    tested.clock.advance_to(1010)
    assert tested.watermarks() == [("watermark", 4)]
    tested.clock.advance_to(1040)
    assert tested.watermarks() == []


def test_an_interval_of_zero_makes_no_periodic_watermark() -> None:
    tested = OperatorUnderTest(ASCENDING, ["a"], interval_ms=0)
    tested.collect("a", 5)
    tested.clock.advance_to(100_000)
    assert tested.watermarks() == []
    assert tested.clock.pending_timers == 0


def test_the_least_watermark_of_the_splits_counts() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a", "b"])
    tested.collect("a", 20)
    assert tested.watermarks() == []
    tested.collect("b", 10)
    assert tested.watermarks() == [("watermark", 10)]
    tested.collect("b", 30)
    assert tested.watermarks() == [("watermark", 20)]


def test_a_split_whose_watermark_goes_back_has_no_effect_until_it_has_caught_up() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.collect("a", 20)
    tested.collect("a", 4)
    assert tested.watermarks() == [("watermark", 20)]
    assert tested.operator.split_metrics["a"].current_watermark == 20
    tested.collect("a", 22)
    assert tested.watermarks() == [("watermark", 22)]


def test_the_watermark_of_the_main_output_is_not_compared_with_that_of_the_splits() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.collect("a", 10)
    tested.collect(None, 30)
    tested.collect("a", 20)
    assert tested.watermarks() == [("watermark", 10), ("watermark", 30)]


def test_at_a_tick_splits_emit_before_the_main_output_and_are_combined_once() -> None:
    tested = OperatorUnderTest(ASCENDING, ["a", "b"])
    tested.collect("a", 5)
    tested.collect("b", 7)
    tested.collect(None, 9)
    tested.clock.advance_to(1010)
    assert tested.watermarks() == [("watermark", 4), ("watermark", 8)]


def test_the_output_of_a_split_is_made_once_and_has_a_generator_of_its_own() -> None:
    tested = OperatorUnderTest(ASCENDING, ["a", "b"])
    outputs: list[Any] = []
    tested.poll(lambda out: outputs.extend(out.create_output_for_split(s) for s in ("a", "a", "b")))
    assert outputs[0] is outputs[1]
    assert outputs[0] is not outputs[2]


def test_a_released_split_holds_the_others_back_no_longer() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a", "b"])
    tested.collect("a", 20)
    tested.poll(lambda out: out.release_output_for_split("b"))
    assert tested.watermarks() == []
    tested.clock.advance_to(1010)
    assert tested.watermarks() == [("watermark", 20)]


def test_a_new_split_holds_the_watermark_where_it_is() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.collect("a", 20)
    tested.poll(lambda out: out.create_output_for_split("b") and None)
    tested.collect("a", 30)
    assert tested.watermarks() == [("watermark", 20)]
    tested.collect("b", 24)
    assert tested.watermarks() == [("watermark", 24)]


def test_an_idle_split_is_not_waited_for() -> None:
    tested = OperatorUnderTest(ASCENDING.with_idleness(Duration.of_millis(25)), ["a", "b"])
    for now in range(1010, 1051, 10):
        tested.collect("a", now)
        tested.clock.advance_to(now)
    # The count of b begins at 1010; at 1040, 30 ms are more than 25.
    assert tested.watermarks() == [("watermark", 1039), ("watermark", 1049)]
    assert tested.operator.split_metrics["b"].is_idle


def test_the_source_is_idle_when_all_splits_and_the_main_output_are_and_active_with_the_next_watermark() -> (
    None
):
    tested = OperatorUnderTest(ASCENDING.with_idleness(Duration.of_millis(25)), ["a", "b"])
    tested.collect("a", 50)
    tested.collect("b", 40)
    for now in range(1010, 1061, 10):
        tested.clock.advance_to(now)
    # All splits being idle, the greatest watermark of them is emitted.
    assert tested.watermarks() == [("watermark", 39), ("watermark", 49), ("status", "idle")]
    tested.collect("b", 45)
    tested.clock.advance_to(1070)
    assert tested.watermarks() == []
    tested.collect("b", 60)
    tested.clock.advance_to(1080)
    assert tested.watermarks() == [("status", "active"), ("watermark", 59)]


def test_a_main_output_in_use_keeps_the_source_active_while_the_splits_are_idle() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.collect(None, 10)
    tested.poll(lambda out: out.create_output_for_split("a").mark_idle())
    assert tested.watermarks() == [("watermark", 10)]
    tested.poll(lambda out: out.mark_idle())
    assert tested.watermarks() == [("status", "idle")]
    tested.poll(lambda out: out.mark_idle())
    tested.poll(lambda out: out.create_output_for_split("a").mark_active())
    assert tested.watermarks() == []
    tested.poll(lambda out: out.mark_active())
    assert tested.watermarks() == [("status", "active")]


def test_a_source_may_emit_watermarks_of_its_own() -> None:
    tested = OperatorUnderTest(WatermarkStrategy.no_watermarks(), ["a"])
    tested.poll(lambda out: out.create_output_for_split("a").emit_watermark(Watermark(12)))
    assert tested.watermarks() == [("watermark", 12)]


def test_a_paused_split_does_not_become_idle() -> None:
    strategy = ASCENDING.with_idleness(Duration.of_millis(25)).with_watermark_alignment(
        "group", Duration.of_millis(0), Duration.of_seconds(100)
    )
    tested = OperatorUnderTest(strategy, ["a", "b"], watermark_buffer_size=0)
    tested.collect("a", 50)
    tested.collect("b", 10)
    tested.clock.advance_to(1010)
    tested.operator.update_max_desired_watermark(20)
    for now in range(1020, 1101, 10):
        tested.clock.advance_to(now)
    metrics = tested.operator.split_metrics
    assert (metrics["a"].is_idle, metrics["b"].is_idle) == (False, True)
    tested.operator.update_max_desired_watermark(60)
    # For a, no time passed from the pause at 1010 to now, 1100.
    for now in (1110, 1120):
        tested.clock.advance_to(now)
    assert not metrics["a"].is_idle
    tested.clock.advance_to(1130)
    assert metrics["a"].is_idle


def test_the_listener_hears_in_flinks_order() -> None:
    listener, recorder = Listener(), OutputRecorder()
    clock = DrivenProcessingTimeService(1)
    logic = ProgressiveTimestampsAndWatermarks(
        PUNCTUATED, clock, 10, PausableRelativeClock(clock.current_processing_time)
    )
    output = logic.create_main_output(recorder, listener)
    split = output.create_output_for_split("a")
    split.collect("v", 2)
    split.mark_idle()
    output.release_output_for_split("a")
    assert listener.heard == [
        ("a", "idle", False),
        ("a", "watermark", 2),
        ("watermark", 2),
        ("a", "idle", True),
        ("idle", True),
        ("a", "finished"),
    ]
    with pytest.raises(LifecycleError, match="created before"):
        logic.create_main_output(recorder, listener)
    logic.start_periodic_watermark_emits()
    with pytest.raises(LifecycleError, match="started before"):
        logic.start_periodic_watermark_emits()
    logic.stop_periodic_watermark_emits()
    assert clock.pending_timers == 0


def test_in_batch_execution_records_have_timestamps_and_nothing_else_is_emitted() -> None:
    recorder = OutputRecorder()
    output = NoOpTimestampsAndWatermarks(TenTimesTheSourcesTimestamp()).create_main_output(
        recorder, Listener()
    )
    split = output.create_output_for_split("a")
    split.collect(3)
    split.emit_watermark(Watermark(5))
    split.mark_idle()
    split.mark_active()
    output.release_output_for_split("a")
    output.collect("v", 2)
    assert recorder.take() == [("record", 30, 3), ("record", 20, "v")]


@pytest.mark.parametrize("split", ["a", None])
@pytest.mark.parametrize("timestamp", ["2001-01-01", 1.5, True, 2**63])
def test_a_source_timestamp_that_is_none_is_an_error_that_names_the_split(
    split: str | None, timestamp: Any
) -> None:
    tested = OperatorUnderTest(ASCENDING, ["a"])
    with pytest.raises(DataError, match="the split 'a' gave" if split else "the source gave"):
        tested.collect(split, timestamp)
    assert tested.taken() == []


def test_integers_of_numpy_are_timestamps() -> None:
    tested = OperatorUnderTest(ASCENDING, ["a"])
    tested.collect("a", np.int64(7))  # type: ignore[arg-type]
    ((_, timestamp, _),) = tested.taken()
    assert type(timestamp) is int
    assert timestamp == 7


def test_a_generator_that_raises_at_an_event_is_named_with_its_split() -> None:
    tested = OperatorUnderTest(WatermarkStrategy.for_generator(Fails), ["a"])
    with pytest.raises(UserCodeError, match=r"Fails\.on_event of split 'a' failed .* no such event"):
        tested.collect("a", 5, value="bad")


def test_a_generator_that_raises_at_a_tick_is_named_with_its_split() -> None:
    tested = OperatorUnderTest(WatermarkStrategy.for_generator(Fails), ["a"])
    with pytest.raises(TimerError, match=r"Fails\.on_periodic_emit of split 'a' failed"):
        tested.clock.advance_to(1010)


def test_a_generator_that_cannot_be_made_leaves_no_output_behind() -> None:
    made: list[int] = []

    def supplier() -> WatermarkGenerator[Any]:
        made.append(1)
        if len(made) == 2:
            raise ValueError("too many")
        return Punctuated()

    tested = OperatorUnderTest(WatermarkStrategy.for_generator(supplier), [])
    with pytest.raises(UserCodeError, match=r"for split 'a'.*too many"):
        tested.poll(lambda out: out.create_output_for_split("a") and None)
    tested.collect("a", 2)
    assert tested.watermarks() == [("watermark", 2)]


def test_two_splits_cannot_hold_one_generator_but_one_after_the_other_can() -> None:
    made: list[WatermarkGenerator[Any]] = [Punctuated()]
    tested = OperatorUnderTest(WatermarkStrategy.for_generator(lambda: made[-1]), [])
    with pytest.raises(ConfigurationError, match="same Punctuated for split 'a' that the main output holds"):
        tested.poll(lambda out: out.create_output_for_split("a") and None)
    made.append(Punctuated())
    tested.poll(lambda out: out.create_output_for_split("a") and None)
    with pytest.raises(ConfigurationError, match="same Punctuated for split 'b' that split 'a' holds"):
        tested.poll(lambda out: out.create_output_for_split("b") and None)
    tested.poll(lambda out: out.release_output_for_split("a"))
    tested.collect("b", 2)
    assert tested.watermarks() == [("watermark", 2)]


def test_an_unknown_split_cannot_be_released() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    with pytest.raises(LifecycleError, match="'b' has no output"):
        tested.poll(lambda out: out.release_output_for_split("b"))
    tested.poll(lambda out: out.release_output_for_split("a"))
    with pytest.raises(LifecycleError, match="'a' has no output"):
        tested.poll(lambda out: out.release_output_for_split("a"))


def test_the_output_of_a_released_split_refuses_everything() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    outputs: list[Any] = []
    tested.poll(lambda out: outputs.append(out.create_output_for_split("a")))
    tested.poll(lambda out: out.release_output_for_split("a"))
    (output,) = outputs
    for use in (
        lambda: output.collect("v", 2),
        lambda: output.emit_watermark(Watermark(2)),
        output.mark_idle,
        output.mark_active,
    ):
        with pytest.raises(LifecycleError, match="split 'a' was released"):
            use()
    assert tested.taken() == []


def test_a_negative_interval_is_refused() -> None:
    clock = DrivenProcessingTimeService()
    with pytest.raises(ConfigurationError, match=r"auto-watermark interval in ms must be .*, not -1"):
        ProgressiveTimestampsAndWatermarks(
            ASCENDING, clock, -1, PausableRelativeClock(clock.current_processing_time)
        )
