"""The rows that are left when the log ends are those of the changes, the last one of each key."""

import json
from typing import Any

import pytest
from jobs.sql_scenarios import GOLDEN, environment_of, golden, tables_of

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.program import plan_sinks
from flinkcore.sql.sink_rows import SinkRows


def rows_of(scenario: dict[str, Any], emitted_at: str | None = None) -> SinkRows:
    environment = environment_of(scenario)
    tables = tables_of(environment, scenario)
    (found,) = plan_sinks(environment, scenario["plan"], tables, scenario["settings"], emitted_at).values()
    return found


def scenarios(kind: str, most: int) -> list[str]:
    """Return the first scenarios of a kind whose rows are changed, and have a key."""
    found = []
    for line in (GOLDEN / f"{kind}.jsonl").read_text().splitlines():
        scenario = json.loads(line)
        sink = scenario["plan"]["nodes"][-1] if "plan" in scenario else {}
        if (
            sink.get("inputUpsertKey")
            and sink.get("inputChangelogMode") != ["INSERT"]
            and "error" not in scenario
        ):
            found.append(scenario["name"])
    return found[:most]


@pytest.mark.parametrize("name", [*scenarios("group_by", 12), *scenarios("topn", 6), *scenarios("dedup", 6)])
def test_the_last_row_of_each_key_is_left(name: str) -> None:
    scenario = golden(name)
    try:
        changes = rows_of(scenario)
    except UnsupportedOperationError as refusal:
        pytest.skip(str(refusal))
    if not changes.has_changes:
        pytest.skip("its rows are planned as inserted only")
    left: dict[Any, Any] = {}
    for row in changes.stream.to_arrow().to_pylist():
        key = repr([row[column] for column in changes.key])
        kind = row.pop("row_kind")
        if kind in ("+I", "+U"):
            left[key] = row
        elif kind == "-D":
            left.pop(key, None)
    final = rows_of(scenario).final().stream.to_arrow().to_pylist()
    assert sorted(map(repr, final)) == sorted(map(repr, left.values()))


def test_final_rows_say_when_they_were_emitted() -> None:
    scenario = golden(scenarios("topn", 1)[0])
    table = rows_of(scenario, "seen").final().stream.to_arrow()
    assert table.column_names == [*rows_of(scenario).columns, "seen"]


def test_changes_without_a_key_have_no_last_row() -> None:
    scenario = golden(scenarios("topn", 1)[0])
    scenario["plan"]["nodes"][-1].pop("inputUpsertKey")
    with pytest.raises(
        UnsupportedOperationError, match=r"the rows of sink are changed, and have no key.*PRIMARY KEY"
    ):
        rows_of(scenario).final()


def test_rows_that_are_only_inserted_are_final() -> None:
    rows = rows_of(golden("edges-fire_one_phase"))
    assert rows.final() is rows
