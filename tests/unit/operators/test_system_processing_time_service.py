"""The system's clock with callbacks on a thread, after Flink's SystemProcessingTimeServiceTest."""

import threading
from collections.abc import Iterator
from queue import Queue

import pytest

from flinkcore.errors import ConfigurationError, LifecycleError, TimerError
from flinkcore.operators.timers.processing_time import SystemProcessingTimeService

WAIT = 20  # seconds until a hanging test fails


class Task:
    """A task's side of the service: its lock, and the errors that it is told."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.errors: Queue[TimerError] = Queue()
        self.service = SystemProcessingTimeService(self.errors.put, self.lock)

    def now(self) -> int:
        return self.service.current_processing_time()


@pytest.fixture
def task() -> Iterator[Task]:
    task = Task()
    yield task
    assert task.service.shutdown_and_await_pending(WAIT * 1000)
    assert task.errors.empty()


def test_a_callback_runs_once_the_clock_has_left_its_time_behind(task: Task) -> None:
    seen: Queue[tuple[int, int]] = Queue()
    time = task.now() + 5
    timer = task.service.register_timer(time, lambda t: seen.put((t, task.now())))
    timestamp, clock = seen.get(timeout=WAIT)
    assert timestamp == time
    assert clock >= time + 1
    assert timer.is_done
    assert not timer.is_cancelled


def test_overdue_callbacks_run_by_time_and_then_by_registration(task: Task) -> None:
    seen: Queue[str] = Queue()
    with task.lock:
        for name, time in [("a", 5), ("b", -3), ("c", 5), ("d", -(2**63))]:
            task.service.register_timer(time, lambda _, name=name: seen.put(name))  # type: ignore[misc]
    assert [seen.get(timeout=WAIT) for _ in range(4)] == ["d", "b", "a", "c"]


def test_a_timer_beyond_the_end_of_time_does_not_keep_others_from_running(task: Task) -> None:
    seen: Queue[int] = Queue()
    never = task.service.register_timer(2**63 - 1, seen.put)
    task.service.register_timer(0, seen.put)
    assert seen.get(timeout=WAIT) == 0
    assert never.cancel()


def test_callbacks_never_run_beside_the_tasks_own_code(task: Task) -> None:
    began = threading.Event()
    with task.lock:
        task.service.register_timer(0, lambda _: began.set())
        assert not began.wait(0.02)
    assert began.wait(WAIT)


def test_a_timer_that_the_task_cancels_under_its_lock_does_not_run_though_it_was_due(task: Task) -> None:
    seen: Queue[str] = Queue()
    with task.lock:
        overdue = task.service.register_timer(0, lambda _: seen.put("cancelled"))
        task.service.register_timer(1, lambda _: seen.put("kept"))
        assert overdue.cancel()
        assert not overdue.cancel()
    assert seen.get(timeout=WAIT) == "kept"
    assert overdue.is_cancelled


def test_a_callback_may_register_timers_and_take_the_tasks_lock_again(task: Task) -> None:
    seen: Queue[int] = Queue()

    def again(timestamp: int) -> None:
        with task.lock:
            task.service.register_timer(timestamp + 1, seen.put)

    task.service.register_timer(41, again)
    assert seen.get(timeout=WAIT) == 42


def test_a_fixed_rate_is_passed_the_times_of_its_schedule(task: Task) -> None:
    seen: Queue[int] = Queue()
    timer = task.service.schedule_at_fixed_rate(seen.put, 0, 2)
    first, second, third = (seen.get(timeout=WAIT) for _ in range(3))
    assert (second - first, third - second) == (2, 2)
    assert not timer.is_done
    assert timer.cancel()


def test_a_fixed_delay_counts_from_the_end_of_the_call(task: Task) -> None:
    seen: Queue[tuple[int, int]] = Queue()

    def slow(timestamp: int) -> None:
        threading.Event().wait(0.005)
        seen.put((timestamp, task.now()))

    timer = task.service.schedule_with_fixed_delay(slow, 0, 1)
    _, end_of_first = seen.get(timeout=WAIT)
    second, _ = seen.get(timeout=WAIT)
    assert second >= end_of_first + 1
    assert timer.cancel()


@pytest.mark.parametrize(
    "schedule", ["register_timer", "schedule_at_fixed_rate", "schedule_with_fixed_delay"]
)
@pytest.mark.parametrize("error", [ValueError("no such row"), SystemExit(3)])
def test_an_error_in_a_callback_is_reported_to_the_task_and_the_service_goes_on(
    task: Task, schedule: str, error: BaseException
) -> None:
    seen: Queue[int] = Queue()

    def fail(_: int) -> None:
        raise error

    arguments = (7, fail) if schedule == "register_timer" else (fail, 0, 3_600_000)
    getattr(task.service, schedule)(*arguments)
    reported = task.errors.get(timeout=WAIT)
    assert reported.__cause__ is error
    assert str(reported.timestamp_ms) in str(reported)
    task.service.register_timer(0, seen.put)
    assert seen.get(timeout=WAIT) == 0


def test_an_error_handler_that_raises_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    uncaught: Queue[object] = Queue()
    monkeypatch.setattr(threading, "excepthook", uncaught.put)

    def refuse(error: TimerError) -> None:
        raise error

    service = SystemProcessingTimeService(refuse, threading.RLock())
    service.register_timer(0, lambda _: 1 // 0)
    uncaught.get(timeout=WAIT)
    assert service.shutdown_and_await_pending(WAIT * 1000)
    assert service.is_terminated
    with pytest.raises(LifecycleError):
        service.register_timer(0, print)


def test_quiescing_waits_for_the_callback_that_runs(task: Task) -> None:
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def block(_: int) -> None:
        began.set()
        may_end.wait(WAIT)
        ended.set()

    task.service.register_timer(0, block)
    assert began.wait(WAIT)
    threading.Timer(0.01, may_end.set).start()
    task.service.quiesce()
    assert ended.is_set()


def test_after_quiescing_pending_and_new_timers_never_complete(task: Task) -> None:
    seen: Queue[int] = Queue()
    with task.lock:  # a callback due now must not have begun
        timers = [task.service.register_timer(0, seen.put)]
        task.service.quiesce()
    timers.append(task.service.register_timer(0, seen.put))
    timers.append(task.service.schedule_at_fixed_rate(seen.put, 0, 1))
    timers.append(task.service.schedule_with_fixed_delay(seen.put, 0, 1))
    thread = task.service._thread
    assert thread is not None
    thread.join(WAIT)
    assert not thread.is_alive()
    assert seen.empty()
    assert not any(timer.is_done for timer in timers)
    assert not task.service.is_terminated


def test_a_callback_may_quiesce_and_shut_down_its_own_service(task: Task) -> None:
    seen: Queue[object] = Queue()

    def end(_: int) -> None:
        task.service.quiesce()
        seen.put(task.service.shutdown_and_await_pending(1))

    task.service.schedule_with_fixed_delay(end, 0, 1)
    assert seen.get(timeout=WAIT) is False
    assert task.service.shutdown_and_await_pending(WAIT * 1000)
    assert seen.empty()


def test_after_a_shutdown_registering_is_an_error(task: Task) -> None:
    task.service.register_timer(2**62, print)
    assert not task.service.is_terminated
    task.service.shutdown_service()
    assert task.service.is_terminated
    with pytest.raises(LifecycleError, match="timer at 5 ms comes after the service was shut down"):
        task.service.register_timer(5, print)
    with pytest.raises(LifecycleError):
        task.service.schedule_at_fixed_rate(print, 0, 1)
    with pytest.raises(LifecycleError):
        task.service.schedule_with_fixed_delay(print, 0, 1)


def test_awaiting_the_end_gives_up_after_the_timeout(task: Task) -> None:
    began, may_end = threading.Event(), threading.Event()

    def block(_: int) -> None:
        began.set()
        may_end.wait(WAIT)

    task.service.register_timer(0, block)
    assert began.wait(WAIT)
    assert not task.service.shutdown_and_await_pending(5)
    may_end.set()


def test_a_service_without_timers_has_no_thread_to_wait_for() -> None:
    task = Task()
    task.service.quiesce()
    assert task.service.shutdown_and_await_pending(0)


@pytest.mark.parametrize("schedule", ["schedule_at_fixed_rate", "schedule_with_fixed_delay"])
@pytest.mark.parametrize(("delay", "period"), [(-1, 5), (0, 0), (0, -5)])
def test_negative_delays_and_periods_are_refused(task: Task, schedule: str, delay: int, period: int) -> None:
    with pytest.raises(ConfigurationError, match="ms"):
        getattr(task.service, schedule)(print, delay, period)
