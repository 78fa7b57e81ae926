"""Logs whose later lines and files have keys and columns that the first ones lack: read, or reported."""

import gzip
import json
import re
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from flinkcore._internal.arrow.unified_types import unified_type
from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import ConfigurationError, DataError, SchemaError
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
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", 200)
    monkeypatch.setattr("flinkcore.log.formats.text_formats.SAMPLED_BYTES", 100)


def schema_of(warning):
    """The schema that a warning advises."""
    return eval(re.search(r"schema=(\{.*\})$", warning)[1], {"pyarrow": pa})


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
    table, warnings = read_all(LogFiles.discover(tmp_path, schema=schema_of(warning)))
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
    table, warnings = read_all(LogFiles.discover(tmp_path, schema=types))
    assert warnings == []
    assert table.schema.field("payload").type == types["payload"]


def test_keys_with_names_of_partitions_are_known(tmp_path, monkeypatch):
    small_blocks(monkeypatch)
    (tmp_path / "day=1").mkdir()
    write_lines(tmp_path / "day=1" / "1.json", [*ROWS, {"ts": 1, "day": 7}, *ROWS])
    assert read_all(LogFiles.discover(tmp_path))[1] == []


def test_very_many_keys_are_reported_shortly(tmp_path, monkeypatch):
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", 20_000)
    monkeypatch.setattr("flinkcore.log.formats.text_formats.SAMPLED_BYTES", 100)
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
    kinds = {"ts": "long", "new": "long", "old": "long"}
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
def test_a_column_that_only_a_later_file_has_is_null_elsewhere(tmp_path, name):
    WRITERS[name](pa.table({"ts": [1]}), tmp_path / f"1.{name}")
    WRITERS[name](pa.table({"new": [3], "ts": [2]}), tmp_path / f"2.{name}")
    source = LogFiles.discover(tmp_path)
    assert read_all(source) == (pa.table({"ts": [1, 2], "new": [None, 3]}), [])
    assert read_all(source, ["new"]) == (pa.table({"new": [None, 3]}), [])
    assert source.log_schema.changes == (
        f"column 'new' is null in 1 of 2 files that lack it, such as {tmp_path}/1.{name}",
    )


@pytest.mark.parametrize("name", list(WRITERS))
def test_a_column_that_only_earlier_files_have_is_null_later(tmp_path, name):
    WRITERS[name](pa.table({"ts": [1], "old": [3]}), tmp_path / f"1.{name}")
    WRITERS[name](pa.table({"ts": [2]}), tmp_path / f"2.{name}")
    assert read_all(LogFiles.discover(tmp_path))[0].to_pydict() == {"ts": [1, 2], "old": [3, None]}


@pytest.mark.parametrize("name", list(WRITERS))
def test_a_column_of_files_that_are_not_looked_at_is_reported_with_what_reads_it(tmp_path, name, monkeypatch):
    monkeypatch.setattr("flinkcore.log.sources.log_sources._MOST_LOOKED_AT", {False: 2, True: 2})
    for number in range(1, 4):
        table = pa.table({"ts": [number], "new": [7]} if number == 2 else {"ts": [number]})
        WRITERS[name](table, tmp_path / f"{number}.{name}")
    table, (warning,) = read_all(LogFiles.discover(tmp_path))
    assert table.to_pydict() == {"ts": [1, 2, 3]}
    assert warning == (
        f"{tmp_path}/2.{name} has columns that the log does not have, so they are left out: 'new'. "
        "To read them, name them with their types in schema="
    )
    given = LogFiles.discover(tmp_path, schema={"new": "int64"})
    assert read_all(given) == (pa.table({"ts": [1, 2, 3], "new": [None, 7, None]}), [])


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_fields_of_structs_and_lists_that_files_lack_are_null(tmp_path, name):
    rows = [
        {"payload": {"a": 1, "items": [{"x": 1}]}},
        {"payload": {"b": 2, "items": [{"y": "z"}, None], "a": 5}},
        {"payload": None},
    ]
    kinds = [
        pa.struct({"a": pa.int32(), "items": pa.list_(pa.struct({"x": pa.int8()}))}),
        pa.struct({"b": pa.int64(), "items": pa.list_(pa.struct({"y": pa.string()})), "a": pa.int64()}),
        pa.struct({"b": pa.int32()}),
    ]
    for number, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        table = pa.Table.from_pylist([row], pa.schema({"payload": kind}))
        WRITERS[name](table, tmp_path / f"{number}.{name}")
    table, warnings = read_all(LogFiles.discover(tmp_path))
    assert warnings == []
    assert table.schema.field("payload").type == pa.struct(
        {
            "a": pa.int64(),
            "items": pa.list_(pa.struct({"x": pa.int8(), "y": pa.string()})),
            "b": pa.int64(),
        }
    )
    assert table["payload"].to_pylist() == [
        {"a": 1, "items": [{"x": 1, "y": None}], "b": None},
        {"a": 5, "items": [{"x": None, "y": "z"}, None], "b": 2},
        None,
    ]


def test_fields_of_structs_in_files_that_are_not_looked_at_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("flinkcore.log.sources.log_sources._MOST_LOOKED_AT", {False: 2, True: 2})
    for number in range(1, 4):
        items = [{"x": 1, "y": 2}] if number == 2 else [{"x": 1}]
        pq.write_table(pa.table({"p": [{"items": items}]}), tmp_path / f"{number}.parquet")
    _, (warning,) = read_all(LogFiles.discover(tmp_path))
    assert "2.parquet has columns that the log does not have, so they are left out: 'p.items[].y'." in warning


ANY_TYPES = [
    (pa.int32(), [1], pa.int64(), [2**40], pa.int64()),
    (pa.int64(), [2**53], pa.float64(), [0.5], pa.float64()),
    (pa.float32(), [0.25], pa.int16(), [3], pa.float64()),
    (pa.uint32(), [2**32 - 1], pa.int8(), [-1], pa.int64()),
    (pa.uint64(), [2**64 - 1], pa.int64(), [5], pa.uint64()),
    (
        pa.decimal128(5, 2),
        [Decimal("123.45")],
        pa.decimal128(6, 4),
        [Decimal("12.3456")],
        pa.decimal128(7, 4),
    ),
    (pa.decimal128(5, 2), [Decimal("123.45")], pa.int64(), [2**63 - 1], pa.decimal128(21, 2)),
    (pa.timestamp("s"), [5], pa.timestamp("us"), [6], pa.timestamp("us")),
    (pa.timestamp("ms", "UTC"), [5], pa.timestamp("ms", "Europe/Berlin"), [6], pa.timestamp("ms", "UTC")),
    (pa.date32(), [1], pa.timestamp("ms"), [6], pa.timestamp("ms")),
    (pa.time32("s"), [1], pa.time64("us"), [6], pa.time64("us")),
    (pa.duration("s"), [1], pa.duration("ms"), [6], pa.duration("ms")),
    (pa.binary(2), [b"ab"], pa.binary(), [b"c"], pa.binary()),
    (pa.null(), [None], pa.string(), ["x"], pa.string()),
]


@pytest.mark.parametrize(("one", "ones", "other", "others", "both"), ANY_TYPES)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_column_has_the_type_that_holds_the_values_of_all_files(
    tmp_path, one, ones, other, others, both, is_reversed
):
    columns = [pa.array(ones, one), pa.array(others, other)]
    if is_reversed:
        columns.reverse()
    for number, column in enumerate(columns):
        _ipc(pa.table({"a": column}), tmp_path / f"{number}.arrow")
    source = LogFiles.discover(tmp_path)
    table, _ = read_all(source)
    assert table.schema.field("a").type == both
    assert table["a"].to_pylist() == [column.cast(both)[0].as_py() for column in columns]
    assert pa.types.is_null(one) or source.log_schema.changes == (
        f"column 'a' is {both}, which holds the values of all files: {columns[0].type} in {tmp_path}/0.arrow, "
        f"{columns[1].type} in {tmp_path}/1.arrow",
    )


@pytest.mark.parametrize(
    ("one", "other", "value", "kind"),
    [(pa.int64(), pa.float64(), 2**53 + 1, "double"), (pa.int64(), pa.uint64(), -1, "uint64")],
)
def test_a_value_that_the_type_of_all_files_does_not_hold_is_an_error_that_names_the_row(
    tmp_path, one, other, value, kind
):
    pq.write_table(pa.table({"a": pa.array([1, 2, value, 4], one)}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([1], other)}), tmp_path / "2.parquet")
    with pytest.raises(DataError) as failure:
        read_all(LogFiles.discover(tmp_path))
    assert str(failure.value) == (
        f"row 2 (from 0) of {tmp_path}/1.parquet has {value} in column 'a', which is int64 there. {kind}, the type of "
        "the column in the log, does not hold it exactly. Give a type that holds all values, such as "
        "schema={'a': 'string'}"
    )
    given = LogFiles.discover(tmp_path, schema={"a": "string"})
    assert read_all(given)[0]["a"].to_pylist()[2] == str(value)


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_types_that_contradict_each_other_are_an_error_that_names_both_files(tmp_path, name):
    WRITERS[name](pa.table({"p": [{"a": 1}]}), tmp_path / f"1.{name}")
    WRITERS[name](pa.table({"p": [{"a": "x"}]}), tmp_path / f"2.{name}")
    with pytest.raises(SchemaError) as failure:
        read_all(LogFiles.discover(tmp_path))
    assert str(failure.value) == (
        f"column 'p' is struct<a: int64> in {tmp_path}/1.{name} but struct<a: string> in {tmp_path}/2.{name}. Give the "
        "type to read it with, such as schema={'p': 'string'}, or replay the files as separate logs"
    )
    kind = pa.struct({"a": pa.string()})
    assert read_all(LogFiles.discover(tmp_path, schema={"p": kind}))[0]["p"].to_pylist() == [
        {"a": "1"},
        {"a": "x"},
    ]


def test_a_column_of_csv_with_numbers_and_text_is_text(tmp_path):
    (tmp_path / "1.csv").write_text("ts,zip\n1,01234\n")
    (tmp_path / "2.csv").write_text("ts,zip\n2,K1A 0B1\n")
    assert read_all(LogFiles.discover(tmp_path))[0]["zip"].to_pylist() == ["01234", "K1A 0B1"]


@pytest.mark.parametrize("name", list(WRITERS))
@pytest.mark.parametrize(
    "schema", ["ts STRING, other DOUBLE", pa.schema({"ts": pa.string(), "other": pa.float64()})]
)
def test_a_schema_that_is_given_has_all_columns_of_the_log(tmp_path, name, schema):
    WRITERS[name](pa.table({"ts": [1], "new": [3]}), tmp_path / f"1.{name}")
    WRITERS[name](pa.table({"ts": [2]}), tmp_path / f"2.{name}")
    table, warnings = read_all(LogFiles.discover(tmp_path, schema=schema))
    assert table == pa.table({"ts": ["1", "2"], "other": pa.nulls(2, pa.float64())})
    assert warnings == []


def test_a_type_that_is_never_that_of_a_file_is_an_error(tmp_path):
    pq.write_table(pa.table({"a": [[1]]}), tmp_path / "1.parquet")
    with pytest.raises(
        SchemaError, match=r"'a' is list<.*> in .*1\.parquet, which is never the int64 of schema="
    ):
        read_all(LogFiles.discover(tmp_path, schema={"a": "int64"}))


def test_a_type_of_a_column_of_directories_is_refused_unless_it_is_theirs(tmp_path):
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "day=1" / "1.parquet")
    assert read_all(LogFiles.discover(tmp_path, schema="day BIGINT, a INT"))[0].to_pydict() == {
        "a": [1],
        "day": [1],
    }
    with pytest.raises(ConfigurationError, match=r"has string as the type of 'day', a column of directories"):
        LogFiles.discover(tmp_path, schema={"day": "string"}).schema  # noqa: B018


@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_a_file_without_the_timestamp_is_named(tmp_path, name):
    WRITERS[name](pa.table({"ts": [1]}), tmp_path / f"1.{name}")
    WRITERS[name](pa.table({"time": [2]}), tmp_path / f"2.{name}")
    env = StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(str(tmp_path), timestamp="ts")
    stream = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    with pytest.raises(
        DataError, match=rf"2\.{name}: null timestamp: the file lacks column 'ts', which other"
    ):
        stream.to_arrow()


def test_a_null_key_of_a_file_without_the_column_names_it_and_the_value_to_give(tmp_path):
    pq.write_table(pa.table({"ts": [1], "geo": [{"country": "de"}]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"ts": [2]}), tmp_path / "2.parquet")
    env = StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(str(tmp_path), timestamp="ts")
    stream = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())

    def countries(stream, key):
        windows = stream.key_by(key).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        return sorted(windows.aggregate(n=count()).to_arrow()[key].to_pylist())

    with pytest.raises(DataError) as caught:
        countries(stream, "geo.country")
    assert "2.parquet: key column 'geo.country' is null at position " in str(caught.value)
    assert ": the file lacks column 'geo.country', which other files of the log have; " in str(caught.value)
    advice = "with_columns(country=pc.coalesce(pc.field('geo.country'), 'none'))"
    assert advice in str(caught.value)
    given = stream.with_columns(country=pc.coalesce(pc.field("geo.country"), "none"))
    assert countries(given, "country") == ["de", "none"]


def test_how_files_differ_is_explained_and_reported(tmp_path):
    pq.write_table(pa.table({"ts": [1], "a": pa.array([1], pa.int32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"ts": [2], "a": [2]}), tmp_path / "2.parquet")
    env = StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(str(tmp_path), timestamp="ts")
    stream = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    fact = (
        f"columns: column 'a' is int64, which holds the values of all files: int32 in {tmp_path}/1.parquet, "
    )
    assert fact in stream.explain()
    assert fact in str(stream.execute().report)


def test_types_are_united_by_the_names_of_their_fields():
    known = pa.struct({"a": pa.int64(), "b": pa.null(), "c": pa.list_(pa.struct({"x": pa.int64()}))})
    found = pa.struct(
        {"b": pa.string(), "c": pa.list_(pa.struct({"y": pa.null()})), "a": pa.float64(), "d": pa.bool_()}
    )
    assert unified_type(known, found) == pa.struct(
        {
            "a": pa.float64(),
            "b": pa.string(),
            "c": pa.list_(pa.struct({"x": pa.int64(), "y": pa.null()})),
            "d": pa.bool_(),
        }
    )
    assert unified_type(pa.list_(pa.null()), pa.list_(pa.int64())) == pa.list_(pa.int64())
    assert unified_type(pa.null(), pa.struct([])) == pa.struct([])
    assert unified_type(pa.int64(), pa.string()) == pa.int64()  # which contradict each other
