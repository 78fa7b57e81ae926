"""Flink makes the recorded plans of the golden scenarios from their SQL text, over replaced connectors."""

import json
import re
from typing import Any

import pytest
from jobs.aggregate_functions import DECLARED
from jobs.sql_scenarios import GOLDEN

from flinkcore.sql.planner.planned_script import planned
from flinkcore.sql.planner.statements import statements_of

KINDS = sorted(path.stem for path in GOLDEN.glob("*.jsonl") if path.stem not in ("functions", "scalar_error"))


def looked_up(scenario: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the options of tables that are looked up, which the recorder has its own connector for."""
    sources = (
        node["temporalTable"]["lookupTableSource"]["table"]
        for node in scenario["plan"]["nodes"]
        if "temporalTable" in node
    )
    return {table["identifier"].split("`")[-2]: table["resolvedTable"]["options"] for table in sources}


def script_of(scenario: dict[str, Any]) -> str:
    """Return the tables and the query of a scenario as a script."""
    statements, of_lookups = [], looked_up(scenario)
    for name, table in scenario["tables"].items():
        columns = [f"`{column}` {kind}" for column, kind in table["columns"]]
        if table.get("watermark"):
            rowtime = re.match(r"\s*`?(\w+)", table["watermark"])
            assert rowtime is not None
            columns.append(f"WATERMARK FOR `{rowtime[1]}` AS {table['watermark']}")
        if table.get("primary_key"):
            columns.append(f"PRIMARY KEY ({', '.join(table['primary_key'])}) NOT ENFORCED")
        is_nested = any(re.match(r"(MAP|ROW|ARRAY|MULTISET)\s*[<(]", kind) for _, kind in table["columns"])
        options = of_lookups.get(name) or {
            "connector": "filesystem",
            "path": f"file:///data/{name}",
            "format": "json" if is_nested else "csv",
        }
        shown = ", ".join(f"'{option}'='{value}'" for option, value in options.items())
        statements.append(f"CREATE TABLE `{name}` (\n  {', '.join(columns)}\n) WITH ({shown})")
    sql = scenario["sql"]
    *views, query = sql if isinstance(sql, list) else [sql]
    statements += views
    if scenario.get("sink") == "blackhole" or scenario.get("sink_key"):
        columns = [f"`{name}` {kind}" for name, kind in scenario["columns"]]
        if scenario.get("sink_key"):
            columns.append(f"PRIMARY KEY ({', '.join(scenario['sink_key'])}) NOT ENFORCED")
        connector = scenario.get("sink", "print")
        statements.append(f"CREATE TABLE `sink` ({', '.join(columns)}) WITH ('connector'='{connector}')")
        query = f"INSERT INTO `sink` {query}"
    return ";\n".join(statements) + f";\n{query};"


def comparable(plan: dict[str, Any]) -> Any:
    """Return a plan without the name and the options of its sink, and with correlated rows numbered in their order.

    Flink numbers these on from those that it has made for parts of the statement, such as the type of its sink.
    """
    text = json.dumps(plan).replace("default_database.select]", "default_database.sink]")
    text = re.sub(r"STRUCTURED<[^<>]*>", "BIGINT", text)  # of accumulators, which nothing reads
    for number, name in enumerate(dict.fromkeys(re.findall(r"\$cor\d+", text))):
        text = re.sub(rf"\{name}\b", f"$row{number}", text)
    found = json.loads(text.replace("`default_database`.`select`", "`default_database`.`sink`"))
    for node in found["nodes"]:
        if "dynamicTableSink" in node:
            node["dynamicTableSink"]["table"]["resolvedTable"].pop("options", None)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_has_the_plan_that_was_recorded(kind: str) -> None:
    compared = 0
    for line in (GOLDEN / f"{kind}.jsonl").read_text().splitlines():
        scenario = json.loads(line)
        # Logs leave filters and limits to the nodes after the scan.
        if "plan" not in scenario or "FilterPushDown" in line or "LimitPushDown" in line:
            continue
        (job,) = planned(statements_of(script_of(scenario)), scenario.get("settings", {}), DECLARED)
        assert comparable(dict(job.plan)) == comparable(scenario["plan"]), scenario["name"]
        compared += 1
    assert compared
