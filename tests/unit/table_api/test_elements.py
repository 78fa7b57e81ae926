"""Elements of a program as tables: their types, and their values."""

import datetime
from decimal import Decimal
from typing import Any

import pytest

from flinkcore.common import Row
from flinkcore.errors import ArgumentTypeError
from flinkcore.table import DataTypes
from flinkcore.table_api.elements import table_of_elements


def test_types_are_those_that_pyflink_infers() -> None:
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
    row = (
        1,
        1.5,
        "a",
        True,
        b"x",
        Decimal("1.5"),
        moment.date(),
        moment,
        moment.time(),
        [[1]],
        {"a": 1},
        Row(x=1),
    )
    columns, rows = table_of_elements([row, (None,) * len(row)])
    assert columns == [
        ("_1", "BIGINT"),
        ("_2", "DOUBLE"),
        ("_3", "VARCHAR(2147483647)"),
        ("_4", "BOOLEAN"),
        ("_5", "VARBINARY(2147483647)"),
        ("_6", "DECIMAL(38, 18)"),
        ("_7", "DATE"),
        ("_8", "TIMESTAMP_LTZ(6)"),
        ("_9", "TIME(0)"),
        ("_10", "ARRAY<ARRAY<BIGINT>>"),
        ("_11", "MAP<VARCHAR(2147483647), BIGINT>"),
        ("_12", "ROW<`x` BIGINT>"),
    ]
    first = rows.slice(0, 1).to_pylist()[0]
    assert (first["_6"], first["_8"], first["_12"]) == (Decimal("1.5"), moment, {"x": 1})
    assert set(rows.slice(1).to_pylist()[0].values()) == {None}


def test_rows_may_be_dictionaries_values_or_named_rows() -> None:
    assert table_of_elements([{"b": 1, "a": "x"}, {"a": "y"}])[1].to_pylist() == [
        {"a": "x", "b": 1},
        {"a": "y", "b": None},
    ]
    assert table_of_elements([1, 2], ["n"])[1].to_pydict() == {"n": [1, 2]}
    assert table_of_elements([1, 2], DataTypes.INT())[0] == [("value", "INT")]
    assert table_of_elements([Row(k="a", v=1)])[1].to_pylist() == [{"k": "a", "v": 1}]


def test_a_moment_without_a_zone_is_of_that_of_the_process() -> None:
    naive = datetime.datetime(2024, 7, 1, 12)
    _, rows = table_of_elements([(naive,)])
    assert rows.to_pydict() == {"_1": [naive.astimezone(datetime.timezone.utc)]}


def test_decimals_are_rounded_to_their_type() -> None:
    kind = DataTypes.ROW([DataTypes.FIELD("d", DataTypes.ARRAY(DataTypes.DECIMAL(4, 1)))])
    _, rows = table_of_elements([([Decimal("1.25"), Decimal("12345")],)], kind)
    assert rows.to_pydict() == {"d": [[Decimal("1.3"), None]]}


@pytest.mark.parametrize(
    ("elements", "schema", "message"),
    [
        ([], ["a"], "the types of no elements are not known"),
        ([(None,)], ["a"], "the type of the column 'a' is not known"),
        ([(1,), ("x",)], ["a"], "the column 'a' has values of int, str, which have no type in common"),
        ([(object(),)], None, "the column '_1' has values of object"),
        ([(1, 2), (1,)], None, r"the row \(1,\) has 1 values, and there are 2 columns"),
        (
            [("x",)],
            DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]),
            "a value of the column 'a' is not INT",
        ),
        (
            [1],
            DataTypes.ROW([DataTypes.FIELD(n, DataTypes.INT()) for n in "ab"]),
            "is not a row of 2 columns",
        ),
        ([(1,)], "a", "a list of names or a type"),
    ],
)
def test_what_has_no_type_is_refused(elements: Any, schema: Any, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        table_of_elements(elements, schema)
