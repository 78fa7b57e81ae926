"""Flink still answers to the recorded scripts as it was recorded."""

import json
from pathlib import Path

import pytest
from jobs.aggregate_functions import Trace
from recorders.sql_scripts import SCRIPTS

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, SqlError, UnsupportedOperationError
from flinkcore.sql.planner.planned_script import planned
from flinkcore.sql.planner.statements import statements_of
from flinkcore.table.udf import udaf


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
