"""The clock that replays and tests drive, after Flink's TestProcessingTimeService."""

from collections.abc import Callable

import pytest

from flinkcore.errors import ConfigurationError, LifecycleError, TimerError
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService


def test_a_timer_runs_at_its_time_and_sees_the_clock_at_the_target() -> None:
    clock = DrivenProcessingTimeService(1000)
    seen: list[tuple[int, int]] = []
    timer = clock.register_timer(1100, lambda t: seen.append((t, clock.current_processing_time())))
    clock.advance_to(1099)
    assert seen == []
    assert not timer.is_done
    clock.advance_to(1250)
    assert seen == [(1100, 1250)]
    assert timer.is_done
    assert not timer.is_cancelled
    clock.advance_to(2000)
    assert len(seen) == 1


def test_timers_run_by_time_and_then_by_registration() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[str] = []
    for name, time in [("a", 5), ("b", 3), ("c", 5), ("d", -7), ("e", 3)]:
        clock.register_timer(time, lambda _, name=name: seen.append(name))  # type: ignore[misc]
    clock.advance_to(5)
    assert seen == ["d", "b", "e", "a", "c"]


def test_timers_registered_by_callbacks_run_in_the_same_advance_in_their_place() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []

    def register_more(timestamp: int) -> None:
        seen.append(timestamp)
        for time in (15, -3, 21, 12):
            clock.register_timer(time, seen.append)

    clock.register_timer(10, register_more)
    clock.register_timer(12, seen.append)
    clock.advance_to(20)
    assert seen == [10, -3, 12, 12, 15]
    clock.advance_to(21)
    assert seen[5:] == [21]


def test_a_timer_in_the_past_waits_for_the_next_advance_even_one_to_the_same_time() -> None:
    clock = DrivenProcessingTimeService(100)
    seen: list[int] = []
    clock.register_timer(50, seen.append)
    clock.register_timer(100, seen.append)
    assert seen == []
    clock.advance_to(100)
    assert seen == [50, 100]


def test_the_clock_may_be_set_back_and_runs_nothing_twice() -> None:
    clock = DrivenProcessingTimeService(100)
    seen: list[int] = []
    clock.register_timer(110, seen.append)
    clock.advance_to(120)
    clock.advance_to(90)
    assert clock.current_processing_time() == 90
    clock.advance_to(115)
    assert seen == [110]


def test_a_cancelled_timer_does_not_run() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []
    timers = [clock.register_timer(time, seen.append) for time in range(10)]
    assert all(timer.cancel() for timer in timers[:9])
    assert not timers[0].cancel()
    assert timers[0].is_cancelled
    assert timers[0].is_done
    assert clock.pending_timers == 1
    clock.advance_to(20)
    assert seen == [9]
    assert not timers[9].cancel()
    assert not timers[9].is_cancelled


def test_a_callback_may_cancel_a_timer_due_in_the_same_advance() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []
    later = clock.register_timer(2, seen.append)
    clock.register_timer(1, lambda _: seen.append(later.cancel()))
    clock.advance_to(3)
    assert seen == [True]


def test_a_fixed_rate_runs_once_for_every_period_that_a_long_advance_passes() -> None:
    clock = DrivenProcessingTimeService(1000)
    seen: list[int] = []
    timer = clock.schedule_at_fixed_rate(seen.append, 50, 100)
    clock.advance_to(1300)
    assert seen == [1050, 1150, 1250]
    clock.advance_to(1350)
    assert seen[3:] == [1350]
    assert not timer.is_done
    assert timer.cancel()
    clock.advance_to(9000)
    assert len(seen) == 4


def test_a_fixed_delay_counts_from_the_end_of_the_call() -> None:
    clock = DrivenProcessingTimeService(1000)
    seen: list[int] = []
    clock.schedule_with_fixed_delay(seen.append, 0, 100)
    clock.advance_to(1350)
    assert seen == [1000]
    clock.advance_to(1449)
    assert seen == [1000]
    clock.advance_to(1460)
    assert seen == [1000, 1450]


@pytest.mark.parametrize("schedule", ["schedule_at_fixed_rate", "schedule_with_fixed_delay"])
def test_a_periodic_timer_can_end_itself(schedule: str) -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []

    def once(timestamp: int) -> None:
        seen.append(timestamp)
        assert timer.cancel()

    timer = getattr(clock, schedule)(once, 1, 1)
    clock.advance_to(1)
    clock.advance_to(5)
    assert seen == [1]
    assert timer.is_done
    assert clock.pending_timers == 0


def test_an_error_in_a_callback_leaves_the_advance_and_names_the_time_of_the_timer() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []

    def fail(_: int) -> None:
        raise ValueError("no such row")

    clock.register_timer(1, seen.append)
    clock.register_timer(7, fail)
    clock.register_timer(8, seen.append)
    with pytest.raises(TimerError, match=r"timer at 7 ms failed: ValueError: no such row") as failure:
        clock.advance_to(10)
    assert failure.value.timestamp_ms == 7
    assert isinstance(failure.value.__cause__, ValueError)
    assert seen == [1]
    assert clock.current_processing_time() == 10
    clock.advance_to(10)
    assert seen == [1, 8]


@pytest.mark.parametrize("schedule", ["schedule_at_fixed_rate", "schedule_with_fixed_delay"])
def test_a_periodic_timer_survives_its_error(schedule: str) -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []

    def fail_first(timestamp: int) -> None:
        seen.append(timestamp)
        if len(seen) == 1:
            raise ValueError("first")

    getattr(clock, schedule)(fail_first, 10, 10)
    with pytest.raises(TimerError):
        clock.advance_to(10)
    clock.advance_to(20)
    assert seen == [10, 20]


def test_a_callback_cannot_advance_its_own_clock() -> None:
    clock = DrivenProcessingTimeService()
    clock.register_timer(1, clock.advance_to)
    with pytest.raises(TimerError) as failure:
        clock.advance_to(1)
    assert isinstance(failure.value.__cause__, LifecycleError)


def test_after_quiescing_no_timer_completes_and_none_is_an_error() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []
    pending = clock.register_timer(1, seen.append)
    clock.quiesce()
    after = [
        clock.register_timer(1, seen.append),
        clock.schedule_at_fixed_rate(seen.append, 0, 1),
        clock.schedule_with_fixed_delay(seen.append, 0, 1),
    ]
    clock.advance_to(100)
    assert seen == []
    assert not any(timer.is_done for timer in [pending, *after])
    assert after[0].cancel()
    assert not clock.is_terminated


def test_a_callback_that_quiesces_is_the_last_one() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []
    clock.register_timer(1, lambda _: clock.quiesce())
    clock.register_timer(1, seen.append)
    clock.schedule_at_fixed_rate(seen.append, 2, 1)
    clock.advance_to(5)
    assert seen == []


def test_after_a_shutdown_registering_is_an_error() -> None:
    clock = DrivenProcessingTimeService()
    seen: list[int] = []
    clock.register_timer(1, seen.append)
    clock.shutdown_service()
    clock.quiesce()
    assert clock.is_terminated
    registrations: list[Callable[[], object]] = [
        lambda: clock.register_timer(5, seen.append),
        lambda: clock.schedule_at_fixed_rate(seen.append, 5, 1),
        lambda: clock.schedule_with_fixed_delay(seen.append, 5, 1),
    ]
    for register in registrations:
        with pytest.raises(LifecycleError, match=r"timer at 5 ms comes after the service was shut down"):
            register()
    clock.advance_to(100)
    assert seen == []


@pytest.mark.parametrize("schedule", ["schedule_at_fixed_rate", "schedule_with_fixed_delay"])
@pytest.mark.parametrize(("delay", "period"), [(-1, 5), (0, 0), (0, -5)])
def test_negative_delays_and_periods_are_refused(schedule: str, delay: int, period: int) -> None:
    clock = DrivenProcessingTimeService()
    with pytest.raises(ConfigurationError, match="ms"):
        getattr(clock, schedule)(print, delay, period)
    assert clock.pending_timers == 0


def test_a_time_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"milliseconds since the epoch, not 1\.5"):
        DrivenProcessingTimeService().register_timer(1.5, print)  # type: ignore[arg-type]


def test_many_cancelled_timers_are_let_go_of() -> None:
    clock = DrivenProcessingTimeService()
    kept = clock.register_timer(10**6, print)
    for time in range(1000):
        clock.register_timer(10**9 + time, print).cancel()
    assert clock.pending_timers == 1
    assert len(clock._schedule._heap) <= 2
    assert not kept.is_done
