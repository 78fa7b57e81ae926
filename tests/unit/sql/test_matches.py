"""MATCH_RECOGNIZE of compiled plans: what is refused, failures, checkpoints, spilled state and reports."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.small_batches import read_in_batches_of
from jobs.sql_scenarios import environment_of, golden, stream_of

from flinkcore.common import Configuration
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError

MEMORY = "taskmanager.memory.managed.size"

NAME = "match-1-2"  # A B C within 5 seconds, without keys
TABLES = {"f": pa.table({"none": [1]})}


def spec_of(plan: dict[str, Any]) -> dict[str, Any]:
    (node,) = [each for each in plan["nodes"] if each["type"] == "stream-exec-match_1"]
    found: dict[str, Any] = node["matchSpec"]
    return found


def planned(change: Any) -> LogStream:
    """Read a plan whose match has been changed."""
    plan = golden(NAME)["plan"]
    change(spec_of(plan))
    return StreamExecutionEnvironment.get_execution_environment().from_plan(plan, TABLES)


def literal(value: Any, kind: str) -> dict[str, Any]:
    return {"kind": "LITERAL", "value": value, "type": f"{kind} NOT NULL"}


def quantified(name: str, least: int, most: int, reluctant: bool) -> dict[str, Any]:
    operands = [
        literal(name, "CHAR(1)"),
        literal(least, "INT"),
        literal(most, "INT"),
        literal(reluctant, "BOOLEAN"),
    ]
    return {"kind": "CALL", "internalName": "$PATTERN_QUANTIFIER$1", "operands": operands, "type": "NULL"}


def sequence(*parts: dict[str, Any]) -> dict[str, Any]:
    found = parts[0]
    for part in parts[1:]:
        found = {"kind": "CALL", "sqlKind": "PATTERN_CONCAT", "operands": [found, part], "type": "NULL"}
    return found


A, B, C = (literal(name, "CHAR(1)") for name in "ABC")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            sequence(A, B, quantified("C", 1, -1, False)),
            r"last variable of the pattern \(A B C\+\) is greedy",
        ),
        (quantified("A", 0, -1, False), r"\(A\*\) matches no rows at all"),
        (sequence(A, quantified("B", 0, 1, True), C), r"B\?\? of the pattern .* optional and reluctant"),
        (
            sequence(quantified("A", 1, -1, False), quantified("B", 0, 1, False), C),
            r"B\? follows the greedy A\+, .* Make A reluctant",
        ),
        (sequence(A, B, A), "has the variable A twice"),
        (sequence(A, quantified("B", 2, 1, False), C), r"B\{2,1\} of the pattern .* takes no rows"),
        ({**sequence(A, B), "sqlKind": "PATTERN_ALTER"}, "PATTERN_ALTER in a pattern is not supported"),
    ],
)
def test_a_pattern_that_flink_refuses_is_refused_when_the_plan_is_read(
    pattern: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnsupportedOperationError, match=message):
        planned(lambda spec: spec.update(pattern=pattern, measures={}))


def test_all_rows_per_match_are_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="Write ONE ROW PER MATCH"):
        planned(lambda spec: spec.update(allRows=True))


def test_a_row_before_another_one_is_refused_with_what_to_write() -> None:
    def with_prev(spec: dict[str, Any]) -> None:
        definitions = json.dumps(spec["patternDefinitions"])
        changed = definitions.replace('"value": 0', '"value": 1')
        assert changed != definitions
        spec["patternDefinitions"] = json.loads(changed)

    with pytest.raises(UnsupportedOperationError, match=r"PREV is not supported.*LAST\(variable.column, 1\)"):
        planned(with_prev)


def test_a_subset_is_refused_by_name() -> None:
    def with_subset(spec: dict[str, Any]) -> None:
        spec["measures"] = json.loads(json.dumps(spec["measures"]).replace('"alpha": "A"', '"alpha": "S"'))

    with pytest.raises(UnsupportedOperationError, match="SUBSET S is not supported"):
        planned(with_subset)


def test_a_match_that_skips_to_its_first_row_fails_with_the_row() -> None:
    scenario = golden("edges-match_skip_to_itself")
    stream = stream_of(scenario, environment_of(scenario), None)
    with pytest.raises(DataError, match=r"SKIP TO FIRST A: the match that begins with the row .*v.* = 1"):
        stream.to_arrow()


def test_the_plan_of_a_job_shows_the_pattern() -> None:
    scenario = golden(NAME)
    assert "A B C within 5000 ms, then past last row" in str(
        stream_of(scenario, environment_of(scenario), None).explain()
    )


def rows_of(n: int = 300) -> pa.Table:
    """Rows of few keys, of which some are late and many have equal timestamps."""
    draw = random.Random(7)
    return pa.table(
        {
            "k": [draw.choice(["a", "b", None]) for _ in range(n)],
            "v": [draw.choice([None, *range(12)]) for _ in range(n)],
            "x": [draw.random() for _ in range(n)],
            "d": pa.array([draw.randint(0, 99) for _ in range(n)], pa.int32()).cast(pa.decimal128(10, 0)),
            "i": pa.array([draw.randint(0, 9) for _ in range(n)], pa.int32()),
            "ts": pa.array([500 * (each + draw.randint(-15, 0)) for each in range(n)], pa.timestamp("ms")),
            "arrival": pa.array([500 * each for each in range(n)], pa.int64()),
        }
    )


def run(plan: dict[str, Any], rows: pa.Table, memory: int | None = None, **settings: Any) -> list[str]:
    """Return the matches with the times at which they are emitted, sorted."""
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(settings.pop("parallelism", 1))
    if memory is not None:
        read_in_batches_of(4, environment)
        environment.configure(Configuration().set_string(MEMORY, f"{memory} b"))
    table = environment.from_event_log(rows, timestamp="arrival", arrival="arrival", split=None)
    stream = environment.from_plan(plan, {"f": table}, emitted_at="seen")
    return sorted(map(repr, stream.execute(**settings).to_arrow().to_pylist()))


@pytest.fixture(params=["match-1-1", NAME, "match-1-42", "match-1-49"], scope="module")
def plan(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Plans with and without keys, with WITHIN, with conditions on other rows and aggregates."""
    found: dict[str, Any] = golden(request.param)["plan"]
    return found


pytestmark = pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")


def test_matches_are_the_same_with_little_memory_and_any_number_of_partitions(plan: dict[str, Any]) -> None:
    whole = run(plan, rows_of())
    assert len(whole) > 10
    assert run(plan, rows_of(), parallelism=3) == whole
    assert run(plan, rows_of(), memory=0) == whole
    assert run(plan, rows_of(), memory=20_000, parallelism=2) == whole


@pytest.mark.parametrize("cut", [37, 150])
def test_a_job_resumes_in_the_middle_of_matches(plan: dict[str, Any], cut: int, tmp_path: Path) -> None:
    rows, saved = rows_of(), tmp_path / "checkpoint"
    first = run(plan, rows.slice(0, cut), stop_with_checkpoint=saved)
    second = run(plan, rows.slice(cut), restore_from=saved, parallelism=3)
    assert sorted(first + second) == run(plan, rows)


def test_a_checkpoint_of_another_pattern_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "checkpoint"
    run(golden(NAME)["plan"], rows_of(), stop_with_checkpoint=saved)
    other = json.loads(json.dumps(golden(NAME)["plan"]))
    spec_of(other)["interval"]["value"] = "6000"
    with pytest.raises(ConfigurationError, match=r"6000 ms"):
        run(other, rows_of(), restore_from=saved)


def test_late_rows_are_counted() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    table = environment.from_event_log(rows_of(), timestamp="arrival", arrival="arrival", split=None)
    result = environment.from_plan(golden("match-1-44")["plan"], {"f": table}).execute()
    result.to_arrow()
    assert result.report.late > 0
