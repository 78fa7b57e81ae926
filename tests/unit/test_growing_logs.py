"""Logs whose later lines and files have keys and columns that the first ones lack: read, or reported."""

import gzip
import json
import re

import fastavro
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from flinkcore._internal.arrow.unified_types import unified_type
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import SchemaError
from flinkcore.log.sources.log_sources import LogFiles


def write_lines(path, rows):
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def read_all(source, columns=None):
    """Return the rows of a log, and what is suspicious of its files."""
    warnings = []
    batches = [batch for chunk in source.chunks(1) for batch in chunk.read(columns, 1000, (), warnings)]
    return pa.Table.from_batches(batches), warnings


def small_blocks(monkeypatch):
    monkeypatch.setattr("flinkcore.log.formats.text_formats._BLOCK_BYTES", 200)
    monkeypatch.setattr("flinkcore.log.formats.text_formats._SAMPLED_BYTES", 100)


def options_of(warning):
    """The format_options that a warning advises."""
    return eval(re.search(r"format_options=(\{.*\})$", warning)[1], {"pyarrow": pa})


ROWS = [{"ts": n, "payload": {"id": n, "items": [{"a": n}]}} for n in range(20)]
GROWN = {"ts": 20, "new": 1.5, "payload": {"id": 20, "size": "x", "items": [{"a": 1}, {"b": True}]}}


@pytest.mark.parametrize("name", ["2.json", "2.json.gz"])
def test_keys_of_a_later_file_are_columns_and_fields(tmp_path, name):
    write_lines(tmp_path / "1.json", ROWS)
    write_lines(tmp_path / name, [GROWN])
    table, warnings = read_all(LogFiles.discover(tmp_path))
    assert warnings == []
    assert table.num_rows == 21
    assert table.to_pylist()[-1] == {
        "ts": 20,
        "payload": {"id": 20, "items": [{"a": 1, "b": None}, {"a": None, "b": True}], "size": "x"},
        "new": 1.5,
    }
    assert table["new"].to_pylist()[:-1] == [None] * 20


def test_keys_at_the_end_of_a_file_are_columns_and_fields(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    write_lines(tmp_path / "1.json", [*ROWS, {"ts": 1, "payload": {"size": "x"}}])
    table, warnings = read_all(LogFiles.discover(tmp_path))
    assert warnings == []
    assert table["payload"].to_pylist()[-1] == {"id": None, "items": None, "size": "x"}


@pytest.mark.parametrize("name", ["1.json", "1.json.gz"])
def test_keys_that_are_found_later_are_reported_with_the_types_that_read_them(tmp_path, monkeypatch, name):
    small_blocks(monkeypatch)
    write_lines(tmp_path / name, [*ROWS, GROWN, GROWN, *ROWS])
    _, (warning,) = read_all(LogFiles.discover(tmp_path), ["ts"])
    assert name in warning
    for key in ("new", "payload.size", "payload.items[].b"):
        assert f"'{key}' (2 times, first in line 21)" in warning
    table, warnings = read_all(LogFiles.discover(tmp_path, format_options=options_of(warning)))
    assert warnings == []
    assert table.to_pylist()[21]["payload"] == {
        "id": 20,
        "items": [{"a": 1, "b": None}, {"a": None, "b": True}],
        "size": "x",
    }
    assert table["new"].to_pylist()[20:23] == [1.5, 1.5, None]


def test_keys_of_a_file_between_those_that_are_looked_at_are_reported(tmp_path):
    for number in range(40):
        write_lines(tmp_path / f"{number}.json", [GROWN] if number == 6 else ROWS)
    table, (warning,) = read_all(LogFiles.discover(tmp_path))
    assert "6.json has keys that are not in the columns of the log" in warning
    assert "'payload.size' (1 times, first in line 1)" in warning
    assert table.num_rows == 39 * 20 + 1


def test_keys_of_the_last_of_many_files_are_columns(tmp_path):
    for number in range(40):
        write_lines(tmp_path / f"{number}.json", [GROWN] if number == 39 else ROWS[:1])
    source = LogFiles.discover(tmp_path)
    assert source.schema.names == ["ts", "payload", "new"]
    assert read_all(source)[1] == []


def test_lines_of_keys_are_counted_over_blank_lines_and_blocks(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    blank = "\n" * 450
    known = json.dumps({"ts": 1}) + "\n"
    (tmp_path / "1.json").write_text(known * 40 + blank + '{"neu": 1}\n' + known * 40)
    _, (warning,) = read_all(LogFiles.discover(tmp_path))
    assert "'neu' (1 times, first in line 491)" in warning


def test_keys_within_a_column_of_a_given_type_are_not_looked_at(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    write_lines(tmp_path / "1.json", [*ROWS, {"ts": 1, "payload": {"size": 1}}, *ROWS])
    types = {"payload": pa.struct({"id": pa.int64()})}
    table, warnings = read_all(LogFiles.discover(tmp_path, format_options={"column_types": types}))
    assert warnings == []
    assert table.schema.field("payload").type == types["payload"]


def test_keys_with_names_of_partitions_are_known(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    (tmp_path / "day=1").mkdir()
    write_lines(tmp_path / "day=1" / "1.json", [*ROWS, {"ts": 1, "day": 7}, *ROWS])
    assert read_all(LogFiles.discover(tmp_path))[1] == []


def test_very_many_keys_are_reported_shortly(tmp_path, monkeypatch):
    monkeypatch.setattr("flinkcore.log.formats.text_formats._BLOCK_BYTES", 20_000)
    monkeypatch.setattr("flinkcore.log.formats.text_formats._SAMPLED_BYTES", 100)
    grown = {"ts": 1, "payload": {f"key{n}": n for n in range(3000)}}
    write_lines(tmp_path / "1.json", [*1000 * ROWS, grown, grown, *ROWS])
    _, (warning,) = read_all(LogFiles.discover(tmp_path))
    assert "'payload.key4' (2 times, first in line 20001), and 5,990 times others" in warning
    assert "'payload.key5'" not in warning
    assert "'payload': type with 'payload.key0', 'payload.key1'" in warning
    assert len(warning) < 1000


def test_a_replay_reports_the_keys_that_it_leaves_out(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    write_lines(tmp_path / "1.json", [*ROWS, GROWN, *ROWS])
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    log = env.from_event_log(str(tmp_path), timestamp="ts")
    stream = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    result = stream.execute()
    with pytest.warns(UserWarning, match=r"'payload\.size' \(1 times, first in line 21\)"):
        result.to_arrow()
    assert any("'payload.size'" in warning for warning in result.report.warnings)


def _avro(table, path):
    kinds = {"ts": "long", "new": "long"}
    fields = [{"name": name, "type": kinds[name]} for name in table.column_names]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "event", "fields": fields}, table.to_pylist())


def _ipc(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "parquet": lambda table, path: pq.write_table(table, path),
    "csv": lambda table, path: pacsv.write_csv(table, str(path)),
    "arrow": _ipc,
    "avro": _avro,
}


@pytest.mark.parametrize("name", list(WRITERS))
def test_columns_that_only_a_later_file_has_are_reported(tmp_path, name):
    WRITERS[name](pa.table({"ts": [1]}), tmp_path / f"1.{name}")
    WRITERS[name](pa.table({"ts": [2], "new": [3]}), tmp_path / f"2.{name}")
    table, (warning,) = read_all(LogFiles.discover(tmp_path))
    assert table.to_pydict() == {"ts": [1, 2]}
    assert re.search(
        rf"2\.{name} has columns that the log's first file does not have, .*: 'new'\. If", warning
    )


def test_a_parquet_struct_that_grows_is_refused_by_file_and_column(tmp_path):
    pq.write_table(pa.table({"payload": [{"a": 1}]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"payload": [{"a": 1, "b": 2}]}), tmp_path / "2.parquet")
    message = (
        r"column 'payload' is struct<a: int64> in .*1\.parquet but struct<a: int64, b: int64> in .*2\.parquet; "
        "write the files again with one type, or replay them as separate logs"
    )
    with pytest.raises(SchemaError, match=message):
        read_all(LogFiles.discover(tmp_path))


def test_types_are_united_by_the_names_of_their_fields():
    known = pa.struct({"a": pa.int64(), "b": pa.null(), "c": pa.list_(pa.struct({"x": pa.int64()}))})
    found = pa.struct(
        {"b": pa.string(), "c": pa.list_(pa.struct({"y": pa.null()})), "a": pa.float64(), "d": pa.bool_()}
    )
    assert unified_type(known, found) == pa.struct(
        {
            "a": pa.int64(),  # where two contradict each other, the first stays
            "b": pa.string(),
            "c": pa.list_(pa.struct({"x": pa.int64(), "y": pa.null()})),
            "d": pa.bool_(),
        }
    )
    assert unified_type(pa.list_(pa.null()), pa.list_(pa.int64())) == pa.list_(pa.int64())
