"""KeyContext: the current key, its id and its key group."""

import math
import threading
from typing import Any

import pytest

from flinkcore.errors import ConfigurationError, DataError
from flinkcore.operators.keys.java_keys import JavaKeys
from flinkcore.operators.keys.key_context import NO_KEY, KeyContext


def current(context: KeyContext) -> tuple[Any, int, int]:
    return context.current_key, context.current_key_id, context.current_key_group


def test_at_first_there_is_no_key() -> None:
    assert current(KeyContext()) == (None, NO_KEY, NO_KEY)


def test_a_key_has_one_id_and_its_key_group() -> None:
    context = KeyContext(128)
    context.set_current_key("a")
    first = current(context)
    context.set_current_key("b")
    assert current(context)[1] != first[1]
    context.set_current_key("a")
    assert current(context) == first == ("a", first[1], JavaKeys(128)("a"))


def test_a_key_is_set_by_its_id() -> None:
    context = KeyContext()
    context.set_current_key("a")
    as_set_by_key = current(context)
    context.clear_current_key()
    context.set_current_key_id(as_set_by_key[1])
    assert current(context) == as_set_by_key


def test_nan_is_one_key() -> None:
    context = KeyContext()
    context.set_current_key(math.nan)
    first = context.current_key_id
    context.set_current_key(float("nan"))
    assert context.current_key_id == first
    assert len(context) == 1


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([threading.Lock()], "the key .* of type list cannot be one: a lock has no hash"),
        (None, "the key None .* has no key group"),
        ("k1", "the key 'k1' is in key group 19, outside of this operator's key groups 0 to 3"),
    ],
)
def test_after_an_impossible_key_there_is_none(key: Any, message: str) -> None:
    context = KeyContext(128, (0, 127))
    context.set_current_key("a")
    narrow = KeyContext(128, (0, 3), key_group_of=lambda key: 2 if key == "a" else JavaKeys(128)(key))
    narrow.set_current_key("a")
    with pytest.raises(DataError, match=message):
        narrow.set_current_key(key)
    assert current(narrow) == (None, NO_KEY, NO_KEY)
    narrow._check()


@pytest.mark.parametrize(
    ("max_parallelism", "key_group_range"),
    [(0, None), (32769, None), (128, (0, 128)), (128, (5, 4)), (128, (-1, 4))],
)
def test_impossible_key_groups_are_refused(
    max_parallelism: int, key_group_range: tuple[int, int] | None
) -> None:
    with pytest.raises(ConfigurationError, match="must"):
        KeyContext(max_parallelism, key_group_range)


def test_keys_that_nothing_holds_are_forgotten_but_not_the_current_one() -> None:
    context = KeyContext(4, first_sweep=2)
    for key in range(100):
        context.set_current_key(key)
        current_id = context.current_key_id
        assert context.key_id_of("other") != current_id
        assert current(context) == (key, current_id, JavaKeys(4)(key))
        context._check()
    assert len(context) < 10


def test_held_keys_are_kept() -> None:
    held: dict[int, int] = {}
    context = KeyContext(4, first_sweep=2)
    context.add_holder(lambda: list(held.values()))
    for key in range(100):
        context.set_current_key(key)
        if key % 10 == 0:
            held[key] = context.current_key_id
    for key, key_id in held.items():
        context.set_current_key_id(key_id)
        assert current(context) == (key, key_id, JavaKeys(4)(key))


def test_the_key_group_of_a_key_is_found_once_however_many_snapshots_have_it() -> None:
    asked: list[Any] = []

    def key_group_of(key: Any) -> int:
        asked.append(key)
        return len(key)

    context = KeyContext(128, key_group_of=key_group_of)
    keys, key_groups = [("a",), ("b", 1.0)], [1, 2]
    for _ in range(2):
        assert context.restored_key_ids(keys, key_groups).tolist() == [0, 1]
    with pytest.raises(
        DataError, match=r"\('b', 1\.0\) of the snapshot is in the key group 3, but belongs to 2"
    ):
        context.restored_key_ids(keys, [1, 3])
    assert asked == keys
