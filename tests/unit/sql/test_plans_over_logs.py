"""Compiled plans over files and Arrow data, with their watermarks and results."""

import json
import random
from datetime import datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jobs.sql_scenarios import golden

from flinkcore.cli import main
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError
from flinkcore.sql.expressions.comparisons import compare
from flinkcore.sql.expressions.evaluation import Evaluation, SqlFunction
from flinkcore.sql.expressions.functions import FUNCTIONS
from flinkcore.sql.expressions.refused_functions import REFUSED_FUNCTIONS
from flinkcore.sql.nodes.kinds import NODES, REFUSED
from flinkcore.sql.plan.rex import RexCall

CSV = """k,v,ts
a,1,2024-01-01 00:00:01
b,2,2024-01-01 00:00:03
a,3,2024-01-01T00:00:12
b,4,2024-01-01 00:00:02
"""
START = datetime(2024, 1, 1)


@pytest.fixture
def plan() -> dict[str, Any]:
    """The plan of sums and counts by key in windows of 10 s, whose watermark is the rowtime."""
    found: dict[str, Any] = golden("edges-fire_one_phase")["plan"]
    return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "part.csv").write_text(CSV)
    return tmp_path / "log"


def test_files_stand_for_a_table(plan: dict[str, Any], log: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    stream = environment.from_plan(plan, {"f": log}, settings={"pipeline.auto-watermark-interval": "0 ms"})
    with pytest.warns(UserWarning, match="late"):
        rows = stream.to_arrow().to_pylist()
    first = [row for row in rows if row["window_start"] == START]
    assert sorted((row["k"], row["s"], row["n"]) for row in first) == [("a", 1, 1), ("b", 2, 1)]
    assert len(rows) == 3


def test_watermarks_come_at_the_interval_of_the_environment(plan: dict[str, Any], log: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_auto_watermark_interval(86_400_000)
    rows = environment.from_plan(plan, {"f": log}).to_arrow().to_pylist()
    assert sorted((row["k"], row["s"]) for row in rows) == [("a", 1), ("a", 3), ("b", 6)]


def test_results_say_when_they_were_emitted(plan: dict[str, Any], log: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_auto_watermark_interval(0)
    table = environment.from_event_log(log, timestamp="v", arrival="v", split=None)
    with pytest.warns(UserWarning, match="late"):
        rows = environment.from_plan(plan, {"f": table}, emitted_at="seen").to_arrow().to_pylist()
    assert {row["k"]: row["seen"] for row in rows if row["window_start"] == START} == dict.fromkeys(
        "ab", datetime(1970, 1, 1, 0, 0, 0, 3000)
    )


def test_a_value_that_is_not_of_the_type_of_the_table_fails_with_its_row(plan: dict[str, Any]) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    data = pa.table({"k": ["a", "b"], "v": ["1", "two"], "ts": ["2024-01-01 00:00:01"] * 2})
    with pytest.raises(DataError, match=r"a value is not BIGINT.*v = 'two'"):
        environment.from_plan(plan, {"f": data}).to_arrow()


def test_a_null_rowtime_fails(plan: dict[str, Any]) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    data = pa.table({"k": ["a"], "v": [1], "ts": pa.array([None], pa.timestamp("ms"))})
    with pytest.raises(DataError, match="null"):
        environment.from_plan(plan, {"f": data}).to_arrow()


def test_a_condition_without_operators_is_evaluated_once_for_each_row(
    plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [{"kind": "INPUT_REF", "inputIndex": number, "type": "BIGINT"} for number in (0, 1)]
    columns[0]["type"] = "VARCHAR(2147483647)"
    limit = {"kind": "LITERAL", "value": 1, "type": "BIGINT NOT NULL"}
    condition = {"kind": "CALL", "internalName": "$>$1", "operands": [columns[1], limit], "type": "BOOLEAN"}
    scan, watermarks, _, _, calc, sink = plan["nodes"]
    calc |= {"projection": columns, "condition": condition, "outputType": "ROW<`k` STRING, `v` BIGINT>"}
    plan["nodes"] = [scan, watermarks, calc, sink | {"outputType": calc["outputType"]}]
    ids = [node["id"] for node in plan["nodes"]]
    plan["edges"] = [
        edge | dict(zip(("source", "target"), ends, strict=True))
        for edge, ends in zip(plan["edges"], pairwise(ids), strict=False)
    ]
    evaluated = []

    def greater(rows: Evaluation, call: RexCall) -> pa.Array:
        evaluated.append(rows.num_rows)
        return compare(rows, call)

    monkeypatch.setitem(FUNCTIONS, ">", SqlFunction(">", "own", greater, lambda call: None))
    data = pa.table({"k": ["a", "b", "c"], "v": [1, 2, 3], "ts": ["2024-01-01 00:00:01"] * 3})
    environment = StreamExecutionEnvironment.get_execution_environment()
    assert environment.from_plan(plan, {"f": data}).to_arrow().column("k").to_pylist() == ["b", "c"]
    assert sum(evaluated) == 3


@pytest.fixture
def plan_of_required_keys(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan, into a sink whose key is NOT NULL."""
    table = plan["nodes"][-1]["dynamicTableSink"]["table"]["resolvedTable"]
    (key,) = [each for each in table["schema"]["columns"] if each["name"] == "k"]
    key["dataType"] += " NOT NULL"
    return plan


ROWS_WITHOUT_KEY = pa.table({"k": ["a", None, "b"], "v": [1, 2, 3], "ts": ["2024-01-01 00:00:01"] * 3})


def test_a_null_for_a_column_of_a_sink_that_is_not_null_fails(plan_of_required_keys: dict[str, Any]) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    message = r"the column 'k' of the sink is NOT NULL, and its value is null.*not-null-enforcer' = 'DROP'"
    with pytest.raises(DataError, match=message):
        environment.from_plan(plan_of_required_keys, {"f": ROWS_WITHOUT_KEY}).to_arrow()
    complete = ROWS_WITHOUT_KEY.drop_null()
    assert environment.from_plan(plan_of_required_keys, {"f": complete}).to_arrow().num_rows == 2


def test_a_null_for_a_column_of_a_sink_that_is_not_null_is_dropped_if_the_plan_says_so(
    plan_of_required_keys: dict[str, Any],
) -> None:
    plan_of_required_keys["nodes"][-1]["configuration"]["table.exec.sink.not-null-enforcer"] = "DROP"
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_plan(plan_of_required_keys, {"f": ROWS_WITHOUT_KEY}).to_arrow()
    assert sorted(rows.column("k").to_pylist()) == ["a", "b"]


def test_columns_of_metadata_are_the_last_ones_of_the_rows_of_a_sink(
    plan_of_required_keys: dict[str, Any],
) -> None:
    sink = plan_of_required_keys["nodes"][-1]["dynamicTableSink"]
    columns = sink["table"]["resolvedTable"]["schema"]["columns"]
    columns[-1] |= {"kind": "METADATA", "metadataKey": "key of it", "isVirtual": False}
    columns.insert(0, columns.pop())  # declared first
    columns.insert(1, {"name": "read", "kind": "METADATA", "dataType": "INT", "isVirtual": True})
    sink["abilities"] = [{"type": "WritingMetadata", "metadataKeys": ["key of it"]}]
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_plan(plan_of_required_keys, {"f": ROWS_WITHOUT_KEY.drop_null()}).to_arrow()
    assert rows.column_names == [each["name"] for each in (*columns[2:], columns[0])]
    assert sorted(rows.column("k").to_pylist()) == ["a", "b"]
    with pytest.raises(DataError, match="the column 'k' of the sink is NOT NULL"):
        environment.from_plan(plan_of_required_keys, {"f": ROWS_WITHOUT_KEY}).to_arrow()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("table.exec.sink.type-length-enforcer", "TRIM_PAD"),
        ("table.exec.sink.nested-constraint-enforcer", "ROWS"),
        ("table.exec.legacy-cast-behaviour", "enabled"),
    ],
)
def test_a_setting_that_changes_values_of_sinks_or_casts_is_refused(
    plan: dict[str, Any], option: str, value: str
) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    if option in plan["nodes"][-1]["configuration"]:
        plan["nodes"][-1]["configuration"][option] = value
    with pytest.raises(UnsupportedOperationError, match=f"{option}.* is not supported"):
        environment.from_plan(plan, {"f": ROWS_WITHOUT_KEY}, settings={option: value})
    del plan["nodes"][-1]["configuration"]
    environment.from_plan(plan, {"f": ROWS_WITHOUT_KEY}, settings={})


def test_sinks_are_written(plan: dict[str, Any], log: Path, tmp_path: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_auto_watermark_interval(86_400_000)
    (name,) = environment.execute_plan(plan, {"f": log})
    results = environment.execute_plan(plan, {"f": log}, {name: tmp_path / "results"})
    assert results[name].report.results == 3
    assert pq.read_table(tmp_path / "results").num_rows == 3


def test_the_command_runs_a_plan(
    plan: dict[str, Any], log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    given = ["sql", str(path), "--table", f"f={log}", "--arrival", "f=v", "--quiet"]
    assert main([*given, "--set", "pipeline.auto-watermark-interval=0ms", "--emitted-at", "seen"]) == 0
    printed = capsys.readouterr().out
    assert "seen" in printed
    assert "late for all their windows" in printed
    assert main([*given, "--into", str(tmp_path / "results")]) == 0
    assert pq.read_table(tmp_path / "results").num_rows == 3


def test_an_arrival_is_that_of_the_table_by_its_long_name(
    plan: dict[str, Any], log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    name = "default_catalog.default_database.f"
    assert main(["sql", str(path), "--table", f"{name}={log}", "--arrival", f"{name}=missing"]) == 1
    assert "missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--table", "g=log"],
            "reads the table f of the connector filesystem, which is replaced by a log, and --table names g. "
            "Give --table f=PATH\n",
        ),
        (["--table", "f=delta:"], "'delta:' is not the name of a table"),
        (
            ["--table", "f=log", "--set", "table.local-time-zone=Mars"],
            "table.local-time-zone=Mars is not a known time zone. Give the name of a region",
        ),
        (["--table", "log"], "is not NAME=VALUE"),
        (["--table", "f=a", "--table", "f=b"], "--table names f twice"),
        (["--table", "f=a", "--arrival", "g=v"], "--arrival names g"),
    ],
)
def test_the_command_names_a_wrong_option(
    options: list[str], message: str, plan: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    assert main(["sql", str(path), *options]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["{}", "delta:{}", "delta:{}@0"])
def test_the_table_of_a_lake_stands_for_a_table(
    name: str, plan: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"k": ["a", "b"], "v": pa.array([1, 2], pa.int32()), "ts": ["2024-01-01 00:00:01"] * 2})
    deltalake.write_deltalake(tmp_path / "lake", rows)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    table = f"f={name.format(tmp_path / 'lake')}"
    command = ["sql", str(tmp_path / "plan.json"), "--table", table, "--arrival", "f=v", "--quiet"]
    assert main(command) == 0
    assert f"read as Delta table {tmp_path / 'lake'} at version 0" in capsys.readouterr().out


def test_settings_are_texts(plan: dict[str, Any]) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ConfigurationError, match="settings="):
        environment.from_plan(plan, {"f": "log"}, settings={"table.local-time-zone": 1})  # type: ignore[dict-item]


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("interval_ms", [0, 700])
def test_a_plan_that_stops_with_a_checkpoint_resumes_with_the_same_rows(
    interval_ms: int, tmp_path: Path
) -> None:
    plan = golden("edges-hop_late_two")["plan"]
    draw = random.Random(7)
    n = 200
    log = pa.table(
        {
            "k": [draw.choice("abc") for _ in range(n)],
            "v": [draw.randint(0, 9) for _ in range(n)],
            "ts": pa.array([500 * each + draw.randint(-20_000, 0) for each in range(n)], pa.timestamp("ms")),
            "arrival": pa.array([500 * each for each in range(n)], pa.int64()),
        }
    )

    def rows(part: pa.Table, **checkpoints: Path) -> list[str]:
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.get_config().set_auto_watermark_interval(interval_ms)
        table = environment.from_event_log(part, timestamp="arrival", arrival="arrival", split=None)
        stream = environment.from_plan(plan, {"f": table}, emitted_at="seen")
        return list(map(repr, stream.execute(**checkpoints).to_arrow().to_pylist()))

    whole = rows(log)
    saved = tmp_path / "checkpoint"
    cut = rows(log.slice(0, 77), stop_with_checkpoint=saved) + rows(log.slice(77), restore_from=saved)
    assert len(whole) > 20
    assert sorted(cut) == sorted(whole)


def test_the_page_lists_every_function() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()
    rows = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if line.startswith("| ")}
    for name, function in FUNCTIONS.items():
        state = "own code" if function.state == "own" else "exact by pyarrow"
        assert f"`{name.replace('|', chr(92) + '|')}`" in rows[state]
    for name in REFUSED_FUNCTIONS:
        assert f"`{name}`" in rows["refused"]
        assert name not in FUNCTIONS


def test_the_page_lists_every_node() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()
    assert all(kind in page for kind in (*NODES, *REFUSED))


def test_a_watermark_that_was_pushed_into_the_source_comes_at_ticks_only(plan: dict[str, Any]) -> None:
    scan, assigner, *others = plan["nodes"]
    pushed = {
        "type": "WatermarkPushDown",
        "watermarkExpr": assigner["watermarkExpr"],
        "idleTimeoutMillis": -1,
    }
    scan = {**scan, "outputType": assigner["outputType"]}
    scan["scanTableSource"] = {**scan["scanTableSource"], "abilities": [pushed]}
    edges = [edge for edge in plan["edges"] if edge["source"] != scan["id"]]
    edges = [{**edge, "source": scan["id"]} if edge["source"] == assigner["id"] else edge for edge in edges]
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_auto_watermark_interval(10)
    seconds = [1, 12, 3, 25, 4]
    data = {
        "k": ["a"] * 5,
        "v": seconds,
        "ts": pa.array([1000 * second for second in seconds], pa.timestamp("ms")),
        "arrival": [1, 2, 9, 11, 12],
    }
    log = environment.from_event_log(pa.table(data), timestamp="ts", arrival="arrival")
    given = {**plan, "nodes": [scan, *others], "edges": edges}
    rows = environment.from_plan(given, {"f": log}, emitted_at="seen").to_arrow().to_pylist()
    first = min(rows, key=lambda row: row["window_start"])
    assert (first["s"], first["seen"]) == (1 + 3 + 0, datetime(1970, 1, 1, 0, 0, 0, 10_000))
    assert sum(row["n"] for row in rows) == 5 - 1


def test_metadata_columns_are_read_by_their_keys(plan: dict[str, Any]) -> None:
    text = json.dumps(plan)
    scan = plan["nodes"][0]["scanTableSource"]
    produced = (
        "ROW<`k` VARCHAR(2147483647), `$metadata$offset` BIGINT, `$metadata$timestamp` TIMESTAMP(3)> NOT NULL"
    )
    keys = ["offset", "timestamp"]
    abilities = [{"type": "ReadingMetadata", "metadataKeys": keys, "producedType": produced}]
    given = json.loads(text)
    given["nodes"][0]["scanTableSource"] = {**scan, "abilities": abilities}
    environment = StreamExecutionEnvironment.get_execution_environment()
    data = pa.table({"k": ["a"], "offset": [7], "timestamp": pa.array([1000], pa.timestamp("ms"))})
    rows = environment.from_plan(given, {"f": data}).to_arrow().to_pylist()
    assert [row["s"] for row in rows] == [7]


def test_what_a_source_would_leave_out_is_refused(plan: dict[str, Any]) -> None:
    given = json.loads(json.dumps(plan))
    given["nodes"][0]["scanTableSource"]["abilities"] = [{"type": "AggregatePushDown"}]
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match="AggregatePushDown is not supported"):
        environment.from_plan(given, {"f": "log"})


def test_why_explains_a_key_of_a_plan_by_its_names(plan: dict[str, Any], log: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    stream = environment.from_plan(plan, {"f": log}, settings={"pipeline.auto-watermark-interval": "0 ms"})
    story = str(stream.why("b"))
    assert story.startswith("k = 'b'\n")
    assert "in time with an out-of-orderness bound of 2 s 1 ms" in story
    assert "SUM(v) = 2" in story
    assert str(stream.why({"k": "b"})) == story
    with pytest.raises(ConfigurationError, match="the key is of the columns"):
        stream.why({"v": "b"})


def test_the_bound_of_a_plan_is_a_millisecond_less_than_its_delay(plan: dict[str, Any], log: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ConfigurationError, match="is counted from a delay of 1 ms on"):
        environment.from_plan(plan, {"f": log}).lateness()
    spent = str(files("flinkcore.examples.sql") / "spent_by_minute.json")  # ts - INTERVAL '5' SECOND
    times = [START + timedelta(milliseconds=at) for at in (10_000, 4_999, 30_000, 25_001, 25_000)]
    rows = pa.table({"user": ["a"] * 5, "price": [1] * 5, "ts": times, "at": range(0, 5000, 1000)})
    clicks = environment.from_event_log(rows, timestamp="ts", arrival="at")
    text = str(environment.from_plan(spent, {"clicks": clicks}).lateness(windows=[]))
    assert "out of order by up to 5 s 1 ms" in text
    assert "your 4 s 999 ms lose 40 %" in text
