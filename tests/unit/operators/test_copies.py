"""Copies of values: containers are new, what is in them is the same."""

from collections import defaultdict
from typing import Any, NamedTuple

import pytest

from flinkcore._internal.values.row import rows_of_columns
from flinkcore.common import Row, RowKind
from flinkcore.operators.records.copies import copied


@pytest.mark.parametrize(
    "value",
    [
        1,
        "a",
        None,
        [1, [2]],
        (1, [2]),
        {"a": {"b": [1]}},
        {1, 2},
        bytearray(b"ab"),
        Row(1, [2]),
        Row(a=1, b=[2]),
    ],
)
def test_a_copy_is_equal_and_of_the_same_type(value: Any) -> None:
    assert (copied(value), type(copied(value))) == (value, type(value))


class Pair(NamedTuple):
    x: list[int]


class Numbers(list[Any]):
    pass


def default_dict(x: list[int]) -> Any:
    return defaultdict(list, x=x)


@pytest.mark.parametrize(
    "wrap",
    [
        default_dict,
        Pair,
        lambda x: Numbers([x]),
        lambda x: [x],
        lambda x: (x,),
        lambda x: {"x": x},
        Row,
        lambda x: Row(x=x),
    ],
)
def test_what_changes_later_does_not_reach_the_copy(wrap: Any) -> None:
    inner = [1]
    value = wrap(inner)
    copy = copied(value)
    inner.append(2)
    assert (copy, value) == (wrap([1]), wrap([1, 2]))
    assert type(copy) is type(value)


def test_other_objects_stay_the_same() -> None:
    thing = object()
    assert copied([thing])[0] is thing


def test_the_kind_and_the_names_of_a_row_stay() -> None:
    row = Row("user", "age")("ada", 36)
    row.set_row_kind(RowKind.DELETE)
    assert (copied(row), copied(row).get_row_kind()) == (row, RowKind.DELETE)
    (element,) = rows_of_columns(["user", "age"], [["ada"], [36]])
    assert (copied(element), copied(element).user) == (element, "ada")
