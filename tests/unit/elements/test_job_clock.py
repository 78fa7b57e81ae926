"""Timers of a job's tasks fire in the order that each task can tell by itself, in one process or in several."""

from collections.abc import Callable

import pytest

from flinkcore.elements.arrivals import job_clock
from flinkcore.elements.arrivals.job_clock import JobClock, PlacedClock
from flinkcore.elements.arrivals.order_key import ChainCause, cause_of, emission_key, root_key
from flinkcore.errors import DataError, TimerError

Fired = list[tuple[str, int, int]]


@pytest.fixture
def fired() -> Fired:
    return []


def noting(fired: Fired, clock: JobClock, name: str) -> Callable[[int], None]:
    return lambda timestamp: fired.append((name, timestamp, clock.now_ms))


def test_timers_of_one_time_fire_task_by_task_whoever_registered_first(fired: Fired) -> None:
    clock = JobClock(0)
    for task in (2, 0, 1):
        clock.of_task(task).register_timer(5, noting(fired, clock, f"task {task}"))
        clock.of_task(task).register_timer(4, noting(fired, clock, f"task {task}"))
    clock.fire_before(6)
    times = [(timestamp, now) for _, timestamp, now in fired]
    assert times == [(4, 4)] * 3 + [(5, 5)] * 3
    assert [name for name, _, _ in fired] == ["task 0", "task 1", "task 2"] * 2


def test_very_many_firings_between_two_arrivals_are_told(
    fired: Fired, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_clock, "MANY_TIMES", 3)
    clock = JobClock(10)
    clock.of_task(0).schedule_with_fixed_delay(noting(fired, clock, "tick"), 5, 5)
    clock.fire_before(25)
    clock.arrive(25, 0)
    assert len(fired) == 2
    with pytest.warns(UserWarning, match=r"between 25 ms and 50 ms, .* fired 3 times .* up to 35 ms") as told:
        clock.fire_before(50)
    assert len(told) == 1
    assert len(fired) == 7


def test_a_timer_for_a_time_that_has_passed_fires_after_all_that_arrives_now(fired: Fired) -> None:
    clock = JobClock(0)
    clock.arrive(10, 0)
    clock.of_task(0).register_timer(3, noting(fired, clock, "late"))
    clock.fire_before(10)
    assert fired == []
    clock.fire_before(11)
    assert fired == [("late", 3, 10)]


def test_at_an_end_the_clock_shows_the_ms_before_and_timers_wait_for_the_next(fired: Fired) -> None:
    clock = JobClock(0)
    clock.arrive(9, 0)
    clock.fire_before(10)
    clock.end(10, 0)
    assert clock.now_ms == 9
    clock.of_task(0).register_timer(2, noting(fired, clock, "late"))
    assert clock.next_due_ms == 10
    clock.fire_before(11)
    assert fired == [("late", 2, 10)]


def test_what_a_timer_registers_for_a_later_task_fires_in_the_turn_of_that(fired: Fired) -> None:
    clock = JobClock(0)
    later = clock.of_task(1)
    clock.of_task(0).register_timer(
        7, lambda timestamp: later.register_timer(1, noting(fired, clock, "later"))
    )
    clock.fire_before(8)
    assert fired == [("later", 1, 7)]


def test_periodic_timers_and_quiet_tasks(fired: Fired) -> None:
    clock = JobClock(0)
    first, second = clock.of_task(0), clock.of_task(1)
    first.schedule_at_fixed_rate(noting(fired, clock, "rate"), 2, 3)
    second.schedule_with_fixed_delay(noting(fired, clock, "delay"), 1, 4)
    clock.fire_before(7)
    assert fired == [("delay", 1, 1), ("rate", 2, 2), ("rate", 5, 5), ("delay", 5, 5)]
    first.quiesce()
    clock.fire_before(10)
    assert fired[4:] == [("delay", 9, 9)]


def test_an_error_of_flinkcore_in_a_timer_is_raised_as_it_is() -> None:
    def fail(timestamp: int) -> None:
        raise DataError("bad") if timestamp == 1 else ValueError("worse")

    clock = JobClock(0)
    clock.of_task(0).register_timer(1, fail)
    with pytest.raises(DataError, match="bad"):
        clock.fire_before(2)
    clock.of_task(1).register_timer(2, fail)
    with pytest.raises(TimerError, match="worse"):
        clock.fire_before(3)


def test_keys_are_in_the_order_of_causes_and_then_of_emissions() -> None:
    keys = [
        root_key(-5, ChainCause.TIMER, 1),
        root_key(0, ChainCause.END, 3),
        root_key(0, ChainCause.ARRIVAL, 0),
        emission_key(root_key(0, ChainCause.ARRIVAL, 0), 3),
        emission_key(emission_key(root_key(0, ChainCause.ARRIVAL, 0), 3), 900),
        emission_key(root_key(0, ChainCause.ARRIVAL, 0), 4),
        root_key(0, ChainCause.ARRIVAL, 1),
        root_key(0, ChainCause.TIMER, 0),
        root_key(1, ChainCause.END, 0),
    ]
    assert keys == sorted(keys)
    assert cause_of(keys[4]) == (0, False)
    assert cause_of(keys[-1]) == (1, True)
    assert cause_of(keys[0]) == (-5, False)


def test_a_placed_clock_fires_its_timers_between_messages_as_the_clock_of_the_whole_job_does(
    fired: Fired,
) -> None:
    moves: list[bytes] = []
    clock = PlacedClock(0, 4, moves.append)
    clock.of_task(4).register_timer(10, noting(fired, clock, "timer"))
    same_time = [root_key(10, ChainCause.ARRIVAL, 0), root_key(10, ChainCause.TIMER, 3)]
    for key in same_time:
        clock.receive(key)
    assert fired == []
    following = root_key(11, ChainCause.END, 0)
    clock.receive(following)
    assert fired == [("timer", 10, 10)]
    assert clock.now_ms == 10
    assert moves[1:] == [*same_time, root_key(10, ChainCause.TIMER, 4), following]
    assert moves == sorted(moves)


def test_an_end_shows_the_ms_before_it_though_timers_wait_for_its_time(fired: Fired) -> None:
    clock = PlacedClock(0, 0, lambda key: None)
    clock.receive(root_key(8, ChainCause.ARRIVAL, 0))
    for origin in (0, 1):
        clock.receive(root_key(9, ChainCause.END, origin))
        assert clock.now_ms == 8
        clock.of_task(3).register_timer(1, noting(fired, clock, "late"))
    assert fired == []


def test_a_message_from_a_timer_comes_after_the_timers_of_lesser_tasks_at_its_time(fired: Fired) -> None:
    clock = PlacedClock(0, 0, lambda key: None)
    for task in (3, 7):
        clock.of_task(task).register_timer(9, noting(fired, clock, f"task {task}"))
    clock.receive(root_key(9, ChainCause.ARRIVAL, 8))
    assert fired == []
    clock.receive(root_key(9, ChainCause.TIMER, 3))
    assert fired == []
    clock.receive(root_key(9, ChainCause.TIMER, 5))
    assert fired == [("task 3", 9, 9)]
    clock.receive(root_key(10, ChainCause.ARRIVAL, 0))
    assert fired == [("task 3", 9, 9), ("task 7", 9, 9)]
