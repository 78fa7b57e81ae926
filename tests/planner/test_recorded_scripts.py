"""Flink still answers to the recorded scripts as it was recorded."""

import json
from pathlib import Path
from typing import Any

import pytest
from jobs.aggregate_functions import Trace
from jobs.declared_functions import added
from recorders.sql_scripts import SCRIPTS

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, SqlError, UnsupportedOperationError
from flinkcore.sql.planner.planned_script import planned
from flinkcore.sql.planner.statements import statements_of
from flinkcore.table import DataTypes
from flinkcore.table.udf import udaf, udtf


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.sql")), ids=lambda path: path.stem)
def test_a_script_has_the_recorded_plans(path: Path) -> None:
    recorded = json.loads(path.with_suffix(".json").read_text())["steps"]
    jobs = planned(statements_of(path.read_text()), {})
    for job, step in zip(jobs, recorded, strict=True):
        assert [node["type"] for node in job.plan["nodes"]] == [
            node["type"] for node in step["plan"]["nodes"]
        ]
        assert [node["outputType"] for node in job.plan["nodes"]] == [
            node["outputType"] for node in step["plan"]["nodes"]
        ]
        assert dict(job.settings) == step["settings"]


def test_an_error_has_its_place_in_the_script() -> None:
    script = "-- comment\nCREATE TABLE t (a INT) WITH ('connector' = 'kafka');\n\n  SELECT a,\n    b FROM t"
    with pytest.raises(SqlError, match="line 5, column 5: Column 'b' not found in any table") as caught:
        planned(statements_of(script), {})
    assert (caught.value.line, caught.value.column) == (5, 5)
    assert "org.apache" not in str(caught.value)


def test_a_sink_that_takes_no_changes_is_refused_for_a_query_of_changes() -> None:
    script = (
        "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'format' = 'json');"
        "CREATE TABLE s (a INT, n BIGINT) WITH ('connector' = 'kafka', 'format' = 'json');"
        "INSERT INTO s SELECT a, COUNT(*) FROM t GROUP BY a"
    )
    with pytest.raises(SqlError, match="doesn't support consuming update changes"):
        planned(statements_of(script), {})
    upsert = script.replace("n BIGINT", "n BIGINT, PRIMARY KEY (a) NOT ENFORCED").replace(
        "s (a INT", "s (a INT NOT NULL"
    )
    head, _, tail = upsert.rpartition("'connector' = 'kafka'")
    (job,) = planned(statements_of(f"{head}'connector' = 'upsert-kafka'{tail}"), {})
    assert job.plan["nodes"][-1]["inputChangelogMode"] == ["INSERT", "UPDATE_AFTER"]


def test_settings_hold_from_their_statement_on() -> None:
    jobs = planned(
        statements_of("SELECT 1; SET 'a' = 'b'; SET c = d; SELECT 2; RESET 'a'; SELECT 3; RESET; SELECT 4"),
        {"e": "f"},
    )
    assert [dict(job.settings) for job in jobs] == [
        {"e": "f"},
        {"e": "f", "a": "b", "c": "d"},
        {"e": "f", "c": "d"},
        {},
    ]


@pytest.mark.parametrize("statement", ["SHOW TABLES", "EXPLAIN SELECT 1"])
def test_other_statements_are_refused_by_name(statement: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="is not supported: scripts create tables"):
        planned(statements_of(f"{statement}; SELECT 1"), {})


def test_a_table_is_created_as_the_rows_of_a_query() -> None:
    (job,) = planned(statements_of("CREATE TABLE t WITH ('connector' = 'print') AS SELECT 1 AS a"), {})
    assert job.plan["nodes"][-1]["dynamicTableSink"]["table"]["resolvedTable"]["options"] == {
        "connector": "print"
    }


def test_a_table_created_from_a_query_is_there_for_later_statements() -> None:
    script = "CREATE TABLE t WITH ('connector' = 'print') AS SELECT 1 AS a; SELECT a FROM t"
    created, read = planned(statements_of(script), {})
    assert (created.is_query, read.is_query) == (False, True)


def test_a_temporary_table_is_dropped_and_made_again() -> None:
    script = (
        "CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'kafka', 'format' = 'json');"
        "DROP TEMPORARY TABLE t; DROP TEMPORARY TABLE IF EXISTS t;"
        "CREATE TEMPORARY TABLE t (b STRING) WITH ('connector' = 'kafka', 'format' = 'json'); SELECT b FROM t"
    )
    (job,) = planned(statements_of(script), {})
    assert job.plan["nodes"][0]["outputType"] == "ROW<`b` VARCHAR(2147483647)>"


def test_functions_in_python_stand_for_those_that_a_script_creates() -> None:
    script = (
        "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'format' = 'json');"
        "CREATE TEMPORARY SYSTEM FUNCTION spread AS 'company.Spread'; SELECT spread(a) FROM t"
    )
    with pytest.raises(SqlError, match=r"company\.Spread"):
        planned(statements_of(script), {})
    (job,) = planned(statements_of(script), {}, {"spread": udaf(Trace(), result_type="STRING")})
    (call,) = (call for node in job.plan["nodes"] for call in node.get("aggCalls", ()))
    assert (call["systemName"], call["type"]) == ("spread", "VARCHAR(2147483647)")
    with pytest.raises(ConfigurationError, match="needs the types of the function spread"):
        planned(statements_of(script), {}, {"spread": Trace()})


def test_a_script_creates_functions_in_python() -> None:
    script = (
        "CREATE TEMPORARY FUNCTION weighted AS 'jobs.aggregate_functions.WEIGHTED' LANGUAGE PYTHON;"
        "SELECT weighted(a, a) AS w FROM (VALUES (1), (3)) AS t(a)"
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    assert environment.from_sql(script).to_arrow().column("w").to_pylist()[-1] == 2


def names_of_functions(script: str, functions: dict[str, Any] | None = None) -> list[list[str]]:
    """Return the names of the functions in Python that each query of a script can call."""
    jobs = planned(statements_of(script), {}, functions)
    return [sorted(function.name for function in job.functions.values()) for job in jobs]


ADDED = "AS 'jobs.declared_functions.added' LANGUAGE PYTHON;"
NEGATED = "AS 'jobs.declared_functions.negated' LANGUAGE PYTHON;"


@pytest.mark.parametrize("kind", ["", "TEMPORARY ", "TEMPORARY SYSTEM "])
def test_a_function_is_dropped_and_made_again(kind: str) -> None:
    script = (
        f"CREATE {kind}FUNCTION f {ADDED} SELECT f(1); CREATE {kind}FUNCTION IF NOT EXISTS F {NEGATED} SELECT f(1);"
        f"DROP {kind}FUNCTION F; DROP {kind}FUNCTION IF EXISTS f; CREATE {kind}FUNCTION f {NEGATED} SELECT f(1)"
    )
    assert names_of_functions(script) == [["added"], ["added"], ["negated"]]
    rows = StreamExecutionEnvironment.get_execution_environment().execute_sql(script)
    assert [
        next(iter(rows[name].to_arrow().to_pylist()[0].values()))
        for name in ("select", "select_2", "select_3")
    ] == [2, 2, -1]
    with pytest.raises(SqlError, match=r"(?i)exist"):
        planned(
            statements_of(f"CREATE {kind}FUNCTION f {ADDED} CREATE {kind}FUNCTION `F` {NEGATED} SELECT 1"), {}
        )
    with pytest.raises(SqlError, match=r"(?i)No match found for function signature f"):
        planned(statements_of(f"CREATE {kind}FUNCTION f {ADDED} DROP {kind}FUNCTION f; SELECT f(1)"), {})
    with pytest.raises(SqlError, match=r"(?i)exist"):
        planned(statements_of(f"DROP {kind}FUNCTION f; SELECT 1"), {})


def test_a_temporary_function_hides_a_permanent_one_until_it_is_dropped() -> None:
    script = (
        f"CREATE FUNCTION f {ADDED} CREATE TEMPORARY FUNCTION f {NEGATED} SELECT f(1);"
        f"ALTER FUNCTION f {NEGATED} DROP TEMPORARY FUNCTION f; SELECT f(1); ALTER FUNCTION f {ADDED} SELECT f(1)"
    )
    assert names_of_functions(script) == [["negated"], ["negated"], ["added"]]
    with pytest.raises(SqlError, match=r"temporary function .* does not exist"):
        planned(statements_of(f"CREATE FUNCTION f {ADDED} DROP TEMPORARY FUNCTION f; SELECT f(1)"), {})


@pytest.mark.parametrize(
    "name", ["F", "`f`", "my . f", "`my`.`f`", "default_catalog . `my` .f", "`my.f`", "`a ``b`", "f$1"]
)
def test_names_of_functions_are_those_of_flink(name: str) -> None:
    script = f"CREATE DATABASE my; USE my; CREATE FUNCTION {name} {ADDED} SELECT {name}(1) AS a"
    environment = StreamExecutionEnvironment.get_execution_environment()
    assert environment.from_sql(script).to_arrow().column("a").to_pylist() == [2]


def test_given_functions_are_dropped_as_those_that_they_stand_for() -> None:
    script = "CREATE FUNCTION `My F` AS 'company.F'; SELECT `my f`(1); DROP FUNCTION `My F`; SELECT 1"
    assert names_of_functions(script, {"my f": added}) == [["added"], []]
    assert names_of_functions("SELECT default_database.g(1)", {"`default_database`.G": added}) == [["added"]]


@pytest.mark.parametrize(
    "kinds",
    [
        DataTypes.ROW([DataTypes.FIELD("x", DataTypes.STRING()), DataTypes.FIELD("y", DataTypes.INT())]),
        "ROW<f0 STRING, f1 INT>",
    ],
)
def test_fields_of_a_row_are_the_columns_of_a_table_function(kinds: Any) -> None:
    codes = udtf(lambda text: [(each, ord(each)) for each in text], result_types=kinds)
    script = "SELECT f0, f1 + 1 AS n FROM (VALUES ('ab')) AS t(s), LATERAL TABLE(codes(s))"
    rows = StreamExecutionEnvironment.get_execution_environment().from_sql(script, functions={"codes": codes})
    assert rows.to_arrow().to_pylist() == [{"f0": "a", "n": 98}, {"f0": "b", "n": 99}]
