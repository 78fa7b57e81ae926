"""Source contexts, after Flink's StreamSourceContextIdleDetectionTests and StreamSourceOperatorWatermarksTest."""

from collections.abc import Callable
from threading import Event, RLock, Thread, current_thread
from typing import Any

import pytest
from equipment.recorders import OutputRecorder

from flinkcore.common import MAX_TIMESTAMP, Watermark
from flinkcore.datastream import SourceContext, TimeCharacteristic
from flinkcore.elements.sources.source_contexts import LockedSourceContext, get_source_context
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.operators.records.stream_elements import WatermarkStatus
from flinkcore.operators.timers.processing_time import (
    DrivenProcessingTimeService,
    SystemProcessingTimeService,
)

EventTime, IngestionTime, ProcessingTime = (
    TimeCharacteristic.EventTime,
    TimeCharacteristic.IngestionTime,
    TimeCharacteristic.ProcessingTime,
)


class Harness:
    """A context of 50 ms watermark interval, its clock at 1000, and what it emits."""

    def __init__(self, characteristic: TimeCharacteristic, **settings: Any) -> None:
        self.heard = OutputRecorder()
        self.clock = DrivenProcessingTimeService(1000)
        self.context: LockedSourceContext[str] = get_source_context(
            characteristic,
            self.clock,
            RLock(),
            self.heard,
            **{"watermark_interval_ms": 50, **settings},
        )

    def emitted(self) -> list[Any]:
        return [
            tuple(reversed(fields)) if kind == "record" else fields[0] for kind, *fields in self.heard.take()
        ]


EMISSIONS: list[Callable[[SourceContext[str]], None]] = [
    lambda context: context.collect("a"),
    lambda context: context.collect_with_timestamp("a", 1),
    lambda context: context.emit_watermark(Watermark(1)),
    lambda context: context.emit_watermark(Watermark.MAX_WATERMARK),
    lambda context: context.mark_as_temporarily_idle(),
]


@pytest.mark.parametrize("characteristic", list(TimeCharacteristic))
@pytest.mark.parametrize("is_idle", [False, True])
def test_a_closed_context_tells_where_it_was_when_it_was_closed(
    characteristic: TimeCharacteristic, is_idle: bool
) -> None:
    harness = Harness(characteristic, idle_timeout_ms=100)
    context = harness.context
    harness.clock.advance_to(1060)
    context.collect_with_timestamp("a", 7)
    context.emit_watermark(Watermark(5))
    if is_idle:
        context.mark_as_temporarily_idle()
    held = context.snapshot_state(), context.watermark_ms, context.is_idle
    context.close()
    assert (context.snapshot_state(), context.watermark_ms, context.is_idle) == held
    context.close()
    assert (context.snapshot_state(), context.watermark_ms, context.is_idle) == held


@pytest.mark.parametrize("characteristic", list(TimeCharacteristic))
@pytest.mark.parametrize("emit", EMISSIONS)
def test_a_source_that_emits_after_close_fails_and_emits_nothing(
    characteristic: TimeCharacteristic, emit: Callable[[SourceContext[str]], None]
) -> None:
    harness = Harness(characteristic, idle_timeout_ms=100)
    lock = harness.context.get_checkpoint_lock()
    harness.context.close()
    harness.context.close()
    with pytest.raises(LifecycleError, match="source context was closed already: the source cannot emit"):
        emit(harness.context)
    harness.clock.advance_to(5000)
    assert harness.emitted() == []
    assert harness.clock.pending_timers == 0
    assert harness.context.get_checkpoint_lock() is lock


class ClosingOutput(OutputRecorder):
    """Closes its context at the first entry of a kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.context: SourceContext[str] | None = None

    def add(self, kind: str, **fields: Any) -> None:
        super().add(kind, **fields)
        if kind == self.kind and self.context is not None:
            self.context.close()


@pytest.mark.parametrize(
    ("characteristic", "kind"),
    [(IngestionTime, "watermark"), (IngestionTime, "status"), (EventTime, "status")],
)
def test_a_context_closed_by_what_its_own_timer_emits_registers_no_further_timer(
    characteristic: TimeCharacteristic, kind: str
) -> None:
    clock, heard = DrivenProcessingTimeService(1000), ClosingOutput(kind)
    context: SourceContext[str] = get_source_context(
        characteristic, clock, RLock(), heard, watermark_interval_ms=50, idle_timeout_ms=70
    )
    heard.context = context
    while kind not in [entry["type"] for entry in heard.entries]:
        clock.advance_to(clock.current_processing_time() + 50)
    heard.take()
    assert clock.pending_timers == 0
    clock.advance_to(5000)
    assert heard.take() == []


@pytest.mark.parametrize("characteristic", [IngestionTime, EventTime])
def test_activity_that_closes_its_context_starts_no_idle_check(characteristic: TimeCharacteristic) -> None:
    clock, heard = DrivenProcessingTimeService(1000), ClosingOutput("status")
    context: SourceContext[str] = get_source_context(
        characteristic, clock, RLock(), heard, watermark_interval_ms=500, idle_timeout_ms=100
    )
    clock.advance_to(1100)  # the check finds it idle, and none is scheduled
    heard.context = context
    context.collect("a")
    assert clock.pending_timers == 0


@pytest.mark.parametrize("characteristic", [IngestionTime, EventTime])
def test_a_timer_that_waits_for_the_lock_while_the_context_is_closed_has_no_effect(
    characteristic: TimeCharacteristic,
) -> None:
    lock, waits = RLock(), Event()

    class Noticed:
        def __enter__(self) -> None:
            if current_thread() is timer_thread:
                waits.set()
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    clock, heard = DrivenProcessingTimeService(1000), OutputRecorder()
    timer_thread = Thread(target=clock.advance_to, args=(1100,))
    context: SourceContext[str] = get_source_context(
        characteristic, clock, Noticed(), heard, watermark_interval_ms=100, idle_timeout_ms=100
    )
    with lock:
        timer_thread.start()
        assert waits.wait(10)
        context.close()
    timer_thread.join(10)
    assert heard.take() == []
    assert clock.pending_timers == 0


def test_closing_waits_for_the_lock_that_a_timer_holds() -> None:
    lock, clock, heard = RLock(), DrivenProcessingTimeService(1000), OutputRecorder()
    context: SourceContext[str] = get_source_context(
        IngestionTime, clock, lock, heard, watermark_interval_ms=100
    )
    closing = Thread(target=context.close)
    with lock:
        closing.start()
        closing.join(0.02)
        assert closing.is_alive()
        clock.advance_to(1100)
    closing.join(10)
    assert clock.pending_timers == 0


def test_manual_watermarks_are_passed_as_they_are() -> None:
    harness = Harness(EventTime)
    for timestamp in (10, 5, 5, MAX_TIMESTAMP, 7):
        harness.context.emit_watermark(Watermark(timestamp))
    assert harness.emitted() == [10, 5, 5, MAX_TIMESTAMP, 7]


def test_an_element_without_timestamp_carries_the_one_given_last() -> None:
    harness = Harness(EventTime)
    harness.context.collect("a")
    harness.context.collect_with_timestamp("b", -4)
    harness.context.collect("c")
    assert harness.emitted() == [("a", None), ("b", -4), ("c", -4)]


def test_without_progressive_watermarks_only_the_final_one_is_passed() -> None:
    harness = Harness(EventTime, emit_progressive_watermarks=False)
    harness.context.emit_watermark(Watermark(10))
    harness.context.emit_watermark(Watermark.MAX_WATERMARK)
    assert harness.emitted() == [MAX_TIMESTAMP]


def test_a_watermark_that_is_not_passed_is_no_activity() -> None:
    harness = Harness(EventTime, emit_progressive_watermarks=False)
    harness.context.mark_as_temporarily_idle()
    harness.context.emit_watermark(Watermark(10))
    assert harness.emitted() == ["idle"]


def test_an_active_source_is_found_idle_by_the_second_check_after_its_last_element() -> None:
    harness = Harness(EventTime, idle_timeout_ms=100)
    harness.context.collect("a")
    assert harness.emitted() == [("a", None)]
    harness.clock.advance_to(1100)
    harness.clock.advance_to(1199)
    assert harness.emitted() == []
    harness.clock.advance_to(1200)
    assert harness.emitted() == ["idle"]
    harness.clock.advance_to(9000)
    assert harness.emitted() == []
    harness.context.collect("b")
    assert harness.emitted() == ["active", ("b", None)]


def test_a_source_that_emits_nothing_is_found_idle_by_the_first_check() -> None:
    harness = Harness(EventTime, idle_timeout_ms=100)
    harness.clock.advance_to(1099)
    assert harness.emitted() == []
    harness.clock.advance_to(1100)
    assert harness.emitted() == ["idle"]


def test_a_source_can_say_that_it_is_idle_and_is_active_with_its_next_watermark() -> None:
    harness = Harness(EventTime)
    harness.context.mark_as_temporarily_idle()
    harness.context.mark_as_temporarily_idle()
    harness.context.emit_watermark(Watermark(3))
    assert harness.emitted() == ["idle", "active", 3]


def test_ingestion_time_gives_the_clocks_time_and_ignores_timestamps_and_watermarks() -> None:
    harness = Harness(IngestionTime)
    harness.clock.advance_to(1020)
    harness.context.collect_with_timestamp("a", 7)
    harness.context.emit_watermark(Watermark(2000))
    assert harness.emitted() == [("a", 1020), 1000]


def test_automatic_watermarks_are_multiples_of_the_interval() -> None:
    harness = Harness(IngestionTime)
    harness.clock.advance_to(1049)
    assert harness.emitted() == []
    harness.clock.advance_to(1073)
    assert harness.emitted() == [1050]
    harness.clock.advance_to(1123)
    assert harness.emitted() == [1100]


def test_a_record_that_overtakes_the_next_watermark_sends_it_early_and_the_tick_does_not_repeat_it() -> None:
    harness = Harness(IngestionTime)
    harness.clock.advance_to(1010)
    harness.context.collect("a")
    assert harness.emitted() == [("a", 1010), 1000]
    harness.clock.advance_to(1049)
    harness.context.collect("b")
    assert harness.emitted() == [("b", 1049)]
    harness.clock.advance_to(1050)
    assert harness.emitted() == []


def test_the_final_watermark_ends_automatic_ones() -> None:
    harness = Harness(IngestionTime)
    harness.context.emit_watermark(Watermark.MAX_WATERMARK)
    harness.context.emit_watermark(Watermark.MAX_WATERMARK)
    assert harness.emitted() == [MAX_TIMESTAMP]
    assert harness.clock.pending_timers == 0
    harness.clock.advance_to(2000)
    harness.context.collect("a")
    assert harness.emitted() == [("a", 2000)]


def test_a_tick_finds_an_idle_source_before_the_check_does_and_an_idle_source_makes_no_watermarks() -> None:
    harness = Harness(IngestionTime, idle_timeout_ms=60)
    harness.context.collect("a")
    assert harness.emitted() == [("a", 1000), 1000]
    harness.clock.advance_to(1050)
    harness.clock.advance_to(1060)
    harness.clock.advance_to(1100)
    assert harness.emitted() == ["idle"]
    harness.clock.advance_to(1400)
    assert harness.emitted() == []
    harness.context.collect("b")
    assert harness.emitted() == ["active", ("b", 1400), 1400]


def test_processing_time_ignores_timestamps_watermarks_and_idleness() -> None:
    harness = Harness(ProcessingTime, watermark_interval_ms=0, idle_timeout_ms=100)
    harness.context.collect("a")
    harness.context.collect_with_timestamp("b", 5)
    harness.context.emit_watermark(Watermark.MAX_WATERMARK)
    harness.context.mark_as_temporarily_idle()
    harness.clock.advance_to(5000)
    assert harness.emitted() == [("a", None), ("b", None)]


@pytest.mark.parametrize("interval", [0, -1])
def test_ingestion_time_without_an_interval_is_refused_and_leaves_no_timer(interval: int) -> None:
    clock = DrivenProcessingTimeService()
    with pytest.raises(ConfigurationError, match="watermark interval must be at least 1 ms"):
        get_source_context(
            IngestionTime,
            clock,
            RLock(),
            OutputRecorder(),
            watermark_interval_ms=interval,
            idle_timeout_ms=10,
        )
    assert clock.pending_timers == 0


def test_ingestion_time_without_progressive_watermarks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not available without progressive watermarks"):
        Harness(IngestionTime, emit_progressive_watermarks=False)


@pytest.mark.parametrize("characteristic", [EventTime, IngestionTime])
@pytest.mark.parametrize("timeout", [0, -1])
def test_an_idle_timeout_that_is_not_above_zero_is_refused(
    characteristic: TimeCharacteristic, timeout: int
) -> None:
    with pytest.raises(ConfigurationError, match="idle timeout must be at least 1 ms"):
        Harness(characteristic, idle_timeout_ms=timeout)


def test_an_unknown_characteristic_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="one of TimeCharacteristic, not 'event'"):
        Harness("event")  # type: ignore[arg-type]


@pytest.mark.parametrize("characteristic", list(TimeCharacteristic))
def test_emission_waits_for_the_lock_that_timers_hold(characteristic: TimeCharacteristic) -> None:
    harness = Harness(characteristic)
    emitter = Thread(target=harness.context.collect, args=("a",))
    with harness.context.get_checkpoint_lock():
        emitter.start()
        emitter.join(0.01)
        assert harness.heard.entries == []
    emitter.join()
    assert harness.emitted()[0][0] == "a"


def test_idleness_is_found_on_the_systems_clock() -> None:
    lock = RLock()
    found_idle = Event()
    errors: list[Exception] = []

    class Output(OutputRecorder):
        def emit_watermark_status(self, status: WatermarkStatus) -> None:
            super().emit_watermark_status(status)
            found_idle.set()

    heard = Output()
    service = SystemProcessingTimeService(errors.append, lock)
    context = get_source_context(EventTime, service, lock, heard, watermark_interval_ms=0, idle_timeout_ms=1)
    assert found_idle.wait(20)
    context.close()
    assert service.shutdown_and_await_pending(20_000)
    assert errors == []
    assert heard.take() == [("status", "idle")]
