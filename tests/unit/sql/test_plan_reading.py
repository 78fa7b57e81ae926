"""Compiled plans as they are read: nodes, types, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs.sql_scenarios import golden

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.sql.plan.compiled_plan import CompiledPlan
from flinkcore.sql.plan.rex import Literal, RexCall, rex_of
from flinkcore.sql.types.logical_types import Root, type_of


@pytest.fixture
def plan() -> dict[str, Any]:
    found: dict[str, Any] = golden("edges-fire_one_phase")["plan"]
    return found


@pytest.fixture
def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("DECIMAL(10, 2) NOT NULL", pa.decimal128(10, 2)),
        ("VARCHAR(2147483647)", pa.string()),
        ("TIMESTAMP(3)", pa.timestamp("ms")),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.timestamp("us", "UTC")),
        ("INTERVAL SECOND(6) NOT NULL", pa.int64()),
        ("INTERVAL YEAR(2)", pa.int32()),
        ("ARRAY<MAP<VARCHAR(3), INT NOT NULL>>", pa.list_(pa.map_(pa.string(), pa.int32()))),
        (
            "ROW<`a b` INT, `c` ROW<`d` DOUBLE>>",
            pa.struct([("a b", pa.int32()), ("c", pa.struct([("d", pa.float64())]))]),
        ),
    ],
)
def test_types_are_read_from_their_text(text: str, arrow: pa.DataType) -> None:
    assert type_of(text).arrow == arrow
    assert type_of(text).nullable is not text.endswith("NOT NULL")
    assert type_of(str(type_of(text))) == type_of(text)


def test_a_time_attribute_is_read_from_an_object() -> None:
    found = type_of({"type": "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "precision": 3, "kind": "ROWTIME"})
    assert (found.root, found.precision, found.time_attribute) == (Root.TIMESTAMP_LTZ, 3, "ROWTIME")


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="RAW"):
        type_of("RAW('x', 'y')")


def test_nodes_come_after_their_inputs(plan: dict[str, Any]) -> None:
    read = CompiledPlan.of(plan)
    assert [node.kind for node in read.nodes][:2] == ["table-source-scan", "watermark-assigner"]
    places = {node.id: number for number, node in enumerate(read.nodes)}
    assert all(places[each.id] < places[node.id] for node in read.nodes for each in node.inputs)
    assert [node.kind for node in read.sinks] == ["sink"]


def test_a_plan_is_read_from_a_path_and_from_text(plan: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    assert (
        len(CompiledPlan.of(path).nodes) == len(CompiledPlan.of(json.dumps(plan)).nodes) == len(plan["nodes"])
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [("no/such/plan.json", "cannot be read"), ("{", "not JSON"), ('{"nodes": []}', "not a compiled plan")],
)
def test_a_file_that_is_not_a_plan_is_refused(given: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        CompiledPlan.of(given)


def test_a_plan_of_another_version_is_refused(plan: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOperationError, match=r"compiled by Flink 1\.20"):
        CompiledPlan.of({**plan, "flinkVersion": "1.20"})


def test_a_batch_plan_is_refused(plan: dict[str, Any]) -> None:
    nodes = [{**plan["nodes"][0], "type": "batch-exec-table-source-scan_1"}]
    with pytest.raises(UnsupportedOperationError, match="streaming mode"):
        CompiledPlan.of({**plan, "nodes": nodes, "edges": []})


def test_names_of_functions_lose_their_marks() -> None:
    written = {"kind": "CALL", "internalName": "$IS NOT NULL$1", "operands": [], "type": "BOOLEAN NOT NULL"}
    found = rex_of(written)
    assert isinstance(found, RexCall)
    assert found.name == "IS NOT NULL"


def test_a_search_has_the_ranges_of_its_constant() -> None:
    ranges = [{"lower": {"value": 1, "boundType": "CLOSED"}, "upper": {"value": 3, "boundType": "OPEN"}}]
    written = {"kind": "LITERAL", "sarg": {"ranges": ranges, "nullAs": "FALSE"}, "type": "INT NOT NULL"}
    found = rex_of(written)
    assert isinstance(found, Literal)
    assert found.sarg is not None
    ((lower, upper),) = found.sarg.ranges
    assert lower is not None
    assert upper is not None
    assert (lower.value, lower.is_closed, upper.value, upper.is_closed) == (1, True, 3, False)
    assert found.sarg.null_as is False


def test_a_node_that_does_not_run_is_refused_with_its_description(
    environment: StreamExecutionEnvironment,
) -> None:
    text = json.dumps(golden("match-1-4")["plan"]).replace("stream-exec-match_1", "stream-exec-ml-predict_1")
    plan = json.loads(text)
    with pytest.raises(UnsupportedOperationError, match=r"node \d of the plan, Match\(.* ml-predict is not"):
        environment.from_plan(plan, {"f": pa.table({"k": ["a"]})})


def test_a_function_that_does_not_run_is_refused_by_name(environment: StreamExecutionEnvironment) -> None:
    text = json.dumps(golden("edges-zero_scalars")["plan"]).replace("$*$1", "$UUID$1")
    with pytest.raises(UnsupportedOperationError, match="the function UUID is not supported"):
        environment.from_plan(text, {"f": "log.csv"})


def test_a_missing_table_is_named(plan: dict[str, Any], environment: StreamExecutionEnvironment) -> None:
    with pytest.raises(ConfigurationError, match=r"the table f of .* and tables= has g\. Give tables=\{'f'"):
        environment.from_plan(plan, {"g": "log.csv"})


def test_an_unknown_sink_is_named(plan: dict[str, Any], environment: StreamExecutionEnvironment) -> None:
    with pytest.raises(ConfigurationError, match="sink= is 'other'"):
        environment.from_plan(plan, {"f": pa.table({"k": ["a"]})}, sink="other")
    with pytest.raises(ConfigurationError, match="sinks= names other"):
        environment.execute_plan(plan, {"f": pa.table({"k": ["a"]})}, {"other": "results"})
