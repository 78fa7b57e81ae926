"""Jobs of Flink SQL and replays of their plans go on from each other's savepoints.

Plans, savepoints and rows are those of Flink 2.3. `tests/planner/test_restores_of_plans.py` lets real Flink go on.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs import sql_savepoint_jobs
from jobs.sql_savepoint_jobs import (
    FEWER,
    GOLDEN,
    NOT_SHOWN,
    ONLY_READ,
    QUERIES,
    REFUSED,
    SETTINGS,
    WITH_LATE_ROWS,
    changes,
    replay,
    rows_as_flink_shows_them,
    table,
)

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.errors import ConfigurationError
from flinkcore.savepoints import SavepointOperator
from flinkcore.savepoints.restoring.restored_plans import RestoredPlanState
from flinkcore.sql.plan.flink_state import FlinkState, StateWindows

pytestmark = pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")


def lines(job: str, rows: list[list[Any]]) -> list[str]:
    """Return the changes of a job; floats of 32 bits are shown in other digits in Java."""
    return changes(
        job,
        [[float(f"{value:.6g}") if isinstance(value, float) else value for value in row] for row in rows],
    )


def expected_lines(job: str) -> list[str]:
    """Return the changes that Flink returned for the rest."""
    return lines(job, [json.loads(line) for line in (GOLDEN / job / "rest.jsonl").read_text().splitlines()])


def entries(operator: SavepointOperator) -> dict[str, Counter[str]]:
    """Return the entries of each state that has any; their key groups come from the bytes of their keys.

    Flink keeps a row with the kind of its last change, and the watermark once for each subtask. With distinct values it
    keeps how often null came, which no aggregate takes.
    """
    found = {}
    for name, state in operator.states.items():
        if name.endswith("_null_state"):
            continue
        rows = state.to_arrow().to_pylist()
        if name == "watermark":
            rows = [{"value": value} for value in {row["value"] for row in rows}]
        if rows:
            found[name] = Counter(repr(row).replace("'row_kind': '+U'", "'row_kind': '+I'") for row in rows)
    return found


@pytest.mark.parametrize("job", QUERIES)
def test_a_replay_goes_on_from_the_savepoint_of_flink(job: str) -> None:
    rest = replay(job, "rest").execute(restore_from=GOLDEN / job / "savepoint")
    assert lines(job, rows_as_flink_shows_them(rest)) == expected_lines(job)


@pytest.mark.parametrize("job", [job for job in QUERIES if job not in ONLY_READ])
def test_a_replay_has_the_state_that_flink_has_and_goes_on_from_it(job: str, tmp_path: Path) -> None:
    replay(job, "first").execute(stop_with_savepoint=tmp_path / "savepoint").report  # noqa: B018 - runs it
    flinks = savepoints.open(GOLDEN / job / "savepoint", exact=True)
    for written in savepoints.open(tmp_path / "savepoint", exact=True).operators:
        found, expected = entries(written), entries(flinks.operator(written.operator_id))
        assert found.keys() == expected.keys()
        for name in NOT_SHOWN.get(job, ()):
            found.pop(name)
            expected.pop(name)
        for name in FEWER:
            assert found.pop(name, Counter()) <= expected.pop(name, Counter())
        assert found == expected
        assert written.max_parallelism == flinks.operator(written.operator_id).max_parallelism
    rest = replay(job, "rest", parallelism=3).execute(restore_from=tmp_path / "savepoint")
    assert lines(job, rows_as_flink_shows_them(rest)) == expected_lines(job)


@pytest.mark.parametrize("job", ONLY_READ)
def test_states_that_are_only_read_are_not_written(job: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=ONLY_READ[job]):
        replay(job, "first").execute(stop_with_savepoint=tmp_path / "savepoint").report  # noqa: B018 - runs it


@pytest.mark.parametrize(
    "job",
    [
        *("over_range", "over_last_rows_of_distinct", "hop", "cumulate_in_two_phases"),
        *("hop_of_distinct_beside_others", "cumulate_of_distinct_beside_others"),
    ],
)
def test_frames_and_windows_that_overlap_go_from_savepoint_to_savepoint(job: str, tmp_path: Path) -> None:
    first = replay(job, "rest", rows=slice(0, 20)).execute(
        restore_from=GOLDEN / job / "savepoint", stop_with_savepoint=tmp_path / "savepoint"
    )
    found = rows_as_flink_shows_them(first)
    rest = replay(job, "rest", rows=slice(20, None)).execute(restore_from=tmp_path / "savepoint")
    assert lines(job, found + rows_as_flink_shows_them(rest)) == expected_lines(job)


@pytest.mark.parametrize(
    ("job", "values", "rows_before", "sums"),
    [
        (
            "over_last_rows_of_floats",
            {"flag": [True] * 17, "d": [1.0, 2.0, 3.0, *[None] * 12, 2.5, 1.0]},
            15,
            "'0.25000000000000006', '1.7499999999999996'",
        ),
        (
            "group_by_count",
            {"u": ["a", "b", "c", "a", "b", "d"], "i": [0] * 6, "d": [0.1, 0.2, None, None, None, 0.125]},
            5,
            "0.12500000000000003",
        ),
    ],
)
def test_sums_of_floats_go_on_from_what_is_left_when_no_value_is(
    job: str,
    values: dict[str, list[Any]],
    rows_before: int,
    sums: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = len(values["d"])
    given = table("first").slice(0, n)
    times = pa.array(range(1000, 1000 + 1000 * n, 1000), pa.timestamp("ms"))
    for name, column in {**values, "ts": times}.items():
        place = given.schema.get_field_index(name)
        given = given.set_column(
            place, given.schema.field(place), pa.array(column, given.schema.types[place])
        )
    monkeypatch.setattr(sql_savepoint_jobs, "table", lambda part: given)
    expected = rows_as_flink_shows_them(replay(job, "all").execute())
    first = replay(job, "all", rows=slice(0, rows_before)).execute(stop_with_savepoint=tmp_path / "savepoint")
    found = rows_as_flink_shows_them(first)
    rest = replay(job, "all", rows=slice(rows_before, None)).execute(restore_from=tmp_path / "savepoint")
    assert found + rows_as_flink_shows_them(rest) == expected
    assert sums in str(expected)


def test_frames_of_a_checkpoint_without_their_rows_are_refused(tmp_path: Path) -> None:
    replay("over_range", "first").execute(stop_with_checkpoint=tmp_path / "checkpoint").report  # noqa: B018 - runs it
    with pytest.raises(ConfigurationError, match="Flink's state has their rows"):
        savepoints.write(tmp_path / "checkpoint", tmp_path / "savepoint")
    rest = replay("over_range", "rest")
    with pytest.raises(ConfigurationError, match="rows of frames: none then, kept for a savepoint now"):
        rest.execute(restore_from=tmp_path / "checkpoint", stop_with_savepoint=tmp_path / "savepoint")


def expected_with_late_rows(job: str) -> list[str]:
    return lines(job, [json.loads(line) for line in (GOLDEN / job / "late.jsonl").read_text().splitlines()])


@pytest.mark.parametrize("job", WITH_LATE_ROWS)
def test_rows_that_are_late_for_the_watermark_of_a_savepoint_are_dropped(job: str) -> None:
    rest = replay(job, "late").execute(restore_from=GOLDEN / job / "savepoint")
    assert lines(job, rows_as_flink_shows_them(rest)) == expected_with_late_rows(job)
    assert rest.report.late > 0


@pytest.mark.parametrize("kind", ["checkpoint", "savepoint"])
@pytest.mark.parametrize("job", WITH_LATE_ROWS)
def test_a_job_keeps_the_watermark_of_its_savepoint(job: str, kind: str, tmp_path: Path) -> None:
    state: dict[str, Any] = {f"stop_with_{kind}": tmp_path / "stopped"}
    replay(job, "late", rows=slice(0, 5)).execute(restore_from=GOLDEN / job / "savepoint", **state).report  # noqa: B018
    if kind == "savepoint":
        ((operator,), (flinks,)) = (
            [each for each in savepoints.open(path).operators if "watermark" in each.states]
            for path in (tmp_path / "stopped", GOLDEN / job / "savepoint")
        )
        marks = [set(each.state("watermark").to_arrow()["value"].to_pylist()) for each in (operator, flinks)]
        assert marks[0] == marks[1]
    rest = replay(job, "late", rows=slice(5, None)).execute(restore_from=tmp_path / "stopped")
    assert lines(job, rows_as_flink_shows_them(rest)) == expected_with_late_rows(job)


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ("sum_of_floats", "the accumulators of SUM of FLOAT are not exchanged"),
        ("concatenation", "the accumulators of LISTAGG of CHAR(3) are not exchanged"),
    ],
)
def test_other_states_are_refused_by_node(job: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"node .* of the plan, .*leave_out") as refused:
        replay(job, "first").execute(stop_with_savepoint=tmp_path / "savepoint").report  # noqa: B018
    assert reason in str(refused.value)


def test_the_savepoint_of_another_plan_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Give the plan with which the job was started"):
        replay("tumble", "rest").execute(restore_from=GOLDEN / "distinct" / "savepoint").report  # noqa: B018


def test_windows_without_their_timers_are_refused() -> None:
    operators = savepoints.open(GOLDEN / "tumble" / "savepoint").operators
    (found,) = (each for each in operators if "window-aggs" in each.states)
    found.states.pop("_timer_state/event_window-timers")
    node = FlinkState(
        "5_window-aggregate", "window-aggregate", "node 5", windows=StateWindows("tumble", 1, 1)
    )
    with pytest.raises(ConfigurationError, match=r"node 5 has \['_timer_state/event_window-timers', "):
        RestoredPlanState(found, None, node).check("operator 'hourly'")


def test_all_refusals_have_a_golden_plan() -> None:
    assert {path.name for path in GOLDEN.iterdir() if path.is_dir()} == {*QUERIES, *REFUSED}


def test_a_plan_that_is_executed_stops_with_a_savepoint_and_begins_with_it(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    plan, savepoint = GOLDEN / "tumble" / "plan.json", tmp_path / "savepoint"

    def rows(part: str, **state: Any) -> list[list[Any]]:
        log = env.from_event_log(table(part), timestamp="ts", arrival="arrival", split=None)
        (result,) = env.execute_plan(plan, {"clicks": log}, settings=SETTINGS, **state).values()
        return rows_as_flink_shows_them(result)

    assert len(rows("first", stop_with_savepoint=savepoint)) == 12
    assert lines("tumble", rows("rest", restore_from=savepoint)) == expected_lines("tumble")


def test_windows_without_a_watermark_keep_their_timers(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    plan = GOLDEN / "tumble" / "plan.json"

    def timers(rows: int, name: str, **state: Any) -> list[dict[str, Any]]:
        log = env.from_event_log(table("first").slice(0, rows), timestamp="ts", arrival="arrival", split=None)
        (result,) = env.execute_plan(
            plan, {"clicks": log}, settings=SETTINGS, stop_with_savepoint=tmp_path / name, **state
        ).values()
        assert result.to_arrow().num_rows == 0
        (operator,) = savepoints.open(tmp_path / name).operators
        found = (
            operator.state("_timer_state/event_window-timers")
            .to_arrow()
            .select(["key", "namespace", "timestamp_ms"])
        )
        return sorted(found.to_pylist(), key=repr)

    first = timers(1, "one")
    assert len(first) == 1
    assert timers(0, "two", restore_from=tmp_path / "one") == first


def test_the_last_rows_of_a_plan_are_not_those_of_a_savepoint() -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(table("first"), timestamp="ts", arrival="arrival", split=None)
    with pytest.raises(ConfigurationError, match="final=True keeps the last row of each key"):
        env.execute_plan(
            GOLDEN / "distinct" / "plan.json", {"clicks": log}, final=True, stop_with_savepoint="s"
        )


def test_a_rank_over_columns_is_refused_and_not_left_out(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(table("first"), timestamp="ts", arrival="arrival", split=None)
    last = log.key_by("v").deduplicate("last", "arrival")
    with pytest.raises(ConfigurationError, match="keeps rows over columns"):
        last.execute(stop_with_savepoint=tmp_path / "savepoint").report  # noqa: B018 - runs it
