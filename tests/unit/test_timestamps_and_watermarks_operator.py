"""TimestampsAndWatermarksOperator on a clock that the tests drive."""

import threading
from typing import Any

import pyarrow.compute as pc
import pytest
from models.golden_generators import LegacyBounded, Punctuated, ValueAsTimestamp
from models.recorders import OutputRecorder

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Duration,
    Time,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.datastream.timestamps import IngestionTimeExtractor, as_watermark_strategy
from flinkcore.errors import ConfigurationError, DataError, SchemaError, UserCodeError
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.operators.timestamps_and_watermarks_operator import TimestampsAndWatermarksOperator

ASCENDING = WatermarkStrategy.for_monotonous_timestamps()


class Harness:
    """An open operator, whose calls return what it put out."""

    def __init__(self, strategy: WatermarkStrategy, interval_ms: int = 50, **settings: Any) -> None:
        self.clock = DrivenProcessingTimeService()
        self.output = OutputRecorder()
        self.operator = TimestampsAndWatermarksOperator(
            strategy, self.output, self.clock, interval_ms, **settings
        )
        self.operator.open()

    def record(self, value: Any, timestamp: int | None = None) -> list[tuple[Any, ...]]:
        self.operator.process_element(StreamRecord(value, timestamp))
        return self.output.take()

    def watermark(self, timestamp: int) -> list[tuple[Any, ...]]:
        self.operator.process_watermark(Watermark(timestamp))
        return self.output.take()

    def clock_at(self, time_ms: int) -> list[tuple[Any, ...]]:
        self.clock.advance_to(time_ms)
        return self.output.take()

    def finish(self) -> list[tuple[Any, ...]]:
        self.operator.finish()
        return self.output.take()


def test_input_watermarks_are_not_forwarded() -> None:
    assert Harness(ASCENDING).watermark(42) == []


def test_the_last_watermark_is_forwarded_once() -> None:
    harness = Harness(ASCENDING)
    assert harness.watermark(MAX_TIMESTAMP) == [("watermark", MAX_TIMESTAMP)]
    assert harness.watermark(MAX_TIMESTAMP) == []


def test_input_statuses_are_not_forwarded() -> None:
    harness = Harness(ASCENDING)
    for status in (WatermarkStatus.IDLE, WatermarkStatus.ACTIVE):
        harness.operator.process_watermark_status(status)
    assert harness.output.take() == []


def test_latency_markers_are_forwarded() -> None:
    harness = Harness(ASCENDING)
    marker = LatencyMarker(5, "source", 0)
    harness.operator.process_latency_marker(marker)
    assert harness.output.take() == [("latency", marker)]


def test_periodic_watermarks_are_emitted_at_ticks_only() -> None:
    harness = Harness(ASCENDING)
    assert harness.record("a", 4) == [("record", 4, "a")]
    assert harness.clock_at(49) == []
    assert harness.clock_at(50) == [("watermark", 3)]
    harness.record("b", 6)
    assert harness.clock_at(99) == []
    assert harness.clock_at(100) == [("watermark", 5)]
    assert harness.clock_at(150) == [], "what has not advanced is no news"


def test_the_next_tick_is_an_interval_after_the_last_one_was_seen() -> None:
    harness = Harness(ASCENDING)
    harness.clock_at(70)
    harness.record("a", 4)
    assert harness.clock_at(119) == []
    assert harness.clock_at(120) == [("watermark", 3)]


def test_punctuated_watermarks_are_emitted_right_after_their_record() -> None:
    harness = Harness(WatermarkStrategy.for_generator(Punctuated), interval_ms=0)
    assert harness.record("a", 3) == [("record", 3, "a")]
    assert harness.record("b", 4) == [("record", 4, "b"), ("watermark", 4)]
    assert harness.record("c", 2) == [("record", 2, "c")]


def test_without_an_interval_there_are_no_ticks_but_a_watermark_at_the_end() -> None:
    harness = Harness(ASCENDING, interval_ms=0)
    assert harness.clock.pending_timers == 0
    harness.record("a", 4)
    assert harness.finish() == [("watermark", 3)]


def test_in_batch_execution_only_the_last_watermark_passes() -> None:
    harness = Harness(
        ASCENDING.with_timestamp_assigner(ValueAsTimestamp()), emit_progressive_watermarks=False
    )
    assert harness.clock.pending_timers == 0
    assert harness.record(4) == [("record", 4, 4)]
    assert harness.finish() == []
    assert harness.watermark(MAX_TIMESTAMP) == [("watermark", MAX_TIMESTAMP)]


def test_negative_timestamps_make_watermarks_too() -> None:
    harness = Harness(ASCENDING)
    for timestamp in (-100, -50):
        harness.record("a", timestamp)
    assert harness.clock_at(50) == [("watermark", -51)]


def test_a_record_without_timestamp_gets_the_minimum_where_nothing_assigns_one() -> None:
    harness = Harness(ASCENDING)
    assert harness.record("a") == [("record", MIN_TIMESTAMP, "a")]
    assert harness.clock_at(50) == []


def test_the_assigner_sees_the_timestamp_from_before() -> None:
    seen = []

    class Seeing(ValueAsTimestamp):
        def extract_timestamp(self, value: int, record_timestamp: int) -> int:
            seen.append(record_timestamp)
            return value

    harness = Harness(ASCENDING.with_timestamp_assigner(Seeing()))
    assert harness.record(4, 9) == [("record", 4, 4)]
    assert harness.record(5) == [("record", 5, 5)]
    assert seen == [9, MIN_TIMESTAMP]


def test_idleness_is_stated_once_and_ended_by_a_watermark() -> None:
    harness = Harness(ASCENDING.with_idleness(Duration.of_millis(60)))
    harness.record("a", 4)
    assert harness.clock_at(50) == [("watermark", 3)]
    assert [harness.clock_at(time) for time in (100, 150, 200, 250)] == [[], [], [("status", "idle")], []]
    harness.record("b", 4)
    assert harness.clock_at(300) == [], "a watermark that does not advance does not end idleness"
    harness.record("c", 6)
    assert harness.clock_at(350) == [("status", "active"), ("watermark", 5)]


def test_the_last_watermark_ends_idleness() -> None:
    harness = Harness(ASCENDING.with_idleness(Duration.of_millis(10)))
    assert [harness.clock_at(time) for time in (50, 100)] == [[], [("status", "idle")]]
    assert harness.watermark(MAX_TIMESTAMP) == [("status", "active"), ("watermark", MAX_TIMESTAMP)]


class Backwards(WatermarkGenerator[Any]):
    """Every value is a watermark."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        raise RuntimeError("no watermark")


def test_a_generator_that_goes_backwards_has_no_effect_until_it_has_caught_up() -> None:
    harness = Harness(WatermarkStrategy.for_generator(Backwards))
    watermarks = [[entry[1] for entry in harness.record(value, 0)[1:]] for value in (5, 3, 5, 6)]
    assert watermarks == [[5], [], [], [6]]


def test_a_generator_that_raises_fails_the_tick_with_the_split_named() -> None:
    harness = Harness(WatermarkStrategy.for_generator(Backwards), split="clicks-7")
    with pytest.raises(
        UserCodeError, match=r"Backwards.on_periodic_emit of split 'clicks-7' failed"
    ) as raised:
        harness.finish()
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_an_assigner_that_gives_none_fails_before_the_record_is_forwarded() -> None:
    harness = Harness(ASCENDING.with_timestamp_assigner(ValueAsTimestamp()), split="clicks-7")
    with pytest.raises(DataError, match=r"ValueAsTimestamp.extract_timestamp of split 'clicks-7' gave None"):
        harness.record(None)
    assert harness.output.take() == []


def test_operators_of_one_strategy_share_no_state_of_its_assigner() -> None:
    strategy = as_watermark_strategy(LegacyBounded(Time.milliseconds(10)))
    first, second = Harness(strategy), Harness(strategy)
    first.record(500)
    second.record(50)
    assert first.clock_at(50) == [("watermark", 490)]
    assert second.clock_at(50) == [("watermark", 40)]


def test_ingestion_time_runs_on_the_clock_it_is_given() -> None:
    clock = DrivenProcessingTimeService(100)
    output = OutputRecorder()
    strategy = as_watermark_strategy(IngestionTimeExtractor(clock.current_processing_time))
    operator = TimestampsAndWatermarksOperator(strategy, output, clock, 50)
    operator.open()
    clock.advance_to(120)
    operator.process_element(StreamRecord("a"))
    clock.advance_to(150)
    assert output.take() == [("record", 120, "a"), ("watermark", 149)]


def test_a_strategy_that_cannot_be_copied_is_refused_when_opened() -> None:
    class Locked(ValueAsTimestamp):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    with pytest.raises(UserCodeError, match=r"the strategy cannot be copied, .* event time from Locked"):
        Harness(ASCENDING.with_timestamp_assigner(Locked()))


@pytest.mark.parametrize("column", ["ts", pc.field("ts")])
def test_event_time_from_a_column_is_refused_when_opened(column: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"event time comes from ts, but elements .* have no columns"
    ):
        Harness(ASCENDING.with_timestamp_assigner(column))


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"auto-watermark interval in ms must be a length of time .*, not -1"
    ):
        Harness(ASCENDING, interval_ms=-1)


def test_a_closed_operator_ticks_no_more() -> None:
    harness = Harness(ASCENDING)
    harness.record("a", 4)
    harness.operator.close()
    harness.operator.close()
    assert harness.clock_at(500) == []
    assert harness.clock.pending_timers == 0


def test_an_operator_that_is_closed_by_its_own_watermark_has_no_further_tick() -> None:
    class Closing(OutputRecorder):
        def emit_watermark(self, watermark: Watermark) -> None:
            super().emit_watermark(watermark)
            operator.close()

    clock, output = DrivenProcessingTimeService(), Closing()
    operator = TimestampsAndWatermarksOperator(ASCENDING, output, clock, 50)
    operator.open()
    operator.process_element(StreamRecord("a", 10))
    clock.advance_to(50)
    assert output.take()[1:] == [("watermark", 9)]
    assert clock.pending_timers == 0


def test_a_restored_operator_goes_on_where_it_was() -> None:
    first = Harness(ASCENDING.with_idleness(Duration.of_millis(60)))
    first.record("a", 20)
    assert first.clock_at(50) == [("watermark", 19)]
    clock, output = DrivenProcessingTimeService(70), OutputRecorder()
    operator = TimestampsAndWatermarksOperator(first.operator._watermark_strategy, output, clock, 50)
    operator.restore_state(*first.operator.snapshot_state(), 100)
    operator.open()
    assert (operator.watermark_ms, operator.is_idle) == (19, False)
    clock.advance_to(100)
    assert output.take() == []
    clock.advance_to(200)
    assert output.take() == [("status", "idle")]


@pytest.mark.parametrize("held", [None, "x", True, 2**63, 1.5, [1], (1, True, 2, False)])
def test_a_generator_is_not_restored_from_what_another_one_held(held: Any) -> None:
    operator = TimestampsAndWatermarksOperator(ASCENDING, OutputRecorder(), DrivenProcessingTimeService(), 50)
    operator.restore_state(held, 0, False, 50)
    with pytest.raises(SchemaError, match=r"is not what the generator of .* holds"):
        operator.open()
