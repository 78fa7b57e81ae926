"""Running sums, minima and maxima of a field of the elements of a key, and fields that elements do not have."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from flinkcore.common import Row, Types
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, DataError, UserCodeError

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.INT()])


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def collected(stream: DataStream) -> list[Any]:
    return list(stream.execute_and_collect())


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda s: s.sum(1), [Row("a", 3), Row("a", 4)]),
        (lambda s: s.min("f1"), [Row("a", 3), Row("a", 1)]),
        (lambda s: s.max_by(1), [Row("a", 3), Row("a", 3)]),
    ],
)
def test_rolling_aggregations_leave_the_elements_that_they_are_given(
    env: StreamExecutionEnvironment, call: Callable[[Any], DataStream], wanted: list[Row]
) -> None:
    given = [Row("a", 3), Row("a", 1)]
    rows = env.from_collection(given, Types.ROW([Types.STRING(), Types.INT()]))
    assert [list(row) for row in collected(call(rows.key_by(lambda row: row[0])))] == [
        list(row) for row in wanted
    ]
    assert [list(row) for row in given] == [["a", 3], ["a", 1]]


def test_a_position_of_elements_without_fields_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(DataError, match=r"sum\(1\): 1 has no fields"):
        collected(env.from_collection([1, 2]).key_by(lambda value: 0).sum(1))
    with pytest.raises(ConfigurationError, match=r"sum\(1\): an element is Integer, which has no fields"):
        env.from_collection([1, 2], Types.INT()).key_by(lambda value: 0).sum(1)
    with pytest.raises(ConfigurationError, match=r"position or the name of a field, not 1\.5"):
        env.from_collection([1, 2]).key_by(lambda value: 0).sum(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["sum", "min", "max", "min_by", "max_by"])
@pytest.mark.parametrize(
    ("type_info", "position", "message"),
    [
        (PAIR, 2, "(2): an element is TupleTypeInfo(String, Integer), which has 2 fields, at the positions from "
         "0 to 1"),
        (PAIR, -3, "(-3): an element is TupleTypeInfo(String, Integer), which has 2 fields"),
        (PAIR, "n", "('n'): an element is TupleTypeInfo(String, Integer), which has 2 fields, at the positions from "
         "0 to 1, without names"),
        (NAMED, "zz", "('zz'): an element is RowTypeInfo(user: String, n: Integer), which has 2 fields, at the "
         "positions from 0 to 1, named ['user', 'n']"),
        (NAMED, 2, "(2): an element is RowTypeInfo(user: String, n: Integer), which has 2 fields"),
    ],
)  # fmt: skip
def test_a_field_that_elements_of_the_declared_type_do_not_have_is_refused_where_the_job_is_defined(
    env: StreamExecutionEnvironment, method: str, type_info: Any, position: int | str, message: str
) -> None:
    keyed = env.from_collection([("a", 1)], type_info).key_by(lambda value: value[0])
    with pytest.raises(ConfigurationError, match=f"^{re.escape(method + message)}"):
        getattr(keyed, method)(position)


@pytest.mark.parametrize("method", ["sum", "min", "max", "min_by", "max_by"])
@pytest.mark.parametrize(
    ("elements", "position", "message"),
    [
        ([("a", 1)], 2, "(2): ('a', 1) has 2 fields, at the positions from 0 to 1, without names"),
        ([("a", 1)], "n", "('n'): ('a', 1) has 2 fields"),
        ([["a"], ["b"]], -2, "(-2): ['a'] has 1 fields"),
        ([Row(n=1)], "zz", "('zz'): Row(n=1) has 1 fields, at the positions from 0 to 0, named ['n']"),
        ([{"n": 1}], "n", "('n'): {'n': 1} has no fields"),
        ([("a", 1), ("a",)], 1, "(1): ('a',) has 1 fields"),
        ([()], 0, "(0): () has no fields"),
    ],
)
def test_a_field_that_an_element_does_not_have_is_told_at_the_first_such_element(
    env: StreamExecutionEnvironment, method: str, elements: Any, position: int | str, message: str
) -> None:
    stream = getattr(env.from_collection(elements).key_by(lambda value: 0), method)(position)
    with pytest.raises(DataError, match=f"^{re.escape(method + message)}"):
        collected(stream)


def test_values_of_a_field_that_do_not_go_together_are_told(env: StreamExecutionEnvironment) -> None:
    sums = env.from_collection([("a", None), ("a", 1)], PAIR).key_by(lambda value: value[0]).sum(1)
    with pytest.raises(DataError, match=r"^sum\(1\) of \('a', None\) and \('a', 1\) failed: TypeError"):
        collected(sums)


def test_a_rolling_aggregation_is_described_as_it_was_called(env: StreamExecutionEnvironment) -> None:
    sums = env.from_collection([("a", 1)], PAIR).key_by(lambda value: value[0]).sum(1)
    assert "sum of field 1: TupleTypeInfo(String, Integer)" in sums.explain()


def test_names_that_elements_do_not_have_are_told_of_keys(env: StreamExecutionEnvironment) -> None:
    named, plain = env.from_collection([("a", 1)], NAMED), env.from_collection([("a", 1)])
    for stream, names, message in (
        (named, ("zz",), r"element Row\(user='a', n=1\) without a timestamp: .*key_by\('zz'\): the fields of the "
         r"element are \['user', 'n'\]"),
        (named, ("user", "zz"), r"key_by\('user', 'zz'\): the fields of the element are"),
        (plain, ("user",), r"key_by\('user'\) takes elements with named fields"),
    ):  # fmt: skip
        with pytest.raises(UserCodeError, match=message):
            collected(stream.key_by(*names).reduce(lambda a, b: a))
