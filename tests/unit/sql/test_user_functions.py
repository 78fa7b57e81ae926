"""Functions in Python for those that a plan names: of rows, of columns, and of tables."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from jobs.sql_scenarios import golden

from flinkcore.cli import main
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError

NAME = "`default_catalog`.`default_database`.`twice`"
CALL = f'"catalogName": "{NAME}", "class": "company.Twice"'


def plan_of(name: str, built_in: str) -> dict[str, Any]:
    """Return a plan with a function of a catalog in place of a built-in one."""
    text = json.dumps(golden(name)["plan"])
    assert built_in in text
    changed: dict[str, Any] = json.loads(text.replace(f'"internalName": "{built_in}"', CALL))
    return changed


@pytest.fixture
def plan() -> dict[str, Any]:
    return plan_of("functions-fn-79", "$REPEAT$1")


NUMBERS = pa.table({"k": ["a"] * 4, "v": pa.array([0, 1, None, 3], pa.int32()), "ts": [0] * 4})


def results(plan: dict[str, Any], function: Any, name: str = "twice") -> list[Any]:
    environment = StreamExecutionEnvironment.get_execution_environment()
    numbers = NUMBERS.set_column(2, "ts", NUMBERS.column("ts").cast(pa.timestamp("ms")))
    rows = environment.from_plan(plan, {"f": numbers}, functions={name: function})
    found: list[Any] = rows.execute().to_arrow().column("e0").to_pylist()
    return found


def twice(text: str, times: int | None) -> str | None:
    return None if times is None else text * 2 * times


@pytest.mark.parametrize("name", ["twice", "default_catalog.default_database.twice", NAME])
def test_a_function_is_called_with_the_values_of_each_row(plan: dict[str, Any], name: str) -> None:
    assert results(plan, twice, name) == ["", "abab", None, "ab" * 6]


def test_a_function_that_returns_an_array_is_called_with_columns(plan: dict[str, Any]) -> None:
    def of_columns(texts: pa.Array, times: pa.Array) -> pa.Array:
        return pc.binary_repeat(texts, times.fill_null(2))

    assert results(plan, of_columns) == ["", "ab", "abab", "ababab"]


def test_a_function_that_returns_a_series_is_called_with_series(plan: dict[str, Any]) -> None:
    def of_series(texts: pd.Series, times: pd.Series) -> pd.Series:
        return texts + times.fillna(7).astype(int).astype(str)

    assert results(plan, of_series) == ["ab0", "ab1", "ab7", "ab3"]


def test_the_failure_of_a_function_shows_its_row(plan: dict[str, Any]) -> None:
    def fails(text: str, times: int | None) -> str:
        return text[100 // (times or 3)] if times else ""

    with pytest.raises(DataError, match=r"the function twice: IndexError"):
        results(plan, fails)


def test_a_value_of_another_type_is_named(plan: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"the function twice returned 1, which is not string"):
        results(plan, lambda text, times: 1)


def test_a_column_of_another_length_is_an_error(plan: dict[str, Any]) -> None:
    def shorter(texts: pa.Array, times: pa.Array) -> pa.Array:
        return texts.slice(1)

    with pytest.raises(DataError, match=r"the function twice returned \d values for \d rows"):
        results(plan, shorter)


def test_a_function_without_code_is_refused_with_the_remedy(plan: dict[str, Any]) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(
        UnsupportedOperationError, match=r"give it in Python, as functions=\{'twice': \.\.\.\}"
    ):
        environment.from_plan(plan, {"f": NUMBERS})


def test_what_cannot_be_called_is_refused(plan: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="cannot be called"):
        results(plan, "twice")


def test_a_branch_calls_a_function_for_its_own_rows_only() -> None:
    plan = plan_of("functions-fn-79", "$REPEAT$1")
    (calc,) = (node for node in plan["nodes"] if node["type"] == "stream-exec-calc_1")
    call = calc["projection"][1]
    is_null = {
        "kind": "CALL",
        "internalName": "$IS NULL$1",
        "operands": [call["operands"][1]],
        "type": "BOOLEAN",
    }
    text = {"kind": "LITERAL", "value": "none", "type": "VARCHAR(2147483647)"}
    operands = [is_null, text, call]
    calc["projection"][1] = {**is_null, "internalName": "$CASE$1", "operands": operands, "type": call["type"]}
    assert results(plan, lambda text, times: text * times) == ["", "ab", "none", "ababab"]


def test_a_table_function_makes_rows() -> None:
    scenario = golden("nodes-unnest_cross_join_a")
    text = json.dumps(scenario["plan"]).replace('"internalName": "$UNNEST_ROWS$1"', CALL)
    environment = StreamExecutionEnvironment.get_execution_environment()
    times = pa.array([0, 1, 2], pa.timestamp("ms"))
    table = pa.table(
        {
            "k": ["x", "y", "z"],
            "a": pa.array([[1, 2], [], [3]], pa.list_(pa.int64())),
            "r": pa.array([None] * 3, pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
            "m": pa.array([None] * 3, pa.map_(pa.string(), pa.int32())),
            "e": pa.array([0] * 3, pa.int64()),
            "ts": times,
        }
    )

    def twice(numbers: list[int]) -> list[int]:
        return [2 * number for number in numbers]

    log = environment.from_event_log(table, timestamp="ts")
    (name,) = scenario["tables"]
    rows = environment.from_plan(text, {name: log}, functions={"twice": twice}).execute().to_arrow()
    assert rows.column(rows.num_columns - 1).to_pylist() == [2, 4, 6]


def test_the_command_takes_a_function_of_a_module(
    plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "functions_of_a_test.py").write_text(
        "def twice(text, times):\n    return text * (times or 1)\n"
    )
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    numbers = NUMBERS.set_column(2, "ts", NUMBERS.column("ts").cast(pa.timestamp("ms")))
    pq.write_table(numbers, tmp_path / "f.parquet")
    arguments = ["sql", "plan.json", "--table", "f=f.parquet", "--quiet"]
    assert main([*arguments, "--function", "twice=functions_of_a_test:twice"]) == 0
    assert "ababab" in capsys.readouterr().out
    assert main([*arguments, "--function", "twice=functions_of_a_test:thrice"]) == 1
    assert "cannot be imported" in capsys.readouterr().err
