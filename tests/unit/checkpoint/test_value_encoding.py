"""Python values as columns of a checkpoint, and back."""

from collections import namedtuple
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum
from itertools import compress
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._internal.values.row import rows_of_columns
from flinkcore.checkpoint.value_decoding import EqualColumnsOnce, decode
from flinkcore.checkpoint.value_encoding import encode
from flinkcore.checkpoint.value_shape import MAX_DEPTH, has_serialized, shape_text
from flinkcore.common import Row, RowKind
from flinkcore.errors import SchemaError
from flinkcore.operators.state import SerializedValue


def deleted(row: Row) -> Row:
    row.set_row_kind(RowKind.DELETE)
    return row


UTC = timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")
VALUES = [
    *(None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**200, -(2**200)),
    *(1.0, -0.0, float("inf"), float("nan"), 5e-324),
    *("", "a", "é\0😀", b"", b"\xff\0"),
    *(
        Decimal("1.500"),
        Decimal("-0"),
        Decimal("1E+5"),
        Decimal("NaN123"),
        Decimal("-Infinity"),
        Decimal(10) ** 60,
    ),
    *(date.min, date.max, time.max, timedelta(-1, microseconds=1), timedelta(0)),
    *(datetime.min, datetime.max, datetime(2020, 10, 25, 2, 30, fold=1)),
    *(datetime(2020, 10, 25, 2, 30, tzinfo=BERLIN), datetime(2020, 10, 25, 2, 30, tzinfo=BERLIN, fold=1)),
    *(
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=-3, microseconds=1))),
    ),
    *([], [None], [1, "a", 1.0], [[1], [2, [3]]], (), (1,), (1, "a"), (None, (True, 1))),
    *({}, {"b": 1, "a": None}, {(1, 2): [3], 1.5: {}}, tuple(range(100))),
    *(Row(1, "a"), Row(user="ada", age=36), Row("user", "age")("ada", 36), Row(), Row(Row(1), [Row(a=None)])),
    *(deleted(Row(1, 2)), deleted(Row(a=1)), next(rows_of_columns(["user", "age"], [["bob"], [41]]))),
    SerializedValue("pickle", b"abc"),
]


def through_a_file(array: pa.Array) -> pa.Array:
    batch = pa.RecordBatch.from_arrays([array], ["a"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    read = pa.ipc.open_file(sink.getvalue()).get_batch(0)
    read.validate(full=True)
    return read.column(0)


def round_trip(values: list[Any]) -> list[Any]:
    array, shape = encode(values, "the values")
    assert len(array) == len(values)
    return decode(through_a_file(array), shape)


def same(left: Any, right: Any) -> bool:
    """Equal in type, too; repr shows -0.0, NaN, digits of a Decimal, a fold and a zone."""
    return repr(left) == repr(right)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_exactly(value: Any) -> None:
    assert same(round_trip([value]), [value])
    assert same(round_trip([value, value]), [value, value])
    assert same(round_trip([[value], (value, 1)]), [[value], (value, 1)])


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_among_none(value: Any) -> None:
    assert same(round_trip([None, value, None]), [None, value, None])


def test_mixed_values_come_back_exactly() -> None:
    assert same(round_trip(VALUES * 2), VALUES * 2)


@pytest.mark.parametrize(
    "wrap", [lambda v: v, lambda v: (v, 1), lambda v: [v], lambda v: {1: v}, lambda v: ((v,), v)]
)
def test_rows_can_be_selected_whatever_they_hold(wrap: Any) -> None:
    values = [wrap(value) for value in VALUES]
    array, shape = encode(values, "x")
    wanted = [i % 3 != 1 for i in range(len(values))]
    batch = pa.RecordBatch.from_arrays([through_a_file(array)], ["a"]).filter(pa.array(wanted))
    assert same(decode(batch.column(0), shape), list(compress(values, wanted)))
    assert same(decode(array.slice(5, 9), shape), values[5:14])


def test_equal_values_of_different_types_stay_apart() -> None:
    values = [1, True, 1.0, Decimal(1), 0, False, -0.0, (1,), [1], "1", b"1"]
    assert same(round_trip(values), values)


def test_no_values_come_back() -> None:
    assert round_trip([]) == []


def test_rows_keep_names_and_kinds() -> None:
    person = Row("user", "age")
    rows = [
        person("ada", 36),
        person("bob", None),
        Row(age=3, user="c"),
        deleted(person("d", 1)),
        Row(1),
        Row(),
    ]
    for some in (rows, rows[:2], rows[3:4], rows[4:5], [None, *rows]):
        restored = round_trip(some)
        assert restored == some
        assert [row and row.get_row_kind() for row in restored] == [
            row and row.get_row_kind() for row in some
        ]
    assert round_trip(rows[:2])[1].user == "bob"
    assert encode(rows[:2], "x")[0].type == pa.struct([("f0", pa.large_string()), ("f1", pa.int64())])


def test_a_dictionary_keeps_its_order() -> None:
    (value,) = round_trip([{"z": 1, "a": 2, "m": 3}])
    assert list(value) == ["z", "a", "m"]


def test_a_time_zone_comes_back_as_itself() -> None:
    utc, berlin = round_trip([datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=BERLIN)])
    assert utc.tzinfo is UTC
    assert berlin.tzinfo is BERLIN


def test_values_of_one_type_are_a_column_of_it() -> None:
    assert encode([1, 2], "x")[0].type == pa.int64()
    assert encode([1, None], "x")[0].type == pa.int64()
    assert encode(["a"], "x")[0].type == pa.large_string()
    assert encode([(1, "a")], "x")[0].type == pa.struct([("f0", pa.int64()), ("f1", pa.large_string())])


class Colour(IntEnum):
    RED = 1


class Zone(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(0)


Point = namedtuple("Point", "x y")


class OwnRow(Row):
    pass


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="an object"),
        {1},
        Colour.RED,
        Point(1, 2),
        OwnRow(1),
        np.int64(1),
        np.float64(1),
        bytearray(b"a"),
        1j,
        print,
    ],
    ids=repr,
)
def test_a_value_of_another_type_is_refused_with_advice(value: Any) -> None:
    with pytest.raises(SchemaError, match=r"values of 'v': .* name a Serializer"):
        encode([1, [value]], "values of 'v'")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\ud800", "lone surrogate at 1"),
        (timedelta.max, "timedelta is beyond 64 bits"),
        (time(1, tzinfo=UTC), "time zone"),
        (time(1, fold=1), "fold"),
        (datetime(2020, 1, 1, tzinfo=Zone()), "time zone of its own"),
        (datetime(2020, 1, 1, tzinfo=timezone(timedelta(0), "Z")), "time zone of its own"),
    ],
)
def test_a_value_beyond_its_column_is_refused(value: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        encode([value], "values of 'v'")


def test_a_list_in_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(SchemaError, match="in themselves"):
        encode([endless], "values of 'v'")


@pytest.mark.parametrize("wrap", [lambda v: [v, None], lambda v: {1: v, 2: None}, lambda v: (v, 1)])
def test_the_deepest_values_go_through_a_file(wrap: Any) -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    assert same(round_trip([value, value]), [value, value])
    with pytest.raises(SchemaError, match="deep"):
        encode([wrap(value)], "values of 'v'")


@pytest.mark.parametrize(
    "shape", ["str", "bool", ["tuple", "int"], ["list", "int"], ["union", "int"], "unknown"]
)
def test_a_column_of_another_shape_is_refused(shape: Any) -> None:
    with pytest.raises(SchemaError):
        decode(pa.array([1, 2]), shape)


def test_an_unknown_time_zone_is_told() -> None:
    array, shape = encode([datetime(2020, 1, 1, tzinfo=BERLIN)], "x")
    parts = [array.field(0), array.field(1), pa.array(["Nowhere/Town"], pa.large_string())]
    with pytest.raises(SchemaError, match="Nowhere/Town"):
        decode(pa.StructArray.from_arrays(parts, ["local", "fold", "zone"]), shape)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1], "int"),
        ([1, 2**70], "int"),
        ([1, None], "int | None"),
        ([1, "a"], "int | str"),
        ([(1, [2.0])], "tuple[int, list[float]]"),
        ([(1,), (1, 2)], "tuple[int, ...]"),
        ([{"a": b""}], "dict[str, bytes]"),
        ([SerializedValue("pickle", b"")], "serialized by pickle"),
        ([Row(user="ada", age=36)], "Row[user: str, age: int]"),
        ([Row(1, "a")], "Row[int, str]"),
        ([Row(1), Row(1, 2)], "Row"),
    ],
)
def test_a_shape_reads_as_a_type(values: list[Any], text: str) -> None:
    assert shape_text(encode(values, "x")[1]) == text


def test_serialized_values_are_found_at_any_depth() -> None:
    assert has_serialized(encode([{1: [SerializedValue("s", b"")]}], "x")[1])
    assert not has_serialized(encode([{"serialized": [1]}], "x")[1])


def test_equal_columns_are_decoded_once_but_zeros_of_different_signs_are_no_equals() -> None:
    def decoded(*columns: list[Any]) -> list[list[Any]]:
        once = EqualColumnsOnce()
        return [once.decode(*encode(column, "keys")) for column in columns]

    first, again = decoded([("a", 0.5)], [("a", 0.5)])
    assert first is again
    for zeros in ([0.0, -0.0], [("a", 0.0), ("a", -0.0)], [("a", (0.0,)), ("b", (-0.0,))]):
        found = decoded(zeros, zeros[::-1], zeros)
        assert repr(found) == repr([zeros, zeros[::-1], zeros])
