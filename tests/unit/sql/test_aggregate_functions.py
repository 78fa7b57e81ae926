"""Aggregate functions of users: what is called, kept and refused. Flink's rows are in the golden traces."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from jobs.aggregate_functions import FUNCTIONS, Trace
from jobs.sql_scenarios import environment_of, golden, of_steps, stream_of, tables_of

from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError
from flinkcore.sql.program import plan_sinks
from flinkcore.table import AggregateFunction, Row
from flinkcore.table.udf import udaf


def scenario(name: str) -> dict[str, Any]:
    return golden(f"aggregate_functions-{name}-0")


def rows_with(name: str, **functions: Any) -> list[dict[str, Any]]:
    """Return the rows of a scenario with other functions."""
    case = scenario(name)
    environment = environment_of(case)
    tables = tables_of(environment, case)
    (sink,) = plan_sinks(
        environment, case["plan"], tables, case["settings"], functions=FUNCTIONS | functions
    ).values()
    found: list[dict[str, Any]] = sink.stream.to_arrow().to_pylist()
    return found


@pytest.mark.parametrize("name", ["group_more", "retract", "over_rows2", "over_range", "one_phase_hop"])
def test_accumulators_are_kept_in_checkpoints(name: str, tmp_path: Path) -> None:
    case = scenario(name)
    whole = stream_of(case, environment_of(case)).to_arrow()
    first = stream_of(of_steps(case, 0, 7), environment_of(case))
    last = stream_of(of_steps(case, 7, 16), environment_of(case))
    parts = [
        first.execute(stop_with_checkpoint=tmp_path / "cut").to_arrow(),
        last.execute(restore_from=tmp_path / "cut").to_arrow(),
    ]
    assert sorted(map(str, pa.concat_tables(parts).to_pylist())) == sorted(map(str, whole.to_pylist()))


class WithoutMethods(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], v: int | None, w: int | None = None) -> None:
        accumulator.append(v or 0)

    def get_value(self, accumulator: list[int]) -> str:
        return str(sum(accumulator))


@pytest.mark.parametrize(
    ("name", "method"),
    [("retract", "retract"), ("over_rows2", "retract"), ("hop", "merge"), ("session", "merge")],
)
def test_a_missing_method_is_named_where_it_is_called(name: str, method: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=rf"the function trace has no {method}\(\)"):
        rows_with(name, trace=WithoutMethods())


def test_a_method_that_is_not_called_may_be_missing() -> None:
    assert rows_with("legacy_tumble", trace=WithoutMethods)


def test_a_failure_shows_the_call() -> None:
    class Fails(Trace):
        def accumulate(self, accumulator: list[str], v: int | None) -> None:
            raise RuntimeError("no")

    with pytest.raises(DataError, match=r"the function trace, accumulate\(\[\], \d\): RuntimeError\('no'\)"):
        rows_with("group", trace=Fails())


def test_a_result_of_another_type_is_named() -> None:
    class Number(Trace):
        def get_value(self, accumulator: list[str]) -> Any:
            return 1

    for name in ("group", "tumble"):
        with pytest.raises(DataError, match="the function trace returned 1, which is not string"):
            rows_with(name, trace=Number())


def test_a_result_that_is_the_accumulator_does_not_change_later() -> None:
    case = scenario("group")
    text = json.dumps(case["plan"]).replace(
        "`EXPR$1` VARCHAR(2147483647)", "`EXPR$1` ARRAY<VARCHAR(2147483647)>"
    )
    plan = json.loads(text)
    for node in plan["nodes"]:
        for call in node.get("aggCalls", ()):
            call["type"] = "ARRAY<VARCHAR(2147483647)>"

    class Values(Trace):
        def get_value(self, accumulator: list[str]) -> Any:
            return accumulator

    environment = environment_of(case)
    tables = tables_of(environment, case)
    (sink,) = plan_sinks(environment, plan, tables, {}, functions={"trace": Values()}).values()
    lengths = [len(row["EXPR$1"]) for row in sink.stream.to_arrow().to_pylist() if row["row_kind"] != "-U"]
    assert sorted(lengths)[:2] == [1, 1]


def test_a_function_is_opened_once_before_its_first_call() -> None:
    class Opened(Trace):
        opened = 0

        def open(self, function_context: Any) -> None:
            type(self).opened += 1

        def create_accumulator(self) -> list[str]:
            assert self.opened == 1
            return []

    assert rows_with("group", trace=Opened())
    assert Opened.opened == 1


def test_a_vectorized_function_takes_series_of_windows_and_bounded_frames() -> None:
    def joined(values: pd.Series) -> str:
        return "".join(f"+{'null' if pd.isna(value) else int(value)}" for value in values)

    vectorized = udaf(joined, result_type="STRING", func_type="pandas")
    wanted = [row["EXPR$2"] for row in rows_with("one_phase")]
    assert [row["EXPR$2"] for row in rows_with("one_phase", trace=vectorized)] == wanted
    frames = [row["EXPR$3"] for row in rows_with("over_rows2", trace=vectorized)]
    assert max(text.count("+") for text in frames) == 3
    with pytest.raises(UnsupportedOperationError, match="is vectorized"):
        rows_with("group", trace=vectorized)
    with pytest.raises(UnsupportedOperationError, match="is vectorized"):
        rows_with("over_rows", trace=vectorized)


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, float("nan")])
def test_what_pandas_takes_as_missing_is_null(missing: Any) -> None:
    vectorized = udaf(lambda values: missing, result_type="STRING", func_type="pandas")
    assert {row["EXPR$2"] for row in rows_with("one_phase", trace=vectorized)} == {None}


def test_rows_are_given_and_taken_as_rows() -> None:
    from flinkcore.sql.expressions.python_values import arrow_values, python_values
    from flinkcore.sql.types.logical_types import type_of

    assert python_values(pa.array([{"self": 1}]), type_of("ROW<`self` BIGINT>")) == [Row(self=1)]
    kind = type_of("ARRAY<ROW<`a` INT, `m` MAP<VARCHAR(5), ROW<`b` INT>>>>")
    column = pa.array([[{"a": 1, "m": [("x", {"b": 2})]}, None], None], kind.arrow)
    found = python_values(column, kind)
    assert found == [[Row(a=1, m={"x": Row(b=2)}), None], None]
    assert pa.array(arrow_values(found, kind), kind.arrow) == column
    assert pa.array(arrow_values([[(1, {"x": (2,)}), None], None], kind), kind.arrow) == column


def test_what_is_no_aggregate_function_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="trace is not an aggregate function"):
        rows_with("group", trace=lambda v: v)
    case = scenario("group")
    environment = environment_of(case)
    tables = tables_of(environment, case)
    with pytest.raises(UnsupportedOperationError, match=r"functions=\{'trace': ...\}"):
        plan_sinks(environment, case["plan"], tables, {})

    class NoValue:
        def accumulate(self, accumulator: Any, values: Iterable[Any]) -> None:
            pass

    with pytest.raises(ConfigurationError, match=r"without create_accumulator\(\)"):
        rows_with("group", trace=NoValue())
