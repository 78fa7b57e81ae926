"""Batches as rows and keys."""

import math
import struct
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from flinkcore._internal.arrow.column_values import numbered_key_values
from flinkcore.common import Row
from flinkcore.errors import DataError
from flinkcore.operators.keys.element_rows import element_keys, element_rows


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
        ("ms", -(2**63) + 1, "it is too large"),
        ("us", -(2**63) + 1, "of the years 1 to 9999"),
        ("s", 2**60, "it is too large"),
        ("ns", 1_500, "digits below microseconds"),
    ],
)
def test_a_time_that_python_cannot_hold_is_named_with_its_column(kind: str, number: int, why: str) -> None:
    column = pa.array([5000, None, number, 7], pa.int64()).view(pa.timestamp(kind))
    batch = pa.record_batch({"n": pa.array([1, 2, 3, 4]), "at": column})
    message = (
        rf"the column 'at' \(timestamp\[{kind}\]\) holds {number} that no value .*{why}.*Filter such rows out"
    )
    with pytest.raises(DataError, match=message):
        element_rows(batch)
    with pytest.raises(DataError, match=message):
        element_keys(batch, ["n", "at"])


@pytest.mark.parametrize("encode", [lambda column: column, pa.Array.dictionary_encode])
def test_a_time_within_a_value_that_python_cannot_hold_is_named_with_both_types(encode: Any) -> None:
    times = pa.array([5000, 1_500], pa.timestamp("ns"))
    with pytest.raises(DataError, match=r"column 'at' \(timestamp\[ns\]\) holds 1500 .*field\('at'\)\.cast"):
        element_rows(pa.record_batch({"at": encode(times)}))
    values = pa.StructArray.from_arrays([pa.array([1, 2]), encode(times)], ["n", "t"])
    message = r"column 'at' \(struct<.*>\) holds within it timestamp\[ns\] 1500 .* or take the parts of it"
    with pytest.raises(DataError, match=message):
        element_rows(pa.record_batch({"at": values}))


def keys(*columns: pa.Array) -> list[Any]:
    names = [f"k{number}" for number in range(len(columns))]
    return element_keys(pa.record_batch(list(columns), names), names)


def test_a_key_of_one_column_is_its_value_and_of_several_a_tuple() -> None:
    assert keys(pa.array(["a", "b"])) == ["a", "b"]
    assert keys(pa.array(["a", "b"]), pa.array([1, None])) == [("a", 1), ("b", None)]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_keys_that_are_floats_are_plain_floats_and_every_nan_has_the_same_bits(kind: pa.DataType) -> None:
    nans = [
        struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000001, 0xFFF8000000000000)
    ]
    found = keys(pa.array([0.0, -0.0, *nans, None, 1.5], kind))
    assert [None if key is None else (type(key), struct.pack("<d", key)) for key in found] == [
        None if key is None else (float, struct.pack("<d", key))
        for key in (0.0, -0.0, math.nan, math.nan, None, 1.5)
    ]


def test_a_struct_is_a_row_as_a_key_and_a_dict_in_an_element() -> None:
    column = pa.array([{"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}])
    assert keys(column) == [Row(a=1, b=Row(c="x")), Row(a=None, b=None)]
    assert [row[0] for row in element_rows(pa.record_batch([column], ["k"]))] == column.to_pylist()


def test_numbered_keys_do_not_depend_on_those_beside_them() -> None:
    times = pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("s"))
    column = pa.StructArray.from_arrays([times, pa.array(["a", "b"])], ["at", "name"])
    found = element_keys(pa.record_batch({"key": column, "at": times}), ["key", "at"], numbered_key_values)
    assert found == [(Row(at=0, name="a"), 0), (Row(at=2**60, name="b"), 2**60)]
    first = element_keys(pa.record_batch({"at": times.slice(0, 1)}), ["at"], numbered_key_values)
    assert first == [0]


def test_two_moments_of_the_hour_that_comes_twice_are_two_keys() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc)
    moments = pa.array([first, first + timedelta(hours=1)], pa.timestamp("ms", "Europe/Berlin"))
    assert len(set(moments.to_pylist())) == 1
    assert keys(moments) == [first, first + timedelta(hours=1)]
