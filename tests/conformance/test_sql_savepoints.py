"""Savepoints of Flink SQL's jobs hold what the queries have read: keys and accumulators as binary rows."""

from collections import defaultdict
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

from flinkcore import savepoints

SQL = Path(__file__).parents[1] / "golden" / "savepoints" / "sql"

# The source also has d DOUBLE, day_ DATE, inst TIMESTAMP_LTZ(3), nested ROW, arr ARRAY, mp MAP, b TINYINT, s SMALLINT,
# f FLOAT, tm TIME and bin BYTES. The queries were:
# SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY d DESC) rn FROM t, of which rn <= 2
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


def test_the_distinct_values_of_a_group_aggregate_are_read() -> None:
    (operator,) = (each for each in savepoints.open(SQL / "group_aggregate").operators if each.states)
    assert not operator.unread
    found = operator.state("distinctAcc_0").to_arrow().to_pylist()
    values = {(row["key"]["f0"], row["key"]["f1"], row["map_key"]): row["value"] for row in found}
    assert values == {(row["u"], row["flag"], row["v"]): 1 for row in table()}


def test_rows_of_a_rank_are_read_with_all_their_types() -> None:
    (operator,) = (each for each in savepoints.open(SQL / "rank").operators if each.states)
    found = {}
    for row in operator.state("data-state-with-append").to_arrow().to_pylist():
        (value,) = row["value"]
        assert value.pop("row_kind") == value["f9"].pop("row_kind") == "+I"
        assert row["map_key"] == {"f0": value["f2"], "row_kind": "+I"}
        found[row["key"]["f0"]] = list(value.values())
    start = datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert found == {
        i: [
            *(row["u"], i, None if i % 7 == 0 else i * 1.5, row["m"], row["big"]),
            *(date(2026, 1, 1) + timedelta(days=i), row["at"], start + timedelta(seconds=i), row["flag"]),
            *(
                {"x": i, "y": f"n{i}"},
                [f"a{i}", None, f"a longer text {i}"],
                None if i % 3 == 0 else [("k", i)],
            ),
            *(i, -i, 1.25 * i, time(1, 2, i), bytes([1, i])),
        ]
        for i, row in enumerate(table())
    }
