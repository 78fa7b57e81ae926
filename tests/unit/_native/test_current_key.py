"""CurrentKey and CurrentKeyTimers below the key context and the timer service."""

from typing import Any

import numpy as np
import pytest

from flinkcore._native.timers import CurrentKey, CurrentKeyTimers, Timer, TimerHeap
from flinkcore.errors import DataError


def admitting_none(key: Any) -> int:
    raise DataError(f"{key!r} is not admitted")


@pytest.fixture
def current() -> CurrentKey:
    """Knows the keys a and b, of the key groups 5 and 6."""
    return CurrentKey({"a": 0, "b": 1}, ["a", "b"], [5, 6], admitting_none)


def shown(current: CurrentKey) -> tuple[Any, int, int]:
    return current.current_key, current.current_key_id, current.current_key_group


def test_a_key_is_set_by_itself_or_by_its_id(current: CurrentKey) -> None:
    assert shown(current) == (None, -1, -1)
    current.set_current_key("b")
    assert shown(current) == ("b", 1, 6)
    current.set_current_key_id(0)
    assert shown(current) == ("a", 0, 5)
    current.clear_current_key()
    assert shown(current) == (None, -1, -1)


def test_only_keys_that_are_set_by_themselves_count_as_looked_up(current: CurrentKey) -> None:
    assert current.lookups == 0
    for key in "aab":
        current.set_current_key(key)
    current.set_current_key_id(0)
    assert current.lookups == 3


class Name(str):
    pass


def test_a_key_of_the_form_of_a_known_one_is_shown_as_it_came(current: CurrentKey) -> None:
    current.set_current_key(Name("b"))
    assert type(current.current_key) is Name
    assert current.current_key_id == 1


def test_a_key_that_is_not_known_is_admitted() -> None:
    keys: list[Any] = []
    key_groups: list[int] = []

    def admit(key: Any) -> int:
        keys.append(key)
        key_groups.append(9)
        return len(keys) - 1

    current = CurrentKey({}, keys, key_groups, admit)
    current.set_current_key("new")
    assert shown(current) == ("new", 0, 9)


@pytest.mark.parametrize("key", ["c", [1]])
def test_after_a_key_that_cannot_be_there_is_none(current: CurrentKey, key: Any) -> None:
    current.set_current_key("a")
    with pytest.raises(DataError, match="is not"):
        current.set_current_key(key)
    assert shown(current) == (None, -1, -1)


@pytest.mark.parametrize("key_id", [-1, 2])
def test_an_id_without_a_key_is_refused(current: CurrentKey, key_id: int) -> None:
    with pytest.raises(IndexError, match=f"key id {key_id}"):
        current.set_current_key_id(key_id)


def test_an_admitted_key_without_a_key_group_is_refused() -> None:
    current = CurrentKey({}, [], [], lambda key: 3)
    with pytest.raises(IndexError, match="key id 3"):
        current.set_current_key("a")
    assert shown(current) == (None, -1, -1)


@pytest.mark.parametrize("timestamp_ms", [-(2**63), -1, 0, 2**63 - 1])
def test_timers_are_those_of_the_current_key(current: CurrentKey, timestamp_ms: int) -> None:
    heap = TimerHeap()
    timers = CurrentKeyTimers(heap, current, pytest.fail)
    current.set_current_key("b")
    assert timers.add(timestamp_ms)
    assert not timers.add(timestamp_ms)
    assert not timers.add(timestamp_ms, 4)
    assert list(heap) == [Timer(timestamp_ms, 1, 6, 0), Timer(timestamp_ms, 1, 6, 4)]
    current.set_current_key("a")
    assert not timers.remove(timestamp_ms)
    current.set_current_key("b")
    assert timers.remove(timestamp_ms)
    assert list(heap) == [Timer(timestamp_ms, 1, 6, 4)]


@pytest.mark.parametrize("timestamp_ms", [np.int64(7), True, "7", 2**63, -(2**63) - 1])
def test_what_is_no_int_of_64_bits_is_checked_first(current: CurrentKey, timestamp_ms: Any) -> None:
    heap = TimerHeap()
    checked: list[Any] = []

    def check(timestamp_ms: Any) -> int:
        checked.append(timestamp_ms)
        return 8

    timers = CurrentKeyTimers(heap, current, check)
    current.set_current_key("a")
    timers.add(timestamp_ms)
    assert checked == [timestamp_ms]
    assert list(heap) == [Timer(8, 0, 5, 0)]
    timers.remove(timestamp_ms)
    assert list(heap) == []


def test_without_a_current_key_every_timer_is_checked(current: CurrentKey) -> None:
    def refuse(timestamp_ms: Any) -> int:
        raise DataError(f"no key at {timestamp_ms}")

    timers = CurrentKeyTimers(TimerHeap(), current, refuse)
    with pytest.raises(DataError, match="no key at 5"):
        timers.add(5)
    with pytest.raises(DataError, match="no key at 5"):
        timers.remove(5)


def test_a_key_group_that_the_heap_does_not_have_is_refused(current: CurrentKey) -> None:
    timers = CurrentKeyTimers(TimerHeap(128, (0, 5)), current, pytest.fail)
    current.set_current_key("b")
    with pytest.raises(DataError, match="key group 6 is outside"):
        timers.add(5)
