"""canonical_key: which keys are one."""

import math
import struct
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.keys import canonical_key
from flinkcore.common import Row
from flinkcore.elements.tasks.stream_partitioners import ElementKeyGroups
from flinkcore.errors import DataError
from flinkcore.operators.keys.key_context import KeyContext

ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
BERLIN = ZoneInfo("Europe/Berlin")
Point = namedtuple("Point", "x y")


class Color(str, Enum):
    RED = "red"


class Name(str):
    pass


class Plain:
    """Has neither an equality nor a hash of its own."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Plain({self.value!r})"


@dataclass
class Unhashable:
    value: Any


ONE_KEY = [
    (math.nan, ODD_NAN, np.float64("nan")),
    (("a", math.nan), ("a", ODD_NAN)),
    (((math.nan,), -0.0), ((ODD_NAN,), -0.0)),
    (Row(a=math.nan, b=1), Row(a=ODD_NAN, b=1), Row(math.nan, 1)),
    (1.5, np.float64(1.5)),
    (np.float32("nan"), -np.float32("nan")),
    (np.datetime64("NaT", "s"), np.datetime64("NaT", "s")),
    (complex("nan"), complex("nan")),
    ("red", Color.RED, Name("red")),
    (("x", 2), Point("x", 2)),
    (Decimal("0.0"), Decimal("-0.0")),
    (datetime(2026, 1, 1, 1, tzinfo=BERLIN), datetime(2026, 1, 1, tzinfo=timezone.utc)),
    (("a", 2**70, math.nan), ("a", 2**70, ODD_NAN)),
    ([1, [math.nan]], [1, [ODD_NAN]]),
    ({"a": 1, "b": [Name("x")]}, OrderedDict(a=1, b=["x"])),
    ({8, 0}, {0, 8}),
    (({"a": [0.5]}, b"x"), ({"a": [0.5]}, b"x")),
    (bytearray(b"x"), bytearray(b"x")),
    (Plain([1]), Plain([1])),
    (Unhashable("a"), Unhashable("a")),
    (np.array([1, 2]), np.array([1, 2])),
]

SEVERAL_KEYS = [
    (0.0, -0.0, 0, False, Decimal(0), None, "", b"", (), (0.0,), (-0.0,), Row(0.0), Row(-0.0)),
    (1, 1.0, True, "1", b"1", Decimal("1"), Decimal("1.0"), (1,), (1.0,), (True,), Row(1)),
    (np.float32(0.5), 0.5, np.float32("nan"), math.nan, "NaN", ("NaN",)),
    (np.float32(0.0), np.float32(-0.0)),
    (Row(1, 2), Row(2, 1), Row.of_kind(RowKind.DELETE, 1, 2)),
    (
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN),
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
        datetime(2026, 10, 25, 2, 30),
    ),
    ([], {}, set(), frozenset(), (), bytearray(), b"", None),
    ([1], [1.0], [True], (1,), ["1"], [[1]], {1}, {1.0}, {1: 1}, {1: 1.0}, {1: True}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (Plain([1]), Plain([1.0]), Unhashable([1]), Unhashable([2])),
    (np.array([1, 2]), np.array([1.0, 2.0]), np.array([[1, 2]])),
]


@pytest.mark.parametrize("keys", ONE_KEY, ids=repr)
def test_keys_that_java_finds_equal_have_equal_forms_and_one_key_group(keys: tuple[Any, ...]) -> None:
    assert len({canonical_key(key) for key in keys}) == 1
    assert len({ElementKeyGroups(1024)(key) for key in keys}) == 1
    context = KeyContext(1024, key_group_of=ElementKeyGroups(1024))
    assert len({context.key_id_of(key) for key in keys}) == 1


@pytest.mark.parametrize("keys", SEVERAL_KEYS, ids=repr)
def test_keys_that_java_finds_unequal_have_unequal_forms(keys: tuple[Any, ...]) -> None:
    for left, right in combinations(map(canonical_key, keys), 2):
        assert left != right


@pytest.mark.parametrize("key", ["ada", 7, 2**70, b"x", None, ("ada", 7, None, (b"x",)), timedelta(1)])
def test_most_keys_are_their_own_form(key: Any) -> None:
    assert canonical_key(key) is key


def test_a_key_that_changes_after_it_has_come_stays_what_it_was() -> None:
    context = KeyContext(key_group_of=ElementKeyGroups(128))
    key = ["a"]
    context.set_current_key(key)
    first = context.current_key_id
    context.add_holder(lambda: [first])
    key.append("b")
    context.set_current_key(key)
    assert context.current_key_id != first
    assert context.key_of(first) == ["a"]
    context._check()


def test_what_can_neither_be_hashed_nor_pickled_is_no_key() -> None:
    with pytest.raises(TypeError, match="a Unhashable has no hash, and cannot be pickled"):
        canonical_key(Unhashable(lambda: None))
    itself: list[Any] = []
    itself.append((itself,))
    with pytest.raises(TypeError, match="it contains itself"):
        canonical_key(itself)
    with pytest.raises(TypeError, match="a Plain has no hash, and cannot be pickled"):
        canonical_key(Plain(itself))


class OfItself:
    def __canonical_key__(self) -> "OfItself":
        return self


def test_keys_of_too_many_levels_are_refused() -> None:
    deep: Any = 1.5
    for _ in range(100_000):
        deep = (deep,)
    rows: Any = "a"
    for _ in range(20_000):
        rows = Row(rows)
    for key in (deep, rows, OfItself()):
        with pytest.raises(TypeError, match="it contains itself, or too many levels of others"):
            canonical_key(key)
    with pytest.raises(
        DataError, match=r"the key \.\.\. of type tuple cannot be one: it contains itself, or too many"
    ):
        KeyContext(key_group_of=ElementKeyGroups(128)).set_current_key(deep)


def test_a_moment_at_the_end_of_time_is_a_key() -> None:
    last = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    assert canonical_key(last) == last


@pytest.mark.parametrize("keys", [*ONE_KEY, *SEVERAL_KEYS], ids=repr)
def test_restored_keys_are_those_that_come_again(keys: tuple[Any, ...]) -> None:
    groups = ElementKeyGroups(128)
    distinct = list({canonical_key(key): key for key in keys}.values())
    context = KeyContext(128, key_group_of=groups)
    ids = context.restored_key_ids(distinct, list(map(groups, distinct))).tolist()
    context.add_holder(lambda: ids)
    assert ids == list(range(len(distinct)))
    by_form = {canonical_key(key): key_id for key, key_id in zip(distinct, ids, strict=True)}
    for key in keys:
        context.set_current_key(key)
        assert context.current_key_id == by_form[canonical_key(key)]
    context._check()
