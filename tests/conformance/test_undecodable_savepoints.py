"""Savepoints of real Flink with values or formats for which not every reader has a way."""

import json
from pathlib import Path
from typing import Any

import pytest
from equipment.golden_savepoints import expected_facts, facts_of, rows_of

from flinkcore import savepoints
from flinkcore.savepoints import ReadSettings

CASES = Path(__file__).parents[1] / "golden" / "savepoints" / "cases"


def entries_of(case: str, state: str) -> list[dict[str, Any]]:
    expected = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
    return [
        entry
        for operator in expected["operators"]
        for each in operator["keyed"]
        if each["name"] == state
        for entry in each["entries"]
    ]


def in_java(value: Any) -> Any:
    """Return what Java prints of an Either."""
    if isinstance(value, list):
        return [in_java(each) for each in value]
    side, inner = next(iter(value.items()))
    return f"{side.capitalize()}({inner})"


@pytest.mark.parametrize("settings", [ReadSettings(), ReadSettings(batch_rows=1, block_bytes=5)])
def test_a_checkpoint_of_the_heap_backend_holds_what_a_savepoint_does(settings: ReadSettings) -> None:
    settings = ReadSettings(True, settings.batch_rows, block_bytes=settings.block_bytes)
    native = savepoints.open(CASES / "refuse_native-heap1" / "savepoint", settings=settings)
    canonical = json.loads((CASES / "count_timers-heap1" / "expected.json").read_text(encoding="utf-8"))
    assert facts_of(native) == expected_facts(canonical)


@pytest.mark.parametrize("name", ["v_0", "l_0"])
def test_either_is_a_struct_of_both_sides(name: str) -> None:
    savepoint = savepoints.open(CASES / "refuse_either-heap1" / "savepoint", exact=True)
    operator = next(each for each in savepoint.operators if each.states)
    found = [{**row, "value": in_java(row["value"])} for row in rows_of(operator.state(name))]
    expected = [
        {
            **entry,
            "value": [each["text"] for each in entry["value"]] if name == "l_0" else entry["value"]["text"],
        }
        for entry in entries_of("refuse_either-heap1", name)
    ]
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_what_kryo_wrote_stays_bytes() -> None:
    savepoint = savepoints.open(CASES / "refuse_kryo-heap1" / "savepoint")
    operator = next(each for each in savepoint.operators if each.states)
    state = operator.state("v_0")
    assert state.undecodable == "Kryo<flinksp.Pojos$Opaque>"
    table = state.to_arrow()
    expected = entries_of("refuse_kryo-heap1", "v_0")
    assert sorted(table["key"].to_pylist()) == sorted(entry["key"] for entry in expected)
    assert {type(value) for value in table["value"].to_pylist()} == {bytes}
