"""The life of a source operator, after Flink's SourceOperatorTest."""

from typing import Any

import pytest
from equipment.recorders import OutputRecorder
from equipment.scripted_reader import OperatorUnderTest, ScriptedReader, Split
from equipment.timestamped_source import TimestampedSource
from jobs.golden_generators import Punctuated

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Duration,
    TimestampAssigner,
    Watermark,
    WatermarkStrategy,
)
from flinkcore.datastream.connectors.base import InputStatus, SourceReaderContext
from flinkcore.elements.sources.source_operator import SourceOperator
from flinkcore.errors import ConfigurationError, LifecycleError, UserCodeError
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

ASCENDING = WatermarkStrategy.for_monotonous_timestamps()
PUNCTUATED = WatermarkStrategy.for_generator(Punctuated)
END = ("watermark", MAX_TIMESTAMP)


def new_operator(reader: ScriptedReader, strategy: WatermarkStrategy = PUNCTUATED, **settings: Any) -> Any:
    clock = DrivenProcessingTimeService(1000)
    return SourceOperator(lambda context: reader, strategy, OutputRecorder(), clock, 10, **settings)


def test_the_reader_is_made_for_its_subtask_and_restored_before_it_is_started() -> None:
    reader = ScriptedReader()
    contexts: list[SourceReaderContext] = []

    def factory(context: SourceReaderContext) -> ScriptedReader:
        contexts.append(context)
        return reader

    clock = DrivenProcessingTimeService(1000)
    operator = SourceOperator(
        factory, PUNCTUATED, OutputRecorder(), clock, 10, subtask_index=2, parallelism=4
    )
    assert contexts == []
    operator.open([Split("a"), Split("b")])
    assert contexts == [SourceReaderContext(clock.current_processing_time, 2, 4)]
    assert reader.calls == [("add", ["a", "b"]), "start"]
    operator.notify_no_more_splits()
    operator.close()
    assert reader.calls[2:] == ["no more", "close"]


def test_splits_added_before_the_first_poll_have_an_output_at_the_first_poll() -> None:
    reader = ScriptedReader()
    recorder = OutputRecorder()
    operator = SourceOperator(
        lambda context: reader, PUNCTUATED, recorder, DrivenProcessingTimeService(1000), 10
    )
    operator.open()
    operator.add_splits([Split("a"), Split("b")])
    reader.script.append(lambda out: out.create_output_for_split("a").collect("v", 8))
    assert operator.emit_next() is InputStatus.MORE_AVAILABLE
    # b, which has no watermark yet, holds that of a back.
    assert recorder.take() == [("record", 8, "v")]


def test_a_poll_emits_what_the_reader_does_in_one_poll() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    for timestamp in (1, 3):
        tested.reader.script.append(lambda out, t=timestamp: out.collect("v", t))  # type: ignore[misc]
    assert tested.operator.emit_next() is InputStatus.MORE_AVAILABLE
    assert tested.taken() == [("record", 1, "v")]
    assert tested.operator.emit_next() is InputStatus.MORE_AVAILABLE
    assert tested.operator.emit_next() is InputStatus.NOTHING_AVAILABLE


def test_the_end_of_the_input_is_the_end_of_event_time_once() -> None:
    tested = OperatorUnderTest(ASCENDING, ["a"])
    tested.collect("a", 5)
    tested.reader.ends = True
    assert tested.operator.emit_next() is InputStatus.END_OF_INPUT
    assert tested.watermarks() == [END]
    assert tested.operator.emit_next() is InputStatus.END_OF_INPUT
    tested.clock.advance_to(2000)
    assert tested.watermarks() == []
    assert tested.clock.pending_timers == 0
    assert tested.operator.watermark_gauge.value == MAX_TIMESTAMP


def test_an_idle_source_is_active_before_the_last_watermark() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.poll(lambda out: out.create_output_for_split("a").mark_idle())
    tested.reader.ends = True
    tested.operator.emit_next()
    assert tested.watermarks() == [("status", "idle"), ("status", "active"), END]


def test_a_source_that_has_ended_or_was_closed_cannot_emit() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    kept: list[Any] = []
    tested.poll(lambda out: kept.extend([out, out.create_output_for_split("a")]))
    tested.reader.ends = True
    tested.operator.emit_next()
    tested.taken()
    for output, watermark in zip(kept, (8, 10), strict=True):
        with pytest.raises(LifecycleError, match=r"come to its end: .* the record 'late'"):
            output.collect("late", 6)
        with pytest.raises(LifecycleError, match=rf"come to its end: .* the watermark {watermark}"):
            output.emit_watermark(Watermark(watermark))
    with pytest.raises(LifecycleError, match=r"come to its end: .* the status idle"):
        kept[1].mark_idle()
    tested.operator.close()
    with pytest.raises(LifecycleError, match="closed"):
        kept[0].collect("late", 6)
    assert tested.taken() == []


def test_in_batch_execution_only_the_last_watermark_is_emitted() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"], emit_progressive_watermarks=False)
    tested.collect("a", 8)
    tested.collect(None, None)
    tested.poll(lambda out: out.mark_idle())
    tested.clock.advance_to(5000)
    tested.reader.ends = True
    tested.operator.emit_next()
    assert tested.taken() == [("record", 8, "v"), ("record", MIN_TIMESTAMP, "v"), END]


def test_a_snapshot_is_the_readers() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    assert tested.operator.snapshot_state(7) == [Split("at 7")]


def test_operators_and_splits_that_share_a_strategy_share_no_state_of_its_assigner() -> None:
    class Counting(TimestampAssigner):
        def __init__(self) -> None:
            self.count = 0

        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            self.count += 1
            return self.count

    strategy = PUNCTUATED.with_timestamp_assigner(Counting())
    first, second = OperatorUnderTest(strategy), OperatorUnderTest(strategy)
    first.collect("a", None)
    first.collect("b", None)
    second.collect("a", None)
    first.collect("a", None)
    assert [first.taken(), second.taken()] == [
        [("record", 1, "v"), ("record", 1, "v"), ("record", 2, "v")],
        [("record", 1, "v")],
    ]


def test_gauges_show_the_watermark_of_each_split_and_of_the_task() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a", "b"])
    operator = tested.operator
    tested.collect("a", 20)
    assert operator.watermark_gauge.value == MIN_TIMESTAMP
    tested.collect("b", 10)
    watermarks = {split: metrics.current_watermark for split, metrics in operator.split_metrics.items()}
    assert watermarks == {"a": 20, "b": 10}
    assert operator.watermark_gauge.value == 10
    tested.clock.advance_to(1200)
    tested.poll(lambda out: out.release_output_for_split("a"))
    tested.clock.advance_to(1300)
    assert (operator.split_metrics["a"].active_time_ms, operator.split_metrics["b"].active_time_ms) == (
        200,
        300,
    )


def test_a_split_that_comes_back_begins_without_a_watermark_and_keeps_its_times() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.collect("a", 20)
    tested.clock.advance_to(1100)
    tested.poll(lambda out: out.release_output_for_split("a"))
    tested.clock.advance_to(1500)
    tested.operator.add_splits([Split("a")])
    tested.clock.advance_to(1530)
    metrics = tested.operator.split_metrics["a"]
    assert (metrics.current_watermark, metrics.active_time_ms) == (MIN_TIMESTAMP, 130)


def test_latency_markers_begin_with_the_first_poll_and_end_with_the_input() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"], latency_tracking_interval_ms=100, operator_id="clicks")
    tested.clock.advance_to(1000)
    tested.clock.advance_to(1100)
    assert [entry[0] for entry in tested.taken()] == ["latency", "latency"]
    tested.reader.ends = True
    tested.operator.emit_next()
    tested.clock.advance_to(2000)
    assert tested.taken() == [END]


@pytest.mark.parametrize("added", [["a"], ["c", "b"], ["c", "c"]])
def test_a_split_cannot_be_added_twice(added: list[str]) -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a", "b"])
    with pytest.raises(LifecycleError, match=f"split '{added[-1]}' was added before"):
        tested.operator.add_splits([Split(split) for split in added])
    assert tested.reader.calls == []
    assert set(tested.operator.split_metrics) == {"a", "b"}


def test_each_call_needs_its_state_of_life() -> None:
    operator = new_operator(ScriptedReader())
    for call in (
        operator.emit_next,
        operator.notify_no_more_splits,
        lambda: operator.add_splits([Split("a")]),
        lambda: operator.snapshot_state(1),
    ):
        with pytest.raises(LifecycleError, match="is not open yet"):
            call()
    operator.open()
    with pytest.raises(LifecycleError, match="was not polled yet: it cannot be opened"):
        operator.open()
    operator.close()
    operator.close()
    with pytest.raises(LifecycleError, match="was closed: it cannot be polled"):
        operator.emit_next()
    with pytest.raises(LifecycleError, match="was closed: it cannot be given splits"):
        operator.add_splits([Split("a")])


def test_closing_an_operator_that_was_not_opened_is_no_error() -> None:
    reader = ScriptedReader()
    new_operator(reader).close()
    assert reader.calls == []


def test_a_source_that_has_ended_takes_no_splits() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.reader.ends = True
    tested.operator.emit_next()
    with pytest.raises(LifecycleError, match="come to its end: it cannot be given splits"):
        tested.operator.add_splits([Split("b")])


def test_a_reader_must_return_a_status() -> None:
    tested = OperatorUnderTest(PUNCTUATED, ["a"])
    tested.reader.poll_next = lambda output: None  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(UserCodeError, match=r"ScriptedReader\.poll_next gave None"):
        tested.operator.emit_next()


def test_event_time_of_a_column_cannot_be_read_row_by_row() -> None:
    operator = new_operator(ScriptedReader(), ASCENDING.with_timestamp_assigner("ts"))
    operator.open()
    with pytest.raises(ConfigurationError, match="event time comes from ts"):
        operator.emit_next()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"latency_tracking_interval_ms": -1}, "-1 ms"),
        ({"watermark_buffer_size": -1}, "buffer-size"),
        ({"report_watermark": print}, "not aligned"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        new_operator(ScriptedReader(), **settings)


def test_alignment_without_a_coordinator_is_refused() -> None:
    aligned = ASCENDING.with_watermark_alignment("group", Duration.of_millis(1))
    with pytest.raises(ConfigurationError, match="goes nowhere"):
        new_operator(ScriptedReader(), aligned)


def test_a_negative_auto_watermark_interval_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="-5 ms"):
        OperatorUnderTest(ASCENDING, interval_ms=-5)


def test_a_collection_source_is_read_to_its_end() -> None:
    source = TimestampedSource({"a": [("x", 2), ("y", None)], "b": [("z", 4)]})
    recorder = OutputRecorder()
    clock = DrivenProcessingTimeService(1000)
    operator = SourceOperator(source.create_reader, PUNCTUATED, recorder, clock, 10)
    operator.open()
    operator.add_splits(source.create_splits())
    operator.notify_no_more_splits()
    while operator.emit_next() is not InputStatus.END_OF_INPUT:
        pass
    assert recorder.take() == [
        ("record", 2, "x"),
        ("record", 4, "z"),
        ("watermark", 2),
        ("record", MIN_TIMESTAMP, "y"),
        END,
    ]
