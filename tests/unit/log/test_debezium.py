"""Debezium's envelopes become the rows that a change inserts, updates and deletes, as in Flink."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.kafka_messages import avro, framed, kafka_table

import flinkcore as fc
from flinkcore.cli import main
from flinkcore.errors import ConfigurationError, DataError, SchemaError

A, B = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
ROW = "id BIGINT, name STRING"


def change(op: str, before: Any, after: Any, ts_ms: int = 1_000) -> dict[str, Any]:
    source = {"ts_ms": ts_ms, "db": "shop", "schema": None, "table": "users", "connector": "postgresql"}
    return {"op": op, "before": before, "after": after, "ts_ms": ts_ms + 5, "source": source}


CHANGES = [
    change("r", None, {"id": 2, "name": "s"}),
    change("c", None, A, 2_000),
    change("u", A, B, 3_000),
    None,
    change("d", B, None, 4_000),
]
ROWS = [("+I", 2, "s"), ("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b"), ("-D", 1, "b")]


def wrapped(envelope: Any) -> Any:
    return (
        None if envelope is None else {"schema": {"type": "struct", "optional": False}, "payload": envelope}
    )


def plain(envelope: Any) -> Any:
    return envelope


def messages(changes: list[Any], form: Any = plain) -> list[bytes | None]:
    return [None if each is None else json.dumps(form(each)).encode() for each in changes]


def stream(log: Any, decode: Any, **settings: Any) -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    events = env.from_event_log(log, decode=decode, **settings)
    return events.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())


def rows_of_values(log: Any, decode: Any, **settings: Any) -> list[tuple[Any, ...]]:
    table = stream(log, decode, **settings).to_arrow()
    names = ["id", "name"]
    return [
        (row["row_kind"], *(None if row["value"] is None else row["value"][name] for name in names))
        for row in table.to_pylist()
    ]


def write_lines(path: Path, changes: list[Any], form: Any = plain) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(form(each)) + "\n" for each in changes if each is not None))
    return path


@pytest.mark.parametrize("form", [plain, wrapped])
def test_changes_in_values_become_rows_with_their_kinds(form: Any, tmp_path: Path) -> None:
    table = kafka_table(messages(CHANGES, form), 1)
    decode = {"value": fc.debezium_values(ROW)}
    assert rows_of_values(table, decode) == ROWS
    turned = table.take(list(reversed(range(len(table)))))
    assert rows_of_values(turned, decode) == ROWS
    pq.write_table(turned, tmp_path / "a.parquet", row_group_size=1)
    assert rows_of_values(tmp_path, decode) == ROWS
    found = stream(table, decode).to_arrow()
    assert found["offset"].to_pylist() == [0, 1, 2, 2, 4]
    assert [each["ts_ms"] for each in found["source"].to_pylist()] == [1_000, 2_000, 3_000, 3_000, 4_000]
    assert found["ts_ms"].to_pylist() == [1_005, 2_005, 3_005, 3_005, 4_005]


@pytest.mark.parametrize("form", [plain, wrapped])
def test_an_envelope_in_the_columns_of_files_becomes_the_columns_of_rows(form: Any, tmp_path: Path) -> None:
    write_lines(tmp_path / "partition=0" / "a.json", CHANGES[:2], form)
    write_lines(tmp_path / "partition=0" / "b.json", CHANGES[2:], form)
    found = stream(tmp_path, "debezium", timestamp=pc.field("source", "ts_ms")).to_arrow()
    assert [tuple(row.values()) for row in found.select(["row_kind", "id", "name"]).to_pylist()] == ROWS
    assert set(found.column_names) == {"id", "name", "row_kind", "ts_ms", "source", "partition"}


def test_an_update_counts_in_the_windows_of_both_its_rows(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.json", CHANGES)
    events = stream(tmp_path, "debezium", timestamp=pc.field("source", "ts_ms"))
    windows = events.key_by("name").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(10)))
    rows = windows.aggregate(kinds=fc.collect("row_kind")).to_arrow().to_pylist()
    assert {row["name"]: row["kinds"] for row in rows} == {"s": ["+I"], "a": ["+I", "-U"], "b": ["+U", "-D"]}


def updates_that_arrive_together(arrivals: int, keys: int) -> pa.Table:
    rows = []
    for at in range(1, arrivals + 1):
        for key in range(keys):
            before, after = ({"id": key, "price": price} for price in (at, at + 1))
            rows.append({"op": "u", "before": before, "after": after, "at": 1_000 * at})
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("form", ["columns", "values"])
def test_the_row_before_an_update_comes_first_where_only_arrivals_order_changes(
    form: str, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = updates_that_arrive_together(20, 5)
    decode: Any = "debezium"
    if form == "values":
        values = [json.dumps(row).encode() for row in table.drop_columns("at").to_pylist()]
        table = pa.table({"value": pa.array(values, pa.binary()), "at": table["at"]})
        decode = {"value": fc.debezium_values("id BIGINT, price BIGINT")}
    deltalake.write_deltalake(tmp_path / "log", table)
    found = []
    for parallelism in (1, 3):
        env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
        log = env.from_event_log(tmp_path / "log", timestamp="at", arrival="at", decode=decode)
        events = log.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
        key = "id" if form == "columns" else "value.id"
        windows = events.key_by(key).window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(100)))
        rows = windows.aggregate(kinds=fc.collect("row_kind")).to_arrow().sort_by(key).to_pylist()
        assert {tuple(row["kinds"]) for row in rows} == {("-U", "+U") * 20}
        found.append(rows)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["ts_ms", "source"])
def test_a_field_of_the_rows_may_have_the_name_of_one_of_the_envelope(name: str) -> None:
    changes = [{"op": "c", "after": {"id": 1, name: 7}, "at": 1}]
    assert stream(pa.Table.from_pylist(changes), "debezium", timestamp="at").to_arrow().to_pylist() == [
        {"id": 1, name: 7, "row_kind": "+I", "at": 1}
    ]
    both = pa.Table.from_pylist([{**change, name: 8} for change in changes])
    (row,) = stream(both, "debezium", timestamp="at").to_arrow().to_pylist()
    assert row[name] == 7


def test_columns_of_the_log_stay_beside_an_envelope_with_their_names() -> None:
    table = kafka_table(messages(CHANGES[:2]), 1)
    table = table.append_column("ts_ms", pa.array([7_000, 8_000])).append_column(
        "source", pa.array(["x", "y"])
    )
    decode = {"value": fc.debezium_values(ROW)}
    found = stream(table, decode, timestamp="ts_ms").to_arrow()
    assert found["ts_ms"].to_pylist() == [7_000, 8_000]
    assert found["source"].to_pylist() == ["x", "y"]


def test_envelopes_in_avro(tmp_path: Path) -> None:
    row = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
    schema = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"]},
        ],
    }
    values = [None if each is None else framed(1, avro(schema, each)) for each in CHANGES]
    decoder = fc.debezium_values(fc.avro_values(schemas={1: schema}))
    assert rows_of_values(kafka_table(values, 1), {"value": decoder}) == ROWS


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (change("u", None, B), "the 'before' of a change of op 'u' is null.*REPLICA IDENTITY FULL"),
        (change("d", None, None), "the 'before' of a change of op 'd' is null"),
        (change("c", A, None), "the 'after' of a change of op 'c' is null"),
        (change("t", None, None), "its op is 't', which is not c, r, u or d"),
        ({"id": 1, "before": A}, "its op is None, which is not c, r, u or d"),
    ],
)
def test_a_change_that_cannot_be_read_is_an_error_or_rejected(bad: Any, reason: str, tmp_path: Path) -> None:
    decode = {"value": fc.debezium_values(ROW)}
    table = kafka_table(messages([CHANGES[2], bad, CHANGES[1]]), 1)
    with pytest.raises(
        DataError, match=rf"row 1 \(from 0\) of the table: column 'value' cannot be decoded: {reason}"
    ):
        stream(table, decode).to_arrow()
    tag = fc.OutputTag("bad")
    result = stream(table, decode, on_bad_row=tag).execute()
    assert result.to_arrow()["row_kind"].to_pylist() == ["-U", "+U", "+I"]
    (rejected,) = result.get_side_output(tag).to_arrow().to_pylist()
    assert rejected["offset"] == 1
    assert json.loads(rejected["record"]["text"])["op"] == bad.get("op")


def test_lines_and_messages_that_cannot_be_read_are_not_taken_for_tombstones(tmp_path: Path) -> None:
    lines = [json.dumps(CHANGES[1]), '{"op": "c", "aft', json.dumps(CHANGES[2])]
    (tmp_path / "a.json").write_text("\n".join(lines) + "\n")
    dropped = stream(tmp_path, "debezium", timestamp=pc.field("source", "ts_ms"), on_bad_row="drop").execute()
    assert dropped.to_arrow()["row_kind"].to_pylist() == ["+I", "-U", "+U"]
    assert dropped.report.rejected == {"unreadable record": 1}
    table = kafka_table([*messages(CHANGES[:2]), b"oops"], 1)
    kept = stream(table, {"value": fc.debezium_values(ROW)}, on_bad_row="drop").execute()
    assert kept.to_arrow()["row_kind"].to_pylist() == ["+I", "+I"]
    assert kept.report.rejected == {"unreadable record": 1}


def test_columns_that_are_not_an_envelope_are_refused() -> None:
    with pytest.raises(
        SchemaError, match=r"the log has no 'op' and no 'after', which Debezium's envelope has: at"
    ):
        stream(pa.table({"at": [1]}), "debezium", timestamp="at").to_arrow()
    with pytest.raises(SchemaError, match="'after' of Debezium's envelope is string, and rows are structs"):
        stream(pa.table({"at": [1], "op": ["c"], "after": ["x"]}), "debezium", timestamp="at").to_arrow()
    with pytest.raises(
        SchemaError, match="the log has a column 'row_kind', and the kinds of changes are to be one"
    ):
        stream(pa.table({"op": ["c"], "after": [{"row_kind": 1}]}), "debezium", timestamp="at").to_arrow()
    both = {"value": fc.debezium_values(ROW), "key": fc.debezium_values(ROW)}
    with pytest.raises(
        ConfigurationError, match="Debezium's envelopes in value and key: a log has them in one"
    ):
        stream(kafka_table([b"{}"]), both).to_arrow()


def test_a_command_reads_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(tmp_path / "log" / "a.json", CHANGES)
    arguments = ["replay", str(tmp_path / "log"), "--engine", "embedded", "--key", "row_kind", "--quiet"]
    arguments += ["--decode", "debezium", "--timestamp", "ts_ms", "--window", "tumbling:10s"]
    arguments += ["--aggregate", "n=count()", "--output", str(tmp_path / "out")]
    assert main(arguments) == 0, capsys.readouterr().err
    table = pq.read_table(tmp_path / "out")
    assert dict(zip(table["row_kind"].to_pylist(), table["n"].to_pylist(), strict=True)) == {
        "+I": 2,
        "-U": 1,
        "+U": 1,
        "-D": 1,
    }
