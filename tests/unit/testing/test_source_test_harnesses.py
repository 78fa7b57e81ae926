"""Harnesses of sources: polls, emissions, the clock, snapshots, alignment."""

from typing import Any, ClassVar

import pytest
from equipment.timestamped_source import TimestampedSource
from jobs.source_jobs import ListedSource

from flinkcore.common import Duration, Types, Watermark, WatermarkStrategy
from flinkcore.datastream import CheckpointedFunction, RuntimeContext, SourceFunction, TimeCharacteristic
from flinkcore.datastream.connectors import InputStatus, NumberSequenceSource
from flinkcore.datastream.functions import PacedSourceContext
from flinkcore.datastream.state import ListStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, UserCodeError
from flinkcore.testing import (
    HarnessMakers,
    SourceOperatorTestHarness,
    StreamRecord,
    TaskInfo,
    WatermarkStatus,
    assert_output,
    for_source,
    for_source_function,
)

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()
NO_WATERMARKS = WatermarkStrategy.no_watermarks()
END = Watermark.MAX_WATERMARK


def test_a_source_is_polled_and_ticks_when_the_test_says() -> None:
    source = TimestampedSource({"a": [("x", 1), ("y", 2)], "b": [("z", 7)]})
    with for_source(source, MONOTONOUS, auto_watermark_interval_ms=100) as harness:
        assert harness.emit_next(2) is InputStatus.MORE_AVAILABLE
        harness.advance_time(100)
        assert_output(harness, [StreamRecord("x", 1), StreamRecord("z", 7), Watermark(0)])
        assert harness.emit_available() is InputStatus.END_OF_INPUT
        assert harness.emit_next(5) is InputStatus.END_OF_INPUT
        assert_output(harness.take_output()[3:], [StreamRecord("y", 2), END])


def test_a_source_that_waits_for_a_split_turns_idle() -> None:
    strategy = MONOTONOUS.with_idleness(Duration.of_millis(150))
    with for_source(NumberSequenceSource(1, 3), strategy, auto_watermark_interval_ms=100) as harness:
        harness.emit_next()
        for _ in range(4):
            harness.advance_time(100)
        assert harness.get_output()[-1] is WatermarkStatus.IDLE


def test_a_snapshot_of_splits_is_restored_where_they_were() -> None:
    for source in (NumberSequenceSource(1, 6), TimestampedSource({"a": [(n, n) for n in range(1, 7)]})):
        with for_source(source, NO_WATERMARKS) as harness:
            harness.emit_next(2)
            snapshot = harness.snapshot()
        with for_source(source, NO_WATERMARKS, restore_from=snapshot) as restored:
            restored.emit_next(1)
            again = restored.snapshot()
        with for_source(source, NO_WATERMARKS, restore_from=again) as last:
            last.emit_available()
            values = [harness.extract_output_values() for harness in (harness, restored, last)]
        assert values == [[1, 2], [3], [4, 5, 6]]


def test_each_subtask_reads_its_share_of_the_splits() -> None:
    values = []
    for index in range(2):
        with for_source(
            NumberSequenceSource(1, 4), NO_WATERMARKS, task=TaskInfo("numbers", parallelism=2, index=index)
        ) as harness:
            harness.emit_available()
            values.append(harness.extract_output_values())
    assert values == [[1, 2], [3, 4]]


def test_a_source_reports_its_watermark_and_waits() -> None:
    aligned = MONOTONOUS.with_watermark_alignment("group", Duration.of_millis(5), Duration.of_millis(10))
    source = TimestampedSource({"a": [(at, at) for at in range(0, 100, 10)]})
    with for_source(source, aligned, auto_watermark_interval_ms=1, watermark_buffer_size=0) as harness:
        harness.emit_next(3)
        harness.advance_time(10)
        assert harness.get_reported_watermarks() == [19]
        harness.update_max_desired_watermark(15)
        assert harness.emit_next() is InputStatus.NOTHING_AVAILABLE
        assert harness.get_operator().split_metrics["a"].is_paused
        harness.update_max_desired_watermark(30)
        assert harness.emit_next() is InputStatus.MORE_AVAILABLE
        with pytest.raises(DataError, match="the maximum desired watermark"):
            harness.update_max_desired_watermark("30")  # type: ignore[arg-type]


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="this harness takes a Source, not 5"):
        for_source(5, NO_WATERMARKS)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="this harness takes a SourceFunction, not 5"):
        for_source_function(5)  # type: ignore[arg-type]
    harness: SourceOperatorTestHarness[int] = SourceOperatorTestHarness(
        NumberSequenceSource(1, 2), NO_WATERMARKS
    )
    with pytest.raises(LifecycleError, match="needs an open harness"):
        harness.emit_next()
    harness.open()
    with pytest.raises(LifecycleError, match="before the harness is opened"):
        harness.initialize_state([])
    harness.close()
    with pytest.raises(LifecycleError, match="after the harness was closed"):
        harness.emit_next()


class Beats(SourceFunction):
    """Emits numbers every 50 ms until it is cancelled; notes what it is called."""

    calls: ClassVar[list[str]] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append(f"open {runtime_context.get_index_of_this_subtask()}")
        self.running = True

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        number = 0
        while self.running:
            ctx.collect_with_timestamp(number, number * 10)
            ctx.sleep(50)
            number += 1
        self.calls.append("left")

    def cancel(self) -> None:
        self.running = False

    def close(self) -> None:
        self.calls.append("close")


def test_a_function_emits_when_the_test_says_and_its_sleep_moves_the_clock() -> None:
    Beats.calls.clear()
    with for_source_function(Beats(), Types.INT(), idle_timeout=Duration.of_millis(30)) as harness:
        assert harness.emit_next(3)
        assert harness.get_processing_time() == 100
        idle, active = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE
        records = [StreamRecord(number, number * 10) for number in range(3)]
        # Of the checks at 30, 60 and 90 ms, only the last finds that no element came since the one before.
        assert_output(harness, [records[0], records[1], idle, active, records[2]])
    assert Beats.calls == ["open 0", "left", "close"]


def test_a_function_with_states_begins_without_any() -> None:
    class Stated(SourceFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            self.states = context.get_operator_state_store().get_list_state(ListStateDescriptor("n"))
            self.was_restored = context.is_restored()

        def snapshot_state(self, context: Any) -> None:
            """There is nothing to bring up to date."""

        def run(self, ctx: Any) -> None:
            ctx.collect((self.was_restored, self.states.get()))

        def cancel(self) -> None:
            """It ends by itself."""

    with for_source_function(Stated()) as harness:
        harness.emit_next()
        assert_output(harness, [StreamRecord((False, []))])


def test_a_function_that_ends_emits_the_last_watermark() -> None:
    elements = [(3, "a", 1), (5, "b", 2)]
    with for_source_function(
        ListedSource(elements), time_characteristic=TimeCharacteristic.EventTime
    ) as harness:
        harness.emit_all()
        assert not harness.emit_next()
        assert_output(
            harness, [StreamRecord(elements[0], 3), Watermark(3), StreamRecord(elements[1], 5), END]
        )


def test_a_failure_of_a_function_is_that_of_the_emission() -> None:
    class Failing(SourceFunction):
        def run(self, ctx: PacedSourceContext[Any]) -> None:
            raise KeyError("gone")

        def cancel(self) -> None:
            pass

    with (
        pytest.raises(UserCodeError, match=r"Failing\.run failed"),
        for_source_function(Failing()) as harness,
    ):
        harness.emit_next()


def test_makers_close_harnesses_of_sources() -> None:
    Beats.calls.clear()
    with HarnessMakers() as harnesses:
        harnesses.for_source_function(Beats()).emit_next()
        harnesses.for_source(NumberSequenceSource(1, 2), NO_WATERMARKS).emit_next()
        harnesses.refuse_leaks()
    assert Beats.calls == ["open 0", "left", "close"]
