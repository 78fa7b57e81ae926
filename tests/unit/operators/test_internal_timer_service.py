"""InternalTimerService and its manager: what the traces of Flink do not show."""

import threading
from queue import Queue
from typing import Any

import numpy as np
import pytest

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, TimerError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.timers import InternalTimer, InternalTimerService, InternalTimeServiceManager
from flinkcore.operators.timers.processing_time import (
    DrivenProcessingTimeService,
    SystemProcessingTimeService,
)


class Fired:
    def __init__(self) -> None:
        self.timers: list[tuple[Any, ...]] = []

    def on_event_time(self, timer: InternalTimer) -> None:
        self.timers.append(("event", *timer))

    def on_processing_time(self, timer: InternalTimer) -> None:
        self.timers.append(("processing", *timer))

    def take(self) -> list[tuple[Any, ...]]:
        taken, self.timers = self.timers, []
        return taken


class Operator(Fired):
    """A manager with its surroundings, whose services call it."""

    def __init__(self, max_parallelism: int = 128, key_groups: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.clock = DrivenProcessingTimeService(0)
        self.keys = KeyContext(max_parallelism, key_groups)
        self.manager = InternalTimeServiceManager(self.keys, self.clock)

    def service(self, name: str = "timers") -> InternalTimerService:
        return self.manager.get_internal_timer_service(name, self)


@pytest.fixture
def operator() -> Operator:
    return Operator()


def test_the_same_name_gives_the_same_service(operator: Operator) -> None:
    first = operator.service("a")
    other = Fired()
    assert operator.manager.get_internal_timer_service("a", other) is first
    assert operator.service("b") is not first
    operator.keys.set_current_key("k")
    first.register_event_time_timer(None, 1)
    operator.manager.advance_watermark(1)
    assert operator.take() == [("event", 1, "k", None)]
    assert other.take() == []


def test_a_watermark_advances_all_services_in_order_of_their_making(operator: Operator) -> None:
    late, early = operator.service("z"), operator.service("a")
    operator.keys.set_current_key("k")
    early.register_event_time_timer("in a", 1)
    late.register_event_time_timer("in z", 2)
    assert operator.manager.num_event_time_timers() == 2
    operator.manager.advance_watermark(5)
    assert operator.take() == [("event", 2, "k", "in z"), ("event", 1, "k", "in a")]
    assert early.current_watermark() == late.current_watermark() == 5


def test_the_same_time_is_another_timer_in_another_domain_namespace_or_key(operator: Operator) -> None:
    service = operator.service()
    for key in ("a", "b"):
        operator.keys.set_current_key(key)
        for namespace in (None, "n"):
            for _ in range(2):
                service.register_event_time_timer(namespace, 5)
                service.register_processing_time_timer(namespace, 5)
    assert (service.num_event_time_timers(), service.num_processing_time_timers()) == (4, 4)
    assert service.num_event_time_timers("n") == service.num_event_time_timers(None) == 2
    assert service.num_event_time_timers("unknown") == 0
    service.delete_event_time_timer("unknown", 5)
    service.delete_event_time_timer("n", 5)
    assert service.num_event_time_timers("n") == 1


def test_a_timer_without_a_key_is_refused(operator: Operator) -> None:
    service = operator.service()
    for act in (
        service.register_event_time_timer,
        service.register_processing_time_timer,
        service.delete_event_time_timer,
        service.delete_processing_time_timer,
    ):
        with pytest.raises(LifecycleError, match=r"the timer at 5 has no key\. Register .* keyed stream"):
            act(None, 5)
    assert operator.manager.num_event_time_timers() == operator.manager.num_processing_time_timers() == 0


@pytest.mark.parametrize("timestamp", [1.5, 2.0, "5", None, True, 2**63, -(2**63) - 1])
def test_a_time_that_is_no_integer_of_64_bits_is_refused(operator: Operator, timestamp: Any) -> None:
    service = operator.service()
    operator.keys.set_current_key("k")
    service.register_event_time_timer(None, 1)
    for act in (
        service.register_event_time_timer,
        service.register_processing_time_timer,
        service.delete_event_time_timer,
        service.delete_processing_time_timer,
    ):
        with pytest.raises(DataError, match="of the key 'k': its time is an int of 64 bits"):
            act(None, timestamp)
    assert operator.manager.num_event_time_timers() == 1


def test_other_integers_are_times(operator: Operator) -> None:
    service = operator.service()
    operator.keys.set_current_key("k")
    service.register_event_time_timer(None, np.int64(7))
    operator.manager.advance_watermark(7)
    assert operator.take() == [("event", 7, "k", None)]


def test_negative_times_and_the_least_one_fire_in_order(operator: Operator) -> None:
    service = operator.service()
    operator.keys.set_current_key("k")
    for timestamp in (-1, MIN_TIMESTAMP, 0):
        service.register_event_time_timer(None, timestamp)
        service.register_processing_time_timer(None, timestamp)
    operator.manager.advance_watermark(MIN_TIMESTAMP)
    assert operator.take() == [("event", MIN_TIMESTAMP, "k", None)]
    operator.manager.advance_watermark(-1)
    assert operator.take() == [("event", -1, "k", None)]
    operator.clock.advance_to(0)
    assert [timer[1] for timer in operator.take()] == [MIN_TIMESTAMP, -1, 0]


def test_an_event_time_timer_at_the_end_of_time_fires_with_the_last_watermark(operator: Operator) -> None:
    service = operator.service()
    operator.keys.set_current_key("k")
    service.register_event_time_timer(None, MAX_TIMESTAMP)
    operator.manager.advance_watermark(MAX_TIMESTAMP - 1)
    assert operator.take() == []
    operator.manager.advance_watermark(MAX_TIMESTAMP)
    assert operator.take() == [("event", MAX_TIMESTAMP, "k", None)]


def test_a_processing_time_timer_at_the_end_of_time_does_not_set_the_clock(operator: Operator) -> None:
    service = operator.service()
    operator.keys.set_current_key("k")
    service.register_processing_time_timer(None, MAX_TIMESTAMP)
    operator.clock.advance_to(MAX_TIMESTAMP)
    assert operator.take() == []
    service.register_processing_time_timer(None, 5)
    operator.clock.advance_to(MAX_TIMESTAMP)
    assert [timer[1] for timer in operator.take()] == [5, MAX_TIMESTAMP]


def test_after_a_failed_callback_the_other_timers_are_still_there() -> None:
    class Failing(Operator):
        def on_event_time(self, timer: InternalTimer) -> None:
            raise ValueError(timer.key)

        on_processing_time = on_event_time

    operator = Failing()
    service = operator.service()
    for key in ("a", "b"):
        operator.keys.set_current_key(key)
        service.register_event_time_timer(None, 1)
        service.register_processing_time_timer(None, 1)
    with pytest.raises(ValueError, match="a"):
        operator.manager.advance_watermark(1)
    with pytest.raises(TimerError, match="ValueError"):
        operator.clock.advance_to(1)
    assert operator.manager.num_event_time_timers() == operator.manager.num_processing_time_timers() == 1


def test_for_each_lets_its_function_delete_timers(operator: Operator) -> None:
    service = operator.service()
    for key in ("a", "b"):
        operator.keys.set_current_key(key)
        service.register_event_time_timer(key, 1)
        service.register_event_time_timer(key, 2)
    seen = []

    def delete(namespace: str, timestamp: int) -> None:
        seen.append((operator.keys.current_key, namespace, timestamp))
        service.delete_event_time_timer(namespace, timestamp)

    service.for_each_event_time_timer(delete)
    assert seen == [("a", "a", 1), ("a", "a", 2), ("b", "b", 1), ("b", "b", 2)]
    assert service.num_event_time_timers() == 0


def test_on_the_systems_clock_timers_fire_under_the_tasks_lock() -> None:
    lock, fired, errors = threading.RLock(), Queue[InternalTimer](), Queue[TimerError]()
    clock = SystemProcessingTimeService(errors.put, lock)
    keys = KeyContext()

    class Task:
        def on_event_time(self, timer: InternalTimer) -> None:
            raise AssertionError(timer)

        def on_processing_time(self, timer: InternalTimer) -> None:
            assert keys.current_key == timer.key
            fired.put(timer)

    service = InternalTimeServiceManager(keys, clock).get_internal_timer_service("timers", Task())
    with lock:
        due = clock.current_processing_time() + 5
        for key in ("a", "b"):
            keys.set_current_key(key)
            service.register_processing_time_timer(None, due)
        keys.set_current_key("c")
    first, second = fired.get(timeout=20), fired.get(timeout=20)
    assert clock.shutdown_and_await_pending(20_000)
    assert (first, second) == ((due, "a", None), (due, "b", None))
    assert errors.empty()


# ---- snapshots ----


def with_timers() -> Operator:
    operator = Operator(4)
    for name in ("first", "second"):
        service = operator.service(name)
        for key in range(8):
            operator.keys.set_current_key(key)
            service.register_event_time_timer("n", key % 2)
            service.register_processing_time_timer(None, 10 + key)
    return operator


def test_every_timer_comes_back_in_the_part_that_has_its_key_group() -> None:
    old = with_timers()
    snapshot = old.manager.snapshot()
    parts = [Operator(4, (0, 0)), Operator(4, (1, 3))]
    for part in parts:
        part.manager.restore(snapshot)
        part.service("second")
        part.service("first")
    assert sum(part.manager.num_event_time_timers() for part in parts) == 16
    for part in parts:
        assert part.service("first").current_watermark() == MIN_TIMESTAMP
        part.clock.advance_to(100)
        part.manager.advance_watermark(100)
    fired = [timer for part in parts for timer in part.take()]
    old.clock.advance_to(100)
    old.manager.advance_watermark(100)
    assert sorted(fired, key=str) == sorted(old.take(), key=str)


def test_a_snapshot_is_no_part_of_its_service() -> None:
    operator = with_timers()
    snapshot = operator.manager.snapshot((2, 3))
    operator.clock.advance_to(100)
    operator.manager.advance_watermark(100)
    taken = operator.take()
    other = Operator(4)
    other.manager.restore(snapshot)
    other.service("first")
    other.service("second")
    other.clock.advance_to(100)
    other.manager.advance_watermark(100)
    in_range = [timer for timer in taken if operator.keys._key_group_of(timer[2]) in (2, 3)]
    assert sorted(other.take(), key=str) == sorted(in_range, key=str)
    assert in_range


def test_restoring_twice_changes_nothing() -> None:
    operator = Operator(4)
    snapshot = with_timers().manager.snapshot()
    operator.manager.restore(snapshot)
    operator.manager.restore(snapshot)
    assert operator.service("first").num_event_time_timers() == 8


def test_timers_are_restored_before_their_service_starts() -> None:
    operator = Operator(4)
    operator.service("first")
    with pytest.raises(LifecycleError, match="'first' are restored before the service is started"):
        operator.manager.restore(with_timers().manager.snapshot())


def test_timers_that_no_operator_asks_for_are_an_error_once_they_are_due() -> None:
    operator = Operator(4)
    operator.manager.restore(with_timers().manager.snapshot())
    operator.manager.advance_watermark(-1)
    with pytest.raises(LifecycleError, match="timers named 'first' are due that no operator has asked for"):
        operator.manager.advance_watermark(0)


def test_a_snapshot_of_more_key_groups_is_refused() -> None:
    operator = Operator(2)
    with pytest.raises(
        DataError, match=r"is in key group 3, but max_parallelism is 2|is in key group 2, but"
    ):
        operator.manager.restore(with_timers().manager.snapshot())
    assert operator.manager.num_event_time_timers() == 0


def test_a_snapshot_of_key_groups_of_others_is_refused() -> None:
    operator = Operator(4, (1, 2))
    operator.service()
    with pytest.raises(ConfigurationError, match=r"key_group_range is \(0, 2\)"):
        operator.manager.snapshot((0, 2))


def test_timers_of_one_key_in_several_key_groups_are_refused() -> None:
    operator = Operator(4)
    service = operator.service()
    operator.keys.set_current_key("k")
    for timestamp_ms in (1, 2):
        service.register_event_time_timer(None, timestamp_ms)
    snapshot = operator.manager.snapshot()
    groups = snapshot["timers"].event_time_timers.key_groups
    own = int(groups[0])
    groups[0] = (own + 1) % 4
    with pytest.raises(
        DataError, match=f"timers of the key 'k' .* in the key groups {own} and {(own + 1) % 4}"
    ):
        Operator(4).manager.restore(snapshot)


def test_an_empty_snapshot_restores_nothing() -> None:
    operator, empty = Operator(), Operator()
    empty.service()
    operator.manager.restore(empty.manager.snapshot())
    assert operator.service().num_event_time_timers() == 0
