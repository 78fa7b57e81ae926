"""Compiled plans with operators of relations: changes at the sink, and forms that are refused when a plan is read."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from jobs.sql_scenarios import GOLDEN, environment_of, golden, results_of, stream_of

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.top_rows import top_step
from flinkcore.errors import DataError, SchemaError, UnsupportedOperationError
from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.nodes.aggregate_results import AggregateResult
from flinkcore.sql.nodes.attached_windows import are_assigned_later
from flinkcore.sql.plan.compiled_plan import CompiledPlan
from flinkcore.sql.types.logical_types import LogicalType, Root

START = datetime(2024, 1, 1)


def node_of(plan: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [node for node in plan["nodes"] if node["type"].startswith(f"stream-exec-{kind}_")]
    return dict(found)


def refused(name: str, changed: dict[str, str], message: str, settings: dict[str, str] | None = None) -> None:
    """Assert that the plan of a scenario, with texts exchanged, is refused."""
    scenario = golden(name)
    text = json.dumps(scenario["plan"])
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    tables = {table: pa.table({"none": [1]}) for table in scenario["tables"]}
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match=message):
        environment.from_plan(text, tables, settings=settings)


def test_rows_into_a_sink_of_changes_have_their_kind_last() -> None:
    stream = stream_of(golden("dedup-1-1") | {"arrival": []}, environment_of(golden("dedup-1-1")), None)
    assert stream.execute().to_arrow().column_names[-1] == "row_kind"


def test_a_sink_of_changes_has_no_column_of_that_name() -> None:
    scenario = golden("dedup-1-1")
    text = json.dumps(scenario["plan"]).replace('"name": "k"', '"name": "row_kind"')
    plan = json.loads(text.replace("`k`", "`row_kind`"))
    with pytest.raises(UnsupportedOperationError, match=r"has a column 'row_kind'. Rename the column"):
        StreamExecutionEnvironment.get_execution_environment().from_plan(
            plan, {table: pa.table({"none": [1]}) for table in scenario["tables"]}
        )


def test_a_sink_that_needs_no_row_before_a_change_gets_none() -> None:
    scenario = golden("dedup-1-0")
    assert node_of(scenario["plan"], "sink")["inputChangelogMode"] == ["INSERT", "UPDATE_AFTER", "DELETE"]
    kinds = {row[0] for row in results_of(scenario)[0]["rows"]}
    assert kinds == {"+I", "+U"}


def test_changes_of_a_log_are_normalized_by_their_unique_key() -> None:
    """A plan of `SELECT n, MAX(v) ... GROUP BY n` over a table in debezium-json whose changes may come twice."""
    plan = json.loads((GOLDEN.parent / "changelog_plan.json").read_text())
    rows = [
        ("+I", "a", 3),
        ("+I", "b", 6),
        ("+I", "b", 6),
        ("-U", "a", 3),
        ("+U", "a", 9),
        ("-D", "b", 6),
        ("-D", "b", 6),
    ]
    log = pa.table(
        {
            name: list(column)
            for name, column in zip(("row_kind", "k", "v"), zip(*rows, strict=True), strict=True)
        }
    )
    found = StreamExecutionEnvironment.get_execution_environment().from_plan(plan, {"c": log}).to_arrow()
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (0, 3, "+I"),
        (0, 3, "-U"),
        (0, 6, "+U"),
        (0, 6, "-U"),
        (0, 9, "+U"),
    ]


def test_an_average_that_stays_the_same_is_no_change() -> None:
    plan = golden("group_by-1-28")["plan"]  # AVG(v), COUNT(k)
    calls = node_of(plan, "group-aggregate")["aggCalls"]
    calls[1] |= {"internalName": "$MAX$1", "argList": calls[0]["argList"]}
    times = pa.array([START + timedelta(seconds=second) for second in range(3)], pa.timestamp("ms"))
    rows = pa.table({"k": ["a", "a", "a"], "v": [4, 4, 7], "ts": times})
    found = StreamExecutionEnvironment.get_execution_environment().from_plan(plan, {"f": rows}).to_arrow()
    assert [list(row.values())[1:] for row in found.to_pylist()] == [[4, 4, "+I"], [5, 7, "+U"]]


def test_a_time_that_is_not_that_of_the_rows_is_refused() -> None:
    refused("interval_join-1-0", {'"leftTimeIndex": 3': '"leftTimeIndex": 1'}, "its time is the column 'v'")


def test_ranks_with_gaps_are_refused() -> None:
    refused(
        "topn-1-0", {'"rankType": "ROW_NUMBER"': '"rankType": "RANK"'}, "RANK is not supported. Write ROW_"
    )


def test_ranks_up_to_a_column_are_refused_of_rows_that_only_rise() -> None:
    refused(
        "topn-limits-of_keys",
        {'"AppendFast"': '"UpdateFast", "primaryKeys": [0]'},
        "ranks up to a column are not supported of rows that only rise. Write a number",
    )


def test_ranks_up_to_a_column_that_is_not_an_integer_are_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    rows = pa.table({"ts": [1], "k": ["a"], "v": [2], "most": [1.5]})
    keyed = env.from_event_log(rows, timestamp="ts").key_by("k")
    order: dict[str, Any] = {
        "descending": False,
        "nulls_last": None,
        "rank": "row_number",
        "rank_column": None,
        "skip": 0,
    }
    step = top_step(keyed._input(), 1, "v", **order, changes=True, limit_column="most")
    with pytest.raises(SchemaError, match="as many rows as 'most' has, which is double: Flink takes int16"):
        keyed._then(step).execute()


def test_rows_of_equal_times_are_sorted_by_further_columns() -> None:
    scenario = golden("nodes-sort_order_by_ts_v_desc_0")
    assert results_of(scenario)[0]["rows"] == scenario["rows"]


def test_rows_of_equal_times_are_sorted_by_their_arrival() -> None:
    scenario = golden("nodes-sort_order_by_ts_0")
    assert results_of(scenario)[0]["rows"] == scenario["rows"]


def test_an_interval_of_processing_time_needs_arrivals() -> None:
    refused(
        "interval_join-1-0",
        {'"isEventTime": true': '"isEventTime": false'},
        "waits for the processing time, which is the arrival of rows",
    )


def test_an_interval_without_times_is_refused() -> None:
    refused("interval_join-1-1", {}, "no times are in its interval")


def test_frames_beyond_the_row_are_refused() -> None:
    refused(
        "over-1-0",
        {'"upperBound": {"kind": "CURRENT_ROW"}': '"upperBound": {"kind": "X"}'},
        "end with the current row",
    )


def test_frames_that_begin_with_the_row_are_refused_as_in_flink() -> None:
    refused(
        "over-zero_range",
        {'"BOUNDED_WINDOW"': '"CURRENT_ROW"'},
        "begin before the current row, in Flink, too",
    )


def test_rows_are_assigned_by_the_operator_unless_bounds_are_computed_with_before() -> None:
    written = golden("window_topn-1-0")["plan"]
    for computes in (False, True):
        plan = CompiledPlan.of(written)
        (function,) = [node for node in plan.nodes if node.kind == "window-table-function"]
        n = len(function.fields)
        (calc, *_) = [node for node in plan.nodes if node.kind == "calc"]
        projection = calc.json["projection"]
        place = next(at for at, each in enumerate(projection) if each.get("inputIndex", 0) >= n - 3)
        if computes:
            cast = {
                "kind": "CALL",
                "internalName": "$CAST$1",
                "operands": [projection[place]],
                "type": "DATE",
            }
            projection[place] = cast | {"syntax": "SPECIAL"}
        assert are_assigned_later(function, range(n - 3, n)) is not computes


@pytest.mark.parametrize(
    ("zone", "slide", "loses"),
    [("Asia/Kolkata", "PT20M", True), ("Asia/Kolkata", "PT30M", False), ("Europe/Berlin", "PT20M", False)],
)
def test_windows_of_which_flink_loses_rows_are_warned_of(
    zone: str, slide: str, loses: bool, recwarn: pytest.WarningsRecorder
) -> None:
    scenario = golden("zone-agg_h_berlin_0_0_24")
    text = json.dumps(scenario["plan"]).replace("Europe/Berlin", zone).replace("PT20M", slide)
    settings = scenario["settings"] | {"table.local-time-zone": zone}
    stream_of(scenario | {"plan": json.loads(text), "settings": settings}, environment_of(scenario))
    expected = f"Flink loses rows of such windows in the zone {zone}"
    assert [expected in str(warning.message) for warning in recwarn] == [True] * loses


def test_a_key_of_lists_is_refused_when_the_plan_is_read() -> None:
    refused("random-key_of_arrays", {}, r"a key of ARRAY<INT> is not supported. CAST it to STRING before")


def test_settings_that_are_not_in_plans_and_change_results_are_refused() -> None:
    cleanup = {"table.exec.interval-join.min-cleanup-interval": "6 s"}
    refused("interval_join-1-11", {}, r"min-cleanup-interval is not supported.*Leave it out", cleanup)
    idle = {"table.exec.source.idle-timeout": "5 s"}
    refused(
        "interval_join-1-11", {}, r"idle-timeout is supported where the connector generates watermarks", idle
    )


def test_sums_of_listed_decimals_have_all_their_digits() -> None:
    kind = LogicalType(Root.DECIMAL, precision=38, scale=2)
    result = AggregateResult(AggregateCall("SUM", (0,), -1, True, kind), kind, ("x",), "of values")

    def total(*texts: str) -> list[Any]:
        values = [{"value": Decimal(text), "pane": None} for text in texts]
        given = pa.struct([("value", kind.arrow), ("pane", pa.int64())])
        batch = pa.record_batch([pa.array([values], pa.list_(given))], ["x"])
        found: list[Any] = result.evaluate(batch).to_pylist()
        return found

    most = "123456789012345678901234567890123456.78"
    assert total(most, "1.11", "1.11") == [Decimal("123456789012345678901234567890123457.89")]
    with pytest.raises(DataError, match=r"a sum of decimals does not fit into DECIMAL\(38, 2\)"):
        total("999999999999999999999999999999999999.99", "0.01")
