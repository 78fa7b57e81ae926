"""Expressions record calls of Flink's Table API."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from flinkcore.errors import ArgumentTypeError
from flinkcore.table import DataTypes, Expression
from flinkcore.table.calls import node_of
from flinkcore.table.expression import JsonQueryWrapper, TimeIntervalUnit
from flinkcore.table.expressions import (
    UNBOUNDED_ROW,
    call,
    col,
    if_then_else,
    json_array,
    lag,
    lit,
    log,
    map_,
    rand_integer,
    to_date,
    to_timestamp,
)
from flinkcore.table.udf import udf
from flinkcore.table.window import Over, Session, Slide, Tumble

A = {"call": "col", "class": "Expressions", "arguments": ["a"]}


def node(recorded: Any) -> Any:
    return node_of(recorded, lambda function: f"`{function.name}#1`")


def of(method: str, *arguments: Any, on: Any = A) -> dict[str, Any]:
    return {"call": method, "on": on, "arguments": list(arguments)}


def static(method: str, *arguments: Any) -> dict[str, Any]:
    return {"call": method, "class": "Expressions", "arguments": list(arguments)}


a = col("a")


@pytest.mark.parametrize(
    ("expression", "expected", "text"),
    [
        (a.is_null, of("isNull"), "col('a').is_null"),
        (a.stddev_pop, of("stddevPop"), "col('a').stddev_pop"),
        (a.sum0.alias("n"), of("as", "n", on=of("sum0")), "col('a').sum0.alias('n')"),
        (a.alias("x", "y"), of("as", "x", "y"), "col('a').alias('x', 'y')"),
        (a.in_(1, "b"), of("in", {"int": "1"}, "b"), "col('a').in_(1, 'b')"),
        (a.substring(1, None), of("substring", {"int": "1"}), "col('a').substring(1)"),
        (
            a.cast(DataTypes.DECIMAL(10, 2)),
            of("cast", {"type": "DECIMAL(10, 2)"}),
            "col('a').cast('DECIMAL(10, 2)')",
        ),
        (
            a.floor(TimeIntervalUnit.DAY),
            of("floor", {"enum": ["TimeIntervalUnit", "DAY"]}),
            "col('a').floor(TimeIntervalUnit.DAY)",
        ),
        (a + 1, of("plus", {"int": "1"}), "(col('a') + 1)"),
        (2.5 / a, of("dividedBy", A, on=static("lit", {"double": "2.5"})), "(2.5 / col('a'))"),
        (-a, static("negative", A), "-col('a')"),
        (~a, of("isNotTrue"), "~col('a')"),
        (abs(a), of("abs"), "abs(col('a'))"),
        (a == None, of("isEqual", None), "(col('a') == None)"),  # noqa: E711
        (a[3], of("at", {"int": "3"}), "col('a')[3]"),
        (a.street, of("get", "street"), "col('a').street"),
        (
            a.json_query("$.x", JsonQueryWrapper.CONDITIONAL_ARRAY),
            of(
                "jsonQuery",
                "$.x",
                {"enum": ["JsonQueryWrapper", "CONDITIONAL_ARRAY"]},
                *[{"enum": ["JsonQueryOnEmptyOrError", "NULL"]}] * 2,
            ),
            None,
        ),
        (map_("k", 1), static("map", "k", {"int": "1"}), "map_('k', 1)"),
        (to_date("2026-01-05"), static("toDate", "2026-01-05"), "to_date('2026-01-05')"),
        (log(a, 2), static("log", {"int": "2"}, A), "log(2, col('a'))"),
        (rand_integer(5, 1), static("randInteger", {"int": "1"}, {"int": "5"}), None),
        (lag(a), static("lag", A, {"int": "1"}), None),
        (json_array(), static("jsonArray", {"enum": ["JsonOnNull", "ABSENT"]}), None),
        (if_then_else(True, 1, None), static("ifThenElse", True, {"int": "1"}, None), None),
        (a.in_("x", None), of("in", "x", None), None),
        (to_timestamp("2026", None), static("toTimestamp", "2026"), None),
        (call("f", a), static("call", "f", A), "call('f', col('a'))"),
        (UNBOUNDED_ROW, static("UNBOUNDED_ROW"), "UNBOUNDED_ROW"),
    ],
    ids=str,
)
def test_an_expression_is_the_call_of_its_name_in_java(
    expression: Expression[Any], expected: dict[str, Any], text: str | None
) -> None:
    assert node(expression) == expected
    assert text is None or str(expression) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("x", "x"),
        (1 << 31, {"long": "2147483648"}),
        (1 << 63, {"integer": "9223372036854775808"}),
        (float("-inf"), {"double": "-Infinity"}),
        (float("nan"), {"double": "NaN"}),
        (Decimal("1.50"), {"decimal": "1.50"}),
        (b"\x00\xff", {"bytes": "AP8="}),
        (date(2026, 1, 5), {"date": "2026-01-05"}),
        (time(1, 2, 3), {"time": "01:02:03"}),
        (datetime(2026, 1, 5, 1), {"timestamp": "2026-01-05T01:00:00"}),
        (datetime(2026, 1, 5, 1, tzinfo=timezone.utc), {"instant": "2026-01-05T01:00:00+00:00"}),
        (timedelta(seconds=-1), {"duration": "-1000000"}),
    ],
    ids=str,
)
def test_a_value_has_its_type_in_java(value: Any, expected: Any) -> None:
    assert node(value) == expected


def test_a_value_without_a_type_in_java_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="is not a value of SQL"):
        node(a == object())


def test_a_condition_has_no_truth_value() -> None:
    with pytest.raises(
        TypeError, match=r"\(col\('a'\) > 1\) has no truth value.*Join conditions by & and \|"
    ):
        _ = a > 1 and a < 3
    with pytest.raises(TypeError, match="cannot be iterated over"):
        list(a)


def test_arguments_are_given_by_position() -> None:
    with pytest.raises(TypeError, match=r"substring\(\) takes its arguments by position: leave out length="):
        a.substring(1, length=2)


def test_a_function_of_the_program_is_called_by_its_name() -> None:
    doubled = udf(lambda x: 2 * x, result_type="BIGINT")
    assert node(doubled(a, 1)) == static("call", "`<lambda>#1`", A, {"int": "1"})
    assert str(doubled(a).alias("d")) == "<lambda>(col('a')).alias('d')"
    assert doubled.alias("d").names == ("d",)


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Tumble.over(lit(5).minutes).on(a).alias("w"), "Tumble.over(lit(5).minutes).on(col('a')).alias('w')"),
        (
            Slide.over(lit(5).minutes).every(lit(1).minutes).on(a).alias("w"),
            "Slide.over(lit(5).minutes).every(lit(1).minutes).on(col('a')).alias('w')",
        ),
        (
            Session.with_gap(lit(5).minutes).on(a).alias("w"),
            "Session.with_gap(lit(5).minutes).on(col('a')).alias('w')",
        ),
        (
            Over.partition_by(a).order_by(col("ts")).preceding(UNBOUNDED_ROW).alias("w"),
            "Over.partition_by(col('a')).order_by(col('ts')).preceding(UNBOUNDED_ROW).alias('w')",
        ),
    ],
    ids=["tumble", "slide", "session", "over"],
)
def test_a_window_is_a_chain_of_calls(window: Any, text: str) -> None:
    assert str(window) == text
    chain, methods = node(window), []
    while "on" in chain:
        methods.append(chain["call"])
        chain = chain["on"]
    assert chain["class"] == text.partition(".")[0]
    assert methods[0] == "as"
