"""Reading of nested fields from files: the leaves that are wanted, and no others."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.event_logs import event_log
from pyarrow import orc

from flinkcore._internal.values.memory_limits import BATCH_ROWS
from flinkcore.errors import DataError, SchemaError, SourceError
from flinkcore.log.event_log import EventLog
from flinkcore.log.event_reader import EventReader

ROWS = [
    {"payload": {"after": {"user": f"u{n % 3}", "note": f"note {n}"}, "source": {"ts": n}}, "n": n}
    for n in range(100)
]


def values(log: EventLog, *names: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = []
    for chunk in log.chunks(2):
        for batch in chunk.read(names, BATCH_ROWS):
            assert batch.schema.names == list(names)
            read += batch.to_pylist()
    return read


def log_at(folder: Path) -> EventLog:
    return event_log(str(folder), timestamp="payload.source.ts")


def damage_leaf(path: Path, leaf: str) -> None:
    """Overwrite the pages of a leaf."""
    group = pq.read_metadata(path).row_group(0)
    column = next(
        group.column(at) for at in range(group.num_columns) if group.column(at).path_in_schema == leaf
    )
    start = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)


def test_a_leaf_that_nobody_names_is_not_read_from_parquet(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    damage_leaf(path, "payload.after.note")
    log = log_at(tmp_path)

    assert values(log, "payload.source.ts", "payload.after.user") == [
        {"payload.source.ts": row["n"], "payload.after.user": f"u{row['n'] % 3}"} for row in ROWS
    ]
    with pytest.raises(SourceError, match=r"log\.parquet cannot be read"):
        values(log, "payload.after.note")
    with pytest.raises(SourceError, match=r"log\.parquet cannot be read"):
        values(log, "payload", "payload.source.ts")


def test_the_first_pass_reads_the_leaf_of_the_times_alone(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    for leaf in ("payload.after.note", "payload.after.user", "n"):
        damage_leaf(path, leaf)
    log = log_at(tmp_path)

    reader = EventReader(log.with_fields([log.timestamp]))

    times = [t for chunk in log.chunks(1) for timed in reader.read(chunk) for t in timed.timestamp_ms]
    assert times == list(range(100))


@pytest.mark.parametrize("kind", ["parquet", "arrow", "json", "avro"])
def test_a_struct_and_its_fields_are_read_together(tmp_path, kind):
    write(tmp_path / f"log.{kind}", kind)

    assert values(log_at(tmp_path), "n", "payload.after.user", "payload", "payload.source.ts") == [
        {
            "n": row["n"],
            "payload.after.user": row["payload"]["after"]["user"],
            "payload": row["payload"],
            "payload.source.ts": row["n"],
        }
        for row in ROWS
    ]


def write(path: Path, kind: str) -> None:
    table = pa.Table.from_pylist(ROWS)
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=30)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, 30)
    elif kind == "json":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        write_avro(path)


def write_avro(path: Path) -> None:
    import fastavro

    def record(name: str, **fields: Any) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": k, "type": v} for k, v in fields.items()]}

    payload = record(
        "payload", after=record("after", user="string", note="string"), source=record("source", ts="long")
    )
    with path.open("wb") as file:
        fastavro.writer(file, record("row", payload=payload, n="long"), ROWS)


def test_a_field_has_the_type_that_holds_the_values_of_all_files(tmp_path):
    pq.write_table(
        pa.table({"p": pa.array([{"ts": 1, "x": 1}], pa.struct({"ts": pa.int64(), "x": pa.int32()}))}),
        tmp_path / "1.parquet",
    )
    pq.write_table(pa.table({"p": [{"ts": 2, "x": 2**40}]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"p": [{"ts": 3}]}), tmp_path / "3.parquet")
    pq.write_table(pa.table({"q": [3]}), tmp_path / "4.parquet")

    log = event_log(str(tmp_path), timestamp="p.ts")

    assert values(log, "p.x") == [{"p.x": 1}, {"p.x": 2**40}, {"p.x": None}, {"p.x": None}]


def test_a_value_that_the_type_of_the_field_does_not_hold_names_its_row(tmp_path):
    pq.write_table(pa.table({"p": [{"ts": 1, "x": 0.5, "y": 1}]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"p": [{"ts": 1, "x": 2**53 + 1, "y": 0.5}]}), tmp_path / "2.parquet")
    log = event_log(str(tmp_path), timestamp="p.ts")

    assert values(log, "p.ts", "p.y") == [{"p.ts": 1, "p.y": 1.0}, {"p.ts": 1, "p.y": 0.5}]
    with pytest.raises(DataError, match=r"row 0 \(from 0\) of .*2\.parquet has .*9007199254740993"):
        values(log, "p.x")


def test_a_column_that_is_no_struct_in_another_file_is_an_error_that_names_both(tmp_path):
    pq.write_table(pa.table({"p": [{"ts": 1}]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"p": ["ts"]}), tmp_path / "2.parquet")

    with pytest.raises(SchemaError, match=r"column 'p' is struct<ts: int64> in .*1\.parquet but string in"):
        values(event_log(str(tmp_path), timestamp="p.ts"), "p.ts")


def test_timestamps_of_96_bits_in_a_leaf_that_is_not_read_are_not_looked_at(tmp_path):
    times = pa.StructArray.from_arrays(
        [pa.array([datetime(1500, 1, 1)], pa.timestamp("us")), pa.array([7])], ["at", "ts"]
    )
    nanos = pa.StructArray.from_arrays([pa.array([1], pa.timestamp("ns")), pa.array([8])], ["at", "ts"])
    options = {"use_deprecated_int96_timestamps": True}
    pq.write_table(pa.table({"p": nanos}), tmp_path / "log.parquet", **options)
    log = event_log(str(tmp_path), timestamp="p.ts")

    assert values(log, "p.ts") == [{"p.ts": 8}]
    with pytest.raises(DataError, match=r"the timestamp \(INT96\) in row 0 of column 'p' .* has nanoseconds"):
        values(log, "p.at")

    pq.write_table(pa.table({"p": times}), tmp_path / "log.parquet", **options)
    (row,) = values(event_log(str(tmp_path), timestamp="p.ts"), "p.at")
    assert row["p.at"].replace(tzinfo=None) == datetime(1500, 1, 1)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columns_and_fields_whose_names_have_dots_are_told_apart(tmp_path, kind):
    table = pa.table({"a.b": [1, 2], "a": [{"b": 3, "c.d": 5}, {"b": 4, "c.d": 6}]})
    {"parquet": pq, "orc": orc}[kind].write_table(table, tmp_path / f"log.{kind}")
    for log in (event_log(str(tmp_path), timestamp="a.b"), event_log(table, timestamp="a.b")):
        assert values(log, "a.c.d", "a.b") == [{"a.c.d": 5, "a.b": 1}, {"a.c.d": 6, "a.b": 2}]
        assert values(log, "a.b") == [{"a.b": 1}, {"a.b": 2}]


def test_a_field_of_a_table_in_memory_keeps_its_dictionary_for_splits():
    structs = pa.StructArray.from_arrays([pa.array(["x", "y", "x"]).dictionary_encode()], ["part"])
    log = event_log(pa.table({"ts": [1, 2, 3], "k": structs}), timestamp="ts", split="k.part")
    (chunk,) = log.chunks(1)

    (batch,) = chunk.read(["k.part"], 10, ["k.part"])
    assert pa.types.is_dictionary(batch.column(0).type)
    (timed,) = EventReader(log).read(chunk)
    assert [timed.split_values[code] for code in timed.split_codes] == ["x", "y", "x"]
