"""Tables that are looked up: checkpoints, changes of a table, rows of several kinds, and what is refused."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs.sql_scenarios import golden

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.table_lookups import TableLookup
from flinkcore.errors import UnsupportedOperationError


def run(name: str, rows: pa.Table, table: Any, **execution: Any) -> list[dict[str, Any]]:
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    logs = {
        key: environment.from_event_log(log, timestamp="arrival", arrival="arrival", split=None)
        if "arrival" in log.column_names
        else log
        for key, log in (("f", rows), ("d", table))
    }
    found = environment.from_plan(golden(name)["plan"], logs).execute(**execution).to_arrow()
    return sorted(found.to_pylist(), key=repr)


def orders(n: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(n), pa.int32()),
            "k": [None if id % 7 == 0 else "abcx"[id % 4] for id in range(n)],
            "c": pa.array([id % 3 for id in range(n)], pa.int32()),
            "ts": pa.array([1000 * id for id in range(n)], pa.timestamp("ms")),
            "arrival": [10 * id for id in range(n)],
        }
    )


def versions(n: int) -> pa.Table:
    return pa.table(
        {
            "k": ["abc"[number % 3] for number in range(n)],
            "n": [f"version {number}" for number in range(n)],
            "w": pa.array(range(n), pa.int64()),
            "arrival": [35 * number for number in range(n)],
        }
    )


def before(log: pa.Table, arrival: int) -> tuple[pa.Table, pa.Table]:
    cut = sum(each < arrival for each in log["arrival"].to_pylist())
    return log.slice(0, cut), log.slice(cut)


def test_versions_are_found_again_if_the_logs_are_cut(tmp_path: Path) -> None:
    rows, table = orders(200), versions(50)
    whole = run("lookup-versions_left", rows, table)
    by_id = {row["id"]: row for row in whole}
    for order in rows.to_pylist():  # what arrives together comes in the order of the logs, whichever that is
        known = [
            each
            for each in table.to_pylist()
            if each["k"] == order["k"] and each["arrival"] <= order["arrival"]
        ]
        if not known or known[-1]["arrival"] < order["arrival"]:
            assert by_id[order["id"]]["n"] == (known[-1]["n"] if known else None)
    (first, rest), (of_table, rest_of_table) = before(rows, 777), before(table, 777)
    parts = run("lookup-versions_left", first, of_table, stop_with_checkpoint=tmp_path / "cp")
    parts += run("lookup-versions_left", rest, rest_of_table, restore_from=tmp_path / "cp")
    assert sorted(parts, key=repr) == whole


def test_a_content_needs_no_checkpoint(tmp_path: Path) -> None:
    rows, table = orders(60), versions(9).drop_columns(["arrival"])
    whole = run("lookup-static_prefilter", rows, table)
    first, rest = before(rows, 300)
    parts = run("lookup-static_prefilter", first, table, stop_with_checkpoint=tmp_path / "cp")
    parts += run("lookup-static_prefilter", rest, table, restore_from=tmp_path / "cp")
    assert sorted(parts, key=repr) == whole
    assert sum(row["n"] is None for row in whole) == sum(
        row["id"] <= 3 or row["k"] not in list("abc") for row in rows.to_pylist()
    )


@pytest.mark.parametrize("found", [["n"], []])
def test_a_table_without_keys_of_rows_is_found_whole_in_another_process(found: list[str]) -> None:
    table = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})
    matches = TableLookup("d", table.select([]), table.select(found), 3, (), None, None, False)
    batch = pa.RecordBatch.from_pydict({"id": [7, 8]})
    ((rows, columns),) = pickle.loads(pickle.dumps(matches)).expand(batch, 1 << 20)
    assert rows.tolist() == [0, 0, 0, 1, 1, 1]
    assert [column.to_pylist() for column in columns] == [[1, 2, 3, 1, 2, 3] for _ in found]


def test_versions_without_a_key_are_refused() -> None:
    with pytest.raises(
        UnsupportedOperationError, match=r"does not name all of a PRIMARY KEY. Declare the key"
    ):
        run("lookup-no_key", orders(1), versions(1))


def test_versions_before_an_operator_of_event_time_are_refused() -> None:
    table = versions(1).append_column("c", pa.array([1], pa.int32()))
    scenario = golden("lookup-static_then_window")
    (node,) = [each for each in scenario["plan"]["nodes"] if "temporalTable" in each]
    schema = node["temporalTable"]["lookupTableSource"]["table"]["resolvedTable"]["schema"]
    schema["primaryKey"] = {"name": "PK", "type": "PRIMARY_KEY", "columns": ["k"]}
    environment = StreamExecutionEnvironment.get_execution_environment()
    log = environment.from_event_log(table, timestamp="arrival", arrival="arrival")
    with pytest.raises(UnsupportedOperationError, match="an operator of the plan needs watermarks"):
        environment.from_plan(scenario["plan"], {"f": orders(1), "d": log})
