"""Batches as rows and keys."""

import copy
import math
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import Row
from flinkcore.errors import DataError
from flinkcore.replay.stages.element_rows import NegativeZero, element_keys, element_rows


def test_rows_have_the_values_that_arrow_gives() -> None:
    moment = datetime(2026, 1, 2, tzinfo=timezone.utc)
    batch = pa.record_batch(
        {
            "user": pa.array(["ada", None]),
            "n": pa.array([1, None], pa.int32()),
            "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "tags": pa.array([["x"], []]),
        }
    )
    first, second = element_rows(batch)
    assert isinstance(first, Row)
    assert first.as_dict() == {"user": "ada", "n": 1, "at": moment, "tags": ["x"]}
    assert list(second) == [None, None, None, []]


@pytest.mark.parametrize(
    ("kind", "number", "why"),
    [
        ("ms", -(2**63) + 1, "Python int too large"),
        ("us", -(2**63) + 1, "date value out of range"),
        ("s", 2**60, "Python int too large"),
    ],
)
def test_a_time_that_python_cannot_hold_is_named_with_its_column(kind: str, number: int, why: str) -> None:
    column = pa.array([5, None, number, 7], pa.int64()).view(pa.timestamp(kind))
    batch = pa.record_batch({"n": pa.array([1, 2, 3, 4]), "at": column})
    message = (
        rf"the column 'at' \(timestamp\[{kind}\]\) holds {number} that no value .*{why}.*filter such rows out"
    )
    with pytest.raises(DataError, match=message):
        element_rows(batch)
    with pytest.raises(DataError, match=message):
        element_keys(batch, ["n", "at"])


def keys(*columns: pa.Array) -> list[Any]:
    names = [f"k{number}" for number in range(len(columns))]
    return element_keys(pa.record_batch(list(columns), names), names)


def test_a_key_of_one_column_is_its_value_and_of_several_a_tuple() -> None:
    assert keys(pa.array(["a", "b"])) == ["a", "b"]
    assert keys(pa.array(["a", "b"]), pa.array([1, None])) == [("a", 1), ("b", None)]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_negative_zero_is_a_key_of_its_own_and_every_nan_the_same(kind: pa.DataType) -> None:
    found = keys(pa.array([0.0, -0.0, math.nan, -math.nan, 1.5], kind))
    assert len(set(found)) == 4
    assert found[2] is found[3]
    assert math.copysign(1, found[1]) == -1.0
    assert (found[1] == 0.0, found[1] != 0.0) == (False, True)


def test_parts_of_a_key_may_be_null_and_nan() -> None:
    found = keys(pa.array([math.nan, None, math.nan]), pa.array(["a", "a", "a"]))
    assert found[0] == found[2] != found[1]
    assert found[1] == (None, "a")


def test_negative_zero_stays_itself_when_copied() -> None:
    zero = NegativeZero()
    for again in (copy.deepcopy(zero), pickle.loads(pickle.dumps(zero))):
        assert again == zero
        assert hash(again) == hash(zero)
        assert repr(again) == "-0.0"


def test_two_moments_of_the_hour_that_comes_twice_are_two_keys() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc)
    moments = pa.array([first, first + timedelta(hours=1)], pa.timestamp("ms", "Europe/Berlin"))
    assert len(set(moments.to_pylist())) == 1
    assert keys(moments) == [first, first + timedelta(hours=1)]
