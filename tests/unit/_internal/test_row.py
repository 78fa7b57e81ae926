"""Rows behave as PyFlink's, however they are made."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from flinkcore._internal.values.row import rows_of_columns
from flinkcore.common import Row, RowKind


def by_constructor(**values: Any) -> Row:
    row = Row(*values.values())
    row.set_field_names(list(values))
    return row


def by_columns(**values: Any) -> Row:
    (row,) = rows_of_columns(list(values), [[value] for value in values.values()])
    return row


def by_a_row_of_names(**values: Any) -> Row:
    return Row(*values)(*values.values())


@pytest.fixture(params=[by_constructor, by_columns, by_a_row_of_names])
def made(request: pytest.FixtureRequest) -> Callable[..., Row]:
    maker: Callable[..., Row] = request.param
    return maker


def test_values_are_read_by_name_by_place_and_as_attributes(made: Callable[..., Row]) -> None:
    row = made(user="ada", age=36)
    assert (row.user, row["user"], row[0], row[-1], row[0:2]) == ("ada", "ada", "ada", 36, ["ada", 36])
    assert (list(row), len(row)) == (["ada", 36], 2)


def test_a_value_is_set_by_name_and_place_but_not_as_an_attribute(made: Callable[..., Row]) -> None:
    row = made(user="ada", age=36)
    row["user"] = "bob"
    row[1] = 41
    assert row.as_dict() == {"user": "bob", "age": 41}
    assert row.user == "bob"
    row[0:2] = ["eve", 2]
    assert list(row) == ["eve", 2]
    for name in ("user", "town"):
        with pytest.raises(AttributeError):
            setattr(row, name, "x")


def test_missing_names_are_an_attribute_error_or_a_value_error(made: Callable[..., Row]) -> None:
    row = made(user="ada")
    with pytest.raises(AttributeError, match="town"):
        row.town  # noqa: B018
    with pytest.raises(ValueError, match="town"):
        row["town"]
    with pytest.raises(ValueError, match="town"):
        row["town"] = 1
    with pytest.raises(IndexError):
        row[1]
    with pytest.raises(IndexError):
        row[1] = 1
    assert not hasattr(row, "_town")


def test_membership_is_of_names_where_there_are_names(made: Callable[..., Row]) -> None:
    row = made(user="ada", age=36)
    assert "user" in row
    assert "ada" not in row
    assert "ada" in Row("ada", 36)


def test_rows_print_their_names(made: Callable[..., Row]) -> None:
    assert repr(made(user="ada", age=36)) == "Row(user='ada', age=36)"
    assert repr(Row("ada", 36)) == "<Row('ada', 36)>"


def test_rows_are_equal_by_values_names_and_kind(made: Callable[..., Row]) -> None:
    row = made(user="ada", age=36)
    assert row == by_constructor(user="ada", age=36) == by_columns(user="ada", age=36)
    assert hash(row) == hash(Row("ada", 36))
    assert row == made(age=36, user="ada")
    assert hash(row) == hash(made(age=36, user="ada"))
    assert row != made(user="ada", age=37)
    assert row != made(user="ada", years=36)
    assert row != Row("ada", 36)
    assert row != ("ada", 36)
    deleted = copy.copy(row)
    deleted.set_row_kind(RowKind.DELETE)
    assert row != deleted
    assert row.get_row_kind() is RowKind.INSERT


def test_rows_with_named_values_have_them_in_the_order_in_which_they_are_given() -> None:
    row = Row(user="ada", age=36)
    assert repr(row) == "Row(user='ada', age=36)"
    assert list(row) == ["ada", 36]
    with pytest.raises(ValueError, match="not both"):
        Row(1, user="ada")


def test_a_row_without_names_has_no_attributes_and_no_dict() -> None:
    row = Row("ada", 36)
    with pytest.raises(AttributeError):
        row.user  # noqa: B018
    with pytest.raises(KeyError):
        row["user"]
    with pytest.raises(KeyError):
        row["user"] = 1
    with pytest.raises(TypeError, match="have no names"):
        row.as_dict()


def test_kind_and_names_can_be_set(made: Callable[..., Row]) -> None:
    row = made(user="ada", age=36)
    row.set_row_kind(RowKind.UPDATE_AFTER)
    assert (row.get_row_kind(), row.user) == (RowKind.UPDATE_AFTER, "ada")
    row.set_field_names(["name", "years"])
    assert (row.name, row.get_row_kind()) == ("ada", RowKind.UPDATE_AFTER)
    with pytest.raises(AttributeError):
        row.user  # noqa: B018


def test_a_row_is_made_with_its_kind() -> None:
    assert Row.of_kind(RowKind.DELETE, user="ada").get_row_kind() is RowKind.DELETE
    assert list(Row.of_kind(RowKind.INSERT, 1, 2)) == [1, 2]


def test_values_of_some_names_are_found(made: Callable[..., Row]) -> None:
    assert made(user="ada", age=36).get_fields_by_names(["age", "user"]) == [36, "ada"]
    assert Row("ada", 36).get_fields_by_names(["x"]) == ["ada", 36]
    with pytest.raises(ValueError, match="town"):
        made(user="ada").get_fields_by_names(["town"])


def test_rows_in_values_become_dicts_if_that_is_asked_for() -> None:
    row = Row(key=1, value=Row(a=2), list=[Row(a=3), 4], dict={"x": Row(a=5)})
    assert row.as_dict()["value"] == Row(a=2)
    assert row.as_dict(True) == {"key": 1, "value": {"a": 2}, "list": [{"a": 3}, 4], "dict": {"x": {"a": 5}}}


def test_rows_can_be_pickled_and_copied(made: Callable[..., Row]) -> None:
    row = made(user="ada", age=[1])
    row.set_row_kind(RowKind.DELETE)
    for again in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row)):
        assert again == row
        assert again.get_row_kind() is RowKind.DELETE


def test_a_row_of_names_takes_no_more_values_than_it_has_names() -> None:
    with pytest.raises(ValueError, match="names 1 values, but there are 2"):
        Row("user")("ada", 36)


def test_names_of_methods_and_repeated_names_are_read_by_item() -> None:
    (row,) = rows_of_columns(["as_dict", "x", "x", "_y"], [[1], [2], [3], [4]])
    assert (row["as_dict"], row["x"], row.x, row["_y"], row[2]) == (1, 2, 2, 4, 3)
    assert row.as_dict() == {"as_dict": 1, "x": 3, "_y": 4}
    with pytest.raises(AttributeError):
        row._y  # noqa: B018


def test_kinds_print_as_in_changelogs() -> None:
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
