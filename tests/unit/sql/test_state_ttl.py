"""State of plans of SQL that expires: what is kept in memory and in checkpoints, and what is refused."""

import copy
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.small_batches import read_in_batches_of
from jobs.sql_scenarios import GOLDEN, check, environment_of, golden, results_of, stream_of, tables_of

from flinkcore._internal.python.object_sizes import size_of
from flinkcore.columnar.stages.relational_stage import RelationalStage
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import DataError, UnsupportedOperationError
from flinkcore.sql.nodes.expiring_values import ExpiringDistinct
from flinkcore.sql.program import plan_sinks
from flinkcore.sql.types.logical_types import LogicalType, Root

EXPIRING = [
    *(
        "ttl-group-1",
        "ttl-group_twice-1",
        "ttl-group_distinct-1",
        "ttl-group_distinct-8",
        "ttl-dedup_row_first-1",
        "ttl-dedup_last-1",
        "ttl-join_condition-7",
    ),
    *("ttl-join_full-1", "ttl-join_aggregates_left-1", "ttl-join_anti-1", "ttl-over_proctime-1"),
    *("ttl-over_rowtime_unb_range-12", "ttl-over_rowtime_rows-16", "ttl-temporal_left-10"),
]


def part_of(scenario: dict[str, Any], begin_ms: int, end_ms: int) -> dict[str, Any]:
    """Return a scenario with the rows that arrive from one reading of the clock on, and before another one."""
    clock, arrival = scenario["now"], []
    next_row = dict.fromkeys(scenario["tables"], 0)
    rows: dict[str, list[Any]] = {name: [] for name in scenario["tables"]}
    for step in scenario["arrival"]:
        if isinstance(step, dict):
            clock = step["pt"]
            continue
        row = scenario["tables"][step]["rows"][next_row[step]]
        next_row[step] += 1
        if begin_ms <= clock < end_ms:
            arrival += [{"pt": clock}, step]
            rows[step].append(row)
    tables = {name: {**table, "rows": rows[name]} for name, table in scenario["tables"].items()}
    return scenario | {"tables": tables, "arrival": arrival}


@pytest.mark.parametrize("name", EXPIRING)
def test_the_time_that_is_left_is_kept_in_checkpoints(name: str, tmp_path: Path) -> None:
    case = golden(name)
    clocks = [step["pt"] for step in case["arrival"] if isinstance(step, dict)]
    middle = clocks[len(clocks) // 2]
    parts = [part_of(case, 0, middle), part_of(case, middle, max(clocks) + 1)]
    first, last = (stream_of(part, environment_of(part), None) for part in parts)
    rows = [
        *first.execute(stop_with_checkpoint=tmp_path / "cut").to_arrow().to_pylist(),
        *last.execute(restore_from=tmp_path / "cut").to_arrow().to_pylist(),
    ]
    whole = stream_of(case, environment_of(case), None).to_arrow().to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, whole))


@pytest.mark.parametrize("name", EXPIRING)
def test_state_moves_to_new_kernels_without_a_change_of_results(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, moved = golden(name), []
    opened = RelationalStage._open
    monkeypatch.setattr(RelationalStage, "_open", lambda self: (moved.append(self), opened(self)))

    def in_small_batches(scenario: dict[str, Any]) -> StreamExecutionEnvironment:
        environment = environment_of(scenario).set_parallelism(1)
        read_in_batches_of(1, environment)
        return environment

    monkeypatch.setattr("jobs.sql_scenarios.environment_of", in_small_batches)
    check(case)
    stages = len(set(map(id, moved)))
    assert len(moved) > stages + 1  # each is opened once at first


def test_memory_holds_only_what_has_not_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of a new key comes each millisecond and is known for a second: of 20,000 keys, 2,000 are kept at a time."""
    case = golden("ttl-group-1")
    n, most = 20_000, 0
    environment = environment_of(case).set_parallelism(1)
    read_in_batches_of(250, environment)
    columns = {"k": [f"key {number}" for number in range(n)], "v": [1] * n, "arrival": np.arange(n)}
    log = environment.from_event_log(pa.table(columns), timestamp="arrival", arrival="arrival", split=None)
    expired = RelationalStage._free_expired

    def counted(stage: RelationalStage) -> None:
        nonlocal most
        expired(stage)
        most = max(most, len(stage._keys))

    monkeypatch.setattr(RelationalStage, "_free_expired", counted)
    (sink,) = plan_sinks(environment, case["plan"], {"f": log}, case["settings"]).values()
    assert sink.stream.to_arrow().num_rows == n
    assert 1_000 <= most <= 2_500


def test_normalized_changes_of_an_expired_row_are_insertions() -> None:
    """As of Flink's processLastRowOnChangelog: equal rows are changes, and a deletion of nothing is none."""
    plan = json.loads((GOLDEN.parent / "changelog_plan.json").read_text())
    (normalize,) = [node for node in plan["nodes"] if "changelog-normalize" in node["type"]]
    normalize["state"][0]["ttl"] = "10 ms"
    rows = [
        ("+I", "a", 3, 0),
        ("+I", "a", 3, 9),
        ("+U", "a", 6, 18),
        ("-D", "a", 6, 28),
        ("+U", "a", 9, 29),
        ("-D", "a", 9, 31),
        ("+I", "a", 12, 32),
    ]
    columns = dict(zip(("row_kind", "k", "v", "arrival"), map(list, zip(*rows, strict=True)), strict=True))
    environment = StreamExecutionEnvironment.get_execution_environment()
    log = environment.from_event_log(pa.table(columns), timestamp="arrival", arrival="arrival", split=None)
    found = environment.from_plan(plan, {"c": log}).to_arrow().to_pylist()
    changes = [tuple(row.values())[1:] for row in found]
    # The query is MAX(v), of which no state expires: the 6 stays, for its deletion came too late.
    assert changes == [
        *((3, "+I"), (3, "-D"), (3, "+I")),
        *((3, "-D"), (6, "+I")),
        *((6, "-U"), (9, "+U"), (9, "-U"), (6, "+U")),
        *((6, "-U"), (12, "+U")),
    ]


def test_rows_of_one_millisecond_are_sorted() -> None:
    scenario = golden("proctime-sort-1")
    assert results_of(scenario)[0]["rows"] == scenario["rows"]


def refused(name: str, message: str) -> None:
    scenario = golden(name)
    environment = environment_of(scenario)
    with pytest.raises(UnsupportedOperationError, match=message):
        plan_sinks(environment, scenario["plan"], tables_of(environment, scenario), scenario["settings"])


def test_a_range_of_no_processing_time_is_refused() -> None:
    refused("proctime-zero_range", r"Flink forgets the rows.*Write INTERVAL '0.001' SECOND PRECEDING")


def test_rows_without_a_match_need_ticks_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = golden("proctime-interval_left_back")
    monkeypatch.setitem(scenario["settings"], "pipeline.auto-watermark-interval", "200 ms")
    environment = environment_of(scenario)
    with pytest.raises(UnsupportedOperationError, match=r"come by one clock.*interval' = '1 ms'"):
        plan_sinks(environment, scenario["plan"], tables_of(environment, scenario), scenario["settings"])


def test_a_log_without_arrivals_has_no_state_that_expires() -> None:
    scenario = golden("ttl-group-1")
    environment = environment_of(scenario)
    log = pa.table({"k": ["a"], "v": [1]})
    with pytest.raises(UnsupportedOperationError, match=r"expires by processing time.*arrival='column'"):
        plan_sinks(environment, scenario["plan"], {"f": log}, scenario["settings"])


def test_distinct_values_with_several_conditions_are_refused() -> None:
    scenario = copy.deepcopy(golden("ttl-group_distinct-4"))
    (group,) = [node for node in scenario["plan"]["nodes"] if "group-aggregate" in node["type"]]
    group["aggCalls"].append(group["aggCalls"][0] | {"name": "m", "filterArg": -1})
    environment = environment_of(scenario)
    with pytest.raises(UnsupportedOperationError, match=r"with several conditions expire.*Write CASE WHEN"):
        plan_sinks(environment, scenario["plan"], tables_of(environment, scenario), scenario["settings"])


def test_sums_of_distinct_floats_are_refused() -> None:
    scenario = copy.deepcopy(golden("ttl-group_distinct-5"))
    scenario["plan"] = json.loads(json.dumps(scenario["plan"]).replace("DOUBLE", "FLOAT"))
    environment = environment_of(scenario)
    with pytest.raises(
        UnsupportedOperationError, match=r"SUM\(DISTINCT\) of FLOAT .* CAST its argument to DOUBLE"
    ):
        plan_sinks(environment, scenario["plan"], tables_of(environment, scenario), scenario["settings"])


def test_distinct_values_that_have_expired_are_forgotten() -> None:
    whole = LogicalType(Root.INT)
    calls = ExpiringDistinct("SUM", whole, whole, 100, False)
    accumulator = calls.create()
    for now_ms in range(10_000):
        calls.accumulate(accumulator, (now_ms, now_ms), now_ms)
        assert size_of(accumulator) < 100_000
    assert calls.value(accumulator) == sum(range(10_000))


@pytest.mark.parametrize("withdraws", [False, True])
def test_sums_of_distinct_decimals_have_all_their_digits(withdraws: bool) -> None:
    kind = LogicalType(Root.DECIMAL, precision=38, scale=2)
    calls = ExpiringDistinct("SUM", kind, kind, 100, withdraws)
    accumulator = calls.create()
    for text in ("123456789012345678901234567890123456.78", "1.11"):
        calls.accumulate(accumulator, (Decimal(text), Decimal(text)), 0)
    assert calls.value(accumulator) == Decimal("123456789012345678901234567890123457.89")
    if withdraws:
        calls.retract(accumulator, (Decimal("1.11"), Decimal("1.11")), 0)
        assert calls.value(accumulator) == Decimal("123456789012345678901234567890123456.78")
    with pytest.raises(DataError, match=r"a sum of decimals does not fit into DECIMAL\(38, 2\)"):
        calls.accumulate(accumulator, (Decimal(10**36 - 1), 0), 0)


def test_sums_of_floats_that_are_withdrawn_are_refused() -> None:
    scenario = golden("ttl-group_twice-1")
    plan = copy.deepcopy(scenario["plan"])
    calc, _, group, _ = plan["nodes"][3:]
    kind = "FLOAT NOT NULL"
    calc["projection"][1] = {
        "kind": "CALL",
        "syntax": "SPECIAL",
        "internalName": "$CAST$1",
        "operands": [calc["projection"][1]],
        "type": kind,
    }
    for node in plan["nodes"][3:]:
        node["outputType"] = node["outputType"].replace("BIGINT NOT NULL", kind, 1)
    group["aggCalls"][0]["type"] = kind
    environment = environment_of(scenario)
    with pytest.raises(
        UnsupportedOperationError, match=r"a SUM of FLOAT over rows that are withdrawn.*to DOUBLE"
    ):
        plan_sinks(environment, plan, tables_of(environment, scenario), scenario["settings"])


def test_a_setting_that_is_not_in_plans_is_not_ignored() -> None:
    scenario = golden("ttl-over_rowtime_unb_rows-12")
    environment = environment_of(scenario)
    tables = tables_of(environment, scenario)
    (kept,) = plan_sinks(environment, scenario["plan"], tables, {}).values()
    (expiring,) = plan_sinks(environment, scenario["plan"], tables, scenario["settings"]).values()
    assert kept.stream.to_arrow() != expiring.stream.to_arrow()


def test_versions_of_over_without_a_timer_for_each_timestamp_are_refused() -> None:
    scenario = golden("ttl-over_rowtime_unb_rows-12")
    (over,) = [node for node in scenario["plan"]["nodes"] if "over-aggregate" in node["type"]]
    over["unboundedOverVersion"] = 1
    environment = environment_of(scenario)
    with pytest.raises(UnsupportedOperationError, match=r"unbounded-over.version = 2"):
        plan_sinks(environment, scenario["plan"], tables_of(environment, scenario), scenario["settings"])


def test_ranks_that_flink_keeps_in_a_cache_are_refused() -> None:
    refused("ttl-top_retract-1", r"expires.*not supported for a rank.*topn-cache-size.*'0 ms'")
