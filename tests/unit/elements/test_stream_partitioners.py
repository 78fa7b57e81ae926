"""Which subtask of the next operator gets a record."""

import pickle
import threading
from collections import Counter
from enum import Enum
from typing import Any, NamedTuple

import pytest

from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore._native.keys import key_bytes
from flinkcore.common import Row
from flinkcore.elements.tasks import stream_partitioners as partitioners
from flinkcore.elements.tasks.stream_partitioners import ChannelSelector, ElementKeyGroups
from flinkcore.errors import DataError, UserCodeError
from flinkcore.operators.keys.java_keys import JavaKeys
from flinkcore.operators.records.stream_elements import StreamRecord


def chosen(select: ChannelSelector, values: Any) -> list[int]:
    return [select(StreamRecord(value)) for value in values]


def test_round_robin_takes_turns_from_its_first_channel_on() -> None:
    assert chosen(partitioners.RoundRobin(3), range(5)) == [0, 1, 2, 0, 1]
    assert chosen(partitioners.RoundRobin(3, 5), range(4)) == [2, 0, 1, 2]


def test_a_shuffle_is_the_same_for_a_subtask_and_another_for_the_next() -> None:
    first = chosen(partitioners.Shuffle(4, 0), range(1000))
    assert first == chosen(partitioners.Shuffle(4, 0), range(1000))
    assert first != chosen(partitioners.Shuffle(4, 1), range(1000))
    assert all(200 < count < 300 for count in Counter(first).values())


@pytest.mark.parametrize("sent", [0, 1, 999, 1000, 2500])
def test_a_shuffle_goes_on_behind_what_it_has_sent(sent: int) -> None:
    whole, goes_on = partitioners.Shuffle(4, 2), partitioners.Shuffle(4, 2)
    goes_on.sent = sent
    assert chosen(whole, range(3000))[sent:] == chosen(goes_on, range(sent, 3000))


def test_keys_go_to_the_subtask_that_has_their_key_group() -> None:
    groups = ElementKeyGroups(128)
    select = partitioners.by_key_group(lambda value: value % 50, groups, 128, 3)
    for value in range(200):
        channel = select(StreamRecord(value))
        first, last = compute_key_group_range_for_operator_index(128, 3, channel)
        assert first <= groups(value % 50) <= last
        assert channel == select(StreamRecord(value + 50))


def test_the_ranges_of_all_subtasks_are_all_key_groups() -> None:
    for parallelism in (1, 2, 3, 7, 128):
        ranges = [
            compute_key_group_range_for_operator_index(128, parallelism, index)
            for index in range(parallelism)
        ]
        assert [group for first, last in ranges for group in range(first, last + 1)] == list(range(128))


def test_key_groups_are_flinks_where_there_is_a_java_object_and_stable_for_other_keys() -> None:
    groups = ElementKeyGroups(128)
    assert groups("flink") == JavaKeys(128)("flink")
    for key in (None, Row(1, 2), frozenset([1]), ("a", None, Row(1))):
        assert 0 <= groups(key) < 128
        assert groups(key) == ElementKeyGroups(128)(key)


class Place(NamedTuple):
    names: tuple[str, ...]
    floor: int


def test_equal_keys_have_equal_bytes() -> None:
    name = "".join(["attic", "s"])
    for one, other in [
        ((name, name), ("attics", "".join(["attic", "s"]))),
        (frozenset([8, 0]), frozenset([0, 8])),
        ({"a": frozenset(["x", "y", "z"])}, {"a": frozenset(["z", "y", "x"])}),
        (Place((name, name), 7), Place(("attics", "attics"), 7)),
    ]:
        assert one == other
        assert key_bytes(one) == key_bytes(other)
    assert len({key_bytes(key) for key in (frozenset([1]), frozenset([2]), (1,), Place((), 1), ((), 1))}) == 5


def test_classes_of_keys_need_not_be_importable() -> None:
    class Color(Enum):
        RED = 1
        BLUE = 2

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Color.RED)
    assert key_bytes(Color.RED) == key_bytes(Color(1))
    assert key_bytes(Color.RED) != key_bytes(Color.BLUE)


def test_a_key_selector_that_fails_or_gives_no_key_is_an_error() -> None:
    groups = ElementKeyGroups(128)
    with pytest.raises(UserCodeError, match="the key selector failed at the element 0"):
        partitioners.by_key_group(lambda value: 1 / value, groups, 128, 2)(StreamRecord(0))
    with pytest.raises(DataError, match=r"the key .* cannot be one: a lock has no hash"):
        partitioners.by_key_group(lambda value: [threading.Lock()], groups, 128, 2)(StreamRecord(0))


def test_a_custom_partitioner_chooses_by_key_and_number_of_channels() -> None:
    select = partitioners.custom(lambda key, count: key % count, lambda value: value * 2, 3, "mine")
    assert chosen(select, [0, 1, 2]) == [0, 2, 1]


@pytest.mark.parametrize("wrong", [-1, 3, None, "0"])
def test_a_custom_partitioner_that_chooses_no_channel_is_an_error(wrong: Any) -> None:
    select = partitioners.custom(lambda key, count: wrong, lambda value: value, 3, "mine")
    with pytest.raises(UserCodeError, match=r"the partitioner mine gave .* for the key 7: .* 0 to 2"):
        select(StreamRecord(7))


def test_a_custom_partitioner_that_fails_is_named() -> None:
    select = partitioners.custom(lambda key, count: 1 // key, lambda value: value, 3, "mine")
    with pytest.raises(UserCodeError, match="the partitioner mine failed at the key 0: ZeroDivisionError"):
        select(StreamRecord(0))
