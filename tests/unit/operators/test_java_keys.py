"""Key groups of Python objects are those of the Java objects that stand for them."""

import enum
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from models.key_groups import hash_code, key_group_of_hash

from flinkcore.errors import DataError
from flinkcore.operators.keys.java_keys import JavaKeys

GOLDEN_FORM: list[tuple[Any, dict[str, Any]]] = [
    (7, {"type": "long", "value": 7}),
    (-(2**63), {"type": "long", "value": -(2**63)}),
    (True, {"type": "boolean", "value": True}),
    ("flink", {"type": "string", "value": "flink"}),
    ("\N{GRINNING FACE}", {"type": "string", "value": "\N{GRINNING FACE}"}),
    (1.5, {"type": "double", "bits": "3ff8000000000000"}),
    (float("nan"), {"type": "double", "bits": "7ff8000000000000"}),
    (Decimal("12.30"), {"type": "big_decimal", "value": "12.30"}),
    (Decimal("-4"), {"type": "big_decimal", "value": "-4"}),
    (date(2001, 2, 3), {"type": "date", "value": "2001-02-03"}),
    (datetime(1970, 1, 1, 0, 0, 5, 6), {"type": "instant", "value": [5, 6000]}),
    (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), {"type": "instant", "value": [0, 0]}),
    (
        ("a", 1, None),
        {
            "type": "row",
            "value": [{"type": "string", "value": "a"}, {"type": "long", "value": 1}, {"type": "null"}],
        },
    ),
    ((), {"type": "row", "value": []}),
    (
        (("x",),),
        {"type": "row", "value": [{"type": "row", "value": [{"type": "string", "value": "x"}]}]},
    ),
]


@pytest.mark.parametrize(("key", "golden"), GOLDEN_FORM, ids=lambda value: repr(value)[:30])
def test_a_key_has_the_key_group_of_its_java_object(key: Any, golden: dict[str, Any]) -> None:
    for max_parallelism in (1, 128, 1000):
        expected = key_group_of_hash(hash_code(golden), max_parallelism)
        assert JavaKeys(max_parallelism)(key) == expected


def test_types_without_a_golden_form_have_key_groups_too() -> None:
    keys = JavaKeys(128)
    for key in (b"bytes", time(1, 2, 3), timedelta(seconds=5)):
        assert 0 <= keys(key) < 128


class Color(str, enum.Enum):
    RED = "red"


class Money(int):
    pass


def test_subclasses_count_as_what_they_derive_from() -> None:
    keys = JavaKeys(128)
    assert keys(Money(7)) == keys(7)
    assert keys(Color.RED) == keys("red")


def test_a_declared_type_decides() -> None:
    as_int, as_long = JavaKeys(1000, pa.int32()), JavaKeys(1000)
    assert as_int(-1) == key_group_of_hash(hash_code({"type": "int", "value": -1}), 1000)
    assert as_long(-1) == key_group_of_hash(hash_code({"type": "long", "value": -1}), 1000)


@pytest.mark.parametrize(
    "key", [None, 2**63, object(), frozenset(), ("a", object()), Decimal("NaN"), "\ud800"]
)
def test_a_key_that_java_has_no_type_for_is_refused(key: Any) -> None:
    with pytest.raises(DataError, match="has no key group"):
        JavaKeys(128)(key)


def test_a_key_of_another_than_the_declared_type_is_refused() -> None:
    with pytest.raises(DataError, match=r"'a' of type str has no key group as int64"):
        JavaKeys(128, pa.int64())("a")
