"""Savepoints of Flink SQL's jobs hold what the queries have read: keys and accumulators as binary rows."""

from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from flinkcore import savepoints

SQL = Path(__file__).parents[1] / "golden" / "savepoints" / "sql"

# SELECT u, flag, COUNT(*), SUM(v), MAX(m), MAX(big), MIN(at), COUNT(DISTINCT v) FROM t GROUP BY u, flag


def table() -> list[dict[str, object]]:
    """Return the rows that the source of the queries had emitted before the savepoint."""
    return [
        {
            "u": None if i % 5 == 4 else f"user-{i % 5}" + " with a long name" * (i % 5 == 1),
            "flag": i % 2 == 0,
            "v": i,
            "m": Decimal(i * 101).scaleb(-2),
            "big": Decimal(f"{'-' if i % 2 else ''}123456789012345678901234567.{10 + i}"),
            "at": datetime(2026, 1, 1) + timedelta(seconds=i, microseconds=i),
        }
        for i in range(40)
    ]


def test_accumulators_of_a_group_aggregate_are_read() -> None:
    groups = defaultdict(list)
    for row in table():
        groups[row["u"], row["flag"]].append(row)
    (operator,) = (each for each in savepoints.open(SQL / "group_aggregate").operators if each.states)
    state = operator.state("accState")
    assert state.types["key"].name == "ROW<f0 STRING, f1 BOOLEAN>"
    found = {}
    for row in state.to_arrow().to_pylist():
        key, value = row["key"], row["value"]
        assert key["row_kind"] == value["row_kind"] == "+I"
        found[key["f0"], key["f1"]] = [value[f"f{i}"] for i in range(6)]
    assert found == {
        key: [
            len(rows),
            sum(row["v"] for row in rows),  # type: ignore[misc]
            max(row["m"] for row in rows),  # type: ignore[type-var]
            max(row["big"] for row in rows),  # type: ignore[type-var]
            min(row["at"] for row in rows),  # type: ignore[type-var]
            len(rows),
        ]
        for key, rows in groups.items()
    }


def test_states_after_a_serializer_of_the_planner_are_reported() -> None:
    (operator,) = (each for each in savepoints.open(SQL / "group_aggregate").operators if each.states)
    (reason,) = operator.unread
    assert "distinctAcc_0_null_state" in reason
    assert "ExternalSerializer" in reason
