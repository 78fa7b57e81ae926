"""Values of Flink's serializer of Avro become structs, lists and maps by their schema, and are written again."""

import datetime as dt
import json
import struct
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from equipment.rewritten_savepoints import rewrite
from equipment.written_savepoints import LONG, i32, i64, state, string, utf, write_savepoint

from flinkcore import savepoints
from flinkcore._internal.io.avro_files import parsed_schema
from flinkcore._internal.io.avro_types import AvroTypes
from flinkcore._internal.values.row import Row
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.state_columns import EntryError
from flinkcore.checkpoint.value_encoding import encode
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.restoring.python_values import obstacle, python_values
from flinkcore.savepoints.serializers.avro import (
    AVRO_CLASS,
    AVRO_CLASS_OF_1_6,
    GENERIC_RECORD,
    AvroSerializer,
)
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.serializers.snapshots import read_serializer
from flinkcore.savepoints.serializers.written_snapshots import write_serializer
from flinkcore.savepoints.writing.java_values import arrow_type, java_values

GOLDEN = Path(__file__).parents[2] / "golden" / "savepoints" / "avro"
SAVEPOINT = GOLDEN / "savepoint"
POINT = {
    "type": "record",
    "name": "Point",
    "namespace": "acme",
    "fields": [{"name": "x", "type": "int"}, {"name": "label", "type": ["null", "string"]}],
}
MOST = 1 << 20


def typed(schema: Any) -> AvroSerializer:
    return AvroSerializer(GENERIC_RECORD, json.dumps(schema))


def read(schema: Any, data: bytes, exact: bool = False) -> Any:
    column = typed(schema).column(exact)
    assert column.read_value(data, 0, MOST) == len(data)
    array = pa.array(column.array())
    array.validate(full=True)
    return array.to_pylist()[0]


def bytes_of(serializer: StateSerializer, value: Any) -> bytes:
    column = serializer.column(False)
    values = pa.array([value], arrow_type(serializer))
    batch = RecordBatch(pa.record_batch([values], ["value"]), any_type=True)
    column.bind_batch(batch, 0)
    return column.write_value(0)


def snapshot(serializer: AvroSerializer) -> bytes:
    writer = ByteWriter()
    write_serializer(writer, serializer)
    return writer.data()


def test_records_that_flink_wrote_are_those_of_a_file_of_avro() -> None:
    with (GOLDEN / "records.avro").open("rb") as file:
        reader = fastavro.reader(file)
        schema = parsed_schema(reader.writer_schema)
        types = AvroTypes(schema)
        convert = types.to_arrow(schema)
        assert convert is not None
        records = [convert(record) for record in reader]
    expected = pa.array(records, pa.struct(list(types.arrow_schema()))).to_pylist()
    states = savepoints.open(SAVEPOINT).operator("keep").states
    last = {row["key"]: row["value"] for row in states["value"].to_arrow().to_pylist()}
    assert last == {key: expected[15 + key] for key in range(5)}
    lists = {row["key"]: row["value"] for row in states["list"].to_arrow().to_pylist()}
    assert lists == {key: expected[key::5] for key in range(5)}
    maps = {row["map_key"]: row["value"] for row in states["map"].to_arrow().to_pylist()}
    assert maps == {f"m{number}": record for number, record in enumerate(expected)}


def test_records_that_flink_wrote_are_written_with_the_same_bytes(tmp_path: Path) -> None:
    rewrite(savepoints.open(SAVEPOINT, exact=True), tmp_path / "again")
    first, again = (savepoints.open(path).operator("keep") for path in (SAVEPOINT, tmp_path / "again"))
    assert first.states.keys() == again.states.keys()
    for name in first.states:
        ours, theirs = (each.state(name) for each in (again, first))
        assert ours.types == theirs.types
        assert sorted(map(str, ours.to_arrow().to_pylist())) == sorted(
            map(str, theirs.to_arrow().to_pylist())
        )
    serializer = first.state("value").types["value"]
    metadata = (SAVEPOINT / "_metadata").read_bytes()
    for row in first.state("value").to_arrow()["value"].to_pylist():
        assert bytes_of(serializer, row) in metadata


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (AVRO_CLASS, i32(1) + utf(json.dumps(POINT))),
        (AVRO_CLASS_OF_1_6, i32(1) + utf(json.dumps(POINT))),
        (AVRO_CLASS, i32(2) + utf("acme.Point") + utf(json.dumps(POINT))),
        (AVRO_CLASS, i32(3) + string("acme.Point") + string(json.dumps(POINT))),
    ],
)
def test_snapshots_of_every_version_are_read(name: str, content: bytes) -> None:
    found = read_serializer(ByteReader(utf(name) + content, "file"))
    assert isinstance(found, AvroSerializer)
    assert (found.name, json.loads(found.schema)) == ("Avro<acme.Point>", POINT)
    assert found.unknown is None


@pytest.mark.parametrize("doc", ["short", "é" * 40_000])
def test_a_schema_of_any_length_is_written(doc: str) -> None:
    serializer = AvroSerializer("acme.Point", json.dumps({**POINT, "doc": doc}, ensure_ascii=False))
    data = snapshot(serializer)
    assert read_serializer(ByteReader(data, "file")) == serializer
    version = data[len(utf(AVRO_CLASS)) :][:4]
    assert version == i32(2 if doc == "short" else 3)


def test_a_type_within_itself_stays_bytes(tmp_path: Path) -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "left", "type": ["null", "Tree"]}],
    }
    avro = utf(AVRO_CLASS) + i32(2) + utf(GENERIC_RECORD) + utf(json.dumps(tree))
    states = [state("tree", "VALUE", avro), state("count", "VALUE", LONG)]
    value = i32(1) + i32(0)
    key = b"\x03" + string("a") + b"\0"
    folder = write_savepoint(tmp_path / "s", states, {3: [(0, key, value), (1, key, i64(7))]})
    operator = savepoints.open(folder).operator("op")
    assert operator.state("tree").to_arrow()["value"].to_pylist() == [value]
    assert "Avro<Tree>" in (operator.state("tree").undecodable or "")
    assert "itself" in (operator.state("tree").undecodable or "")
    assert operator.state("count").to_arrow()["value"].to_pylist() == [7]
    with pytest.raises(ConfigurationError, match="itself"):
        savepoints.avro(tree)


def test_unions_of_several_types_are_structs_by_branch() -> None:
    # Two records, which only their numbers tell apart.
    union = [
        {"type": "record", "name": name, "fields": [{"name": "v", "type": "int"}]} for name in ("A", "B")
    ]
    schema = [union[0], "null", union[1]]
    assert read(schema, i32(0) + i32(5)) == {"member0": {"v": 5}, "member1": None}
    assert read(schema, i32(1)) is None
    assert read(schema, i32(2) + i32(6)) == {"member0": None, "member1": {"v": 6}}


def test_lists_may_have_several_blocks() -> None:
    schema = {"type": "array", "items": "int"}
    assert read(schema, b"\x01" + i32(1) + b"\x02" + i32(2) + i32(3) + b"\0") == [1, 2, 3]
    entry = i32(1) + b"k" + i32(9)
    maps = {"type": "map", "values": "int"}
    assert read(maps, b"\x01" + entry + b"\x01" + entry.replace(b"k", b"l") + b"\0") == [("k", 9), ("l", 9)]


def test_a_text_that_is_not_utf_8_is_read_exactly() -> None:
    data = i32(1) + b"\xff"
    with pytest.raises(EntryError, match="not UTF-8"):
        read("string", data)
    assert read("string", data, exact=True) == b"\xff"


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"type": "int", "logicalType": "time-millis"}, i32(86_400_000)),
        ({"type": "int", "logicalType": "time-millis"}, i32(-1)),
        ({"type": "long", "logicalType": "time-micros"}, i64(86_400_000_000)),
        ({"type": "long", "logicalType": "time-micros"}, i64(-1)),
    ],
)
def test_a_time_that_no_day_has_is_read_exactly(schema: Any, data: bytes) -> None:
    with pytest.raises(EntryError, match="not within a day"):
        read(schema, data)
    assert read(schema, data, exact=True) == int.from_bytes(data, "big", signed=True)


@pytest.mark.parametrize("precision", [5, 18, 19, 38, 39, 76])
def test_decimals_have_up_to_as_many_digits_as_their_type(precision: int) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}
    most = 10**precision - 1
    for number in (0, 1, -1, 127, 128, -128, -129, most, -most):
        data = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
        assert int(str(read(schema, i32(len(data)) + data)).replace(".", "")) == number
        padded = (b"\xff" if number < 0 else b"\0") * 3 + data
        assert int(str(read(schema, i32(len(padded)) + padded)).replace(".", "")) == number
    for number in (most + 1, -most - 1):
        data = number.to_bytes(40, "big", signed=True)
        with pytest.raises(EntryError, match="more digits"):
            read(schema, i32(40) + data)


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (["null", "int"], i32(2) + i32(1)),
        (["null", "int"], i32(-1)),
        (["int"], i32(1)),
        (["int", "null", "string"], i32(3)),
        (["int", "string"], i32(-1)),
        ({"type": "array", "items": "int"}, b"\x7f" + i32(1)),
        ({"type": "array", "items": "int"}, b"\xff\xff\xff\xff\xff\xff"),
        ({"type": "array", "items": "int"}, b"\x01" + i32(1)),
        ({"type": "map", "values": "int"}, b"\x7f" + i32(1)),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, i32(1)),
        ({"type": "fixed", "name": "F", "size": 4}, b"abc"),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, b"abc"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, i32(0)),
        ("bytes", i32(-1)),
        ("string", i32(5) + b"a"),
    ],
)
def test_damaged_values_are_errors(schema: Any, data: bytes) -> None:
    with pytest.raises(EntryError) as caught:
        typed(schema).column(False).read_value(data, 0, MOST)
    assert caught.value.is_damage


def test_the_values_of_an_entry_are_bounded() -> None:
    schema = {"type": "array", "items": ["null", "int"]}
    with pytest.raises(EntryError, match="max_values_per_entry"):
        typed(schema).column(False).read_value(b"\x04" + i32(0) * 4 + b"\0", 0, 3)


def test_rows_are_written_as_records_and_read_as_rows() -> None:
    schema = {
        **POINT,
        "fields": [
            *POINT["fields"],
            {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
            {"name": "parent", "type": ["null", {**POINT, "name": "Parent"}]},
            {"name": "any", "type": ["null", "string", "double"]},
            {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}},
        ],
    }
    serializer = savepoints.avro(schema, "acme.Point")
    assert obstacle(serializer) is None
    identifier = "0f8fad5b-d9cb-469f-a165-70867728950e"
    row = Row(x=1, label=None, tags={"a": ["b", "c"]}, parent=Row(x=2, label="p"), any=0.5, id=identifier)
    array, shape = encode([row], "rows")
    column = java_values(array, shape, serializer)
    (found,) = python_values(column, serializer)
    assert found.as_dict()["tags"] == {"a": ["b", "c"]}
    assert found.as_dict()["parent"] == {"x": 2, "label": "p"}
    assert found.as_dict()["any"] == 0.5
    again = java_values(*encode([found], "rows"), serializer)
    assert again.equals(column)
    assert found.as_dict()["id"] == identifier
    assert python_values(column, serializer, ["label", "x"]) == [Row(label=None, x=1)]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"lable": "a"}, "it has no field 'lable'; its fields are"),
        ({"parents": [{"x": 1, "y": 2}]}, "it has no field 'y'"),
        (
            {"at": dt.datetime(2026, 1, 2, 3, 4, 5, 6)},
            "05.000006 has microseconds, and its type milliseconds",
        ),
        ({"times": {"a": dt.time(3, 4, 5, 6)}}, "05.000006 has microseconds"),
        ({"day": dt.datetime(2026, 1, 2, 3)}, "has a time of day, and its type none"),
    ],
)
def test_what_a_schema_has_no_place_for_is_refused(changed: dict[str, Any], reason: str) -> None:
    of_time = {"type": "int", "logicalType": "time-millis"}
    types = {
        "label": "string",
        "parents": {"type": "array", "items": {**POINT, "name": "Parent"}},
        "at": {"type": "long", "logicalType": "timestamp-millis"},
        "times": {"type": "map", "values": ["null", of_time]},
        "day": {"type": "int", "logicalType": "date"},
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in types.items()]}
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 6000)
    kept = {
        "label": "a",
        "parents": [{"x": 1, "label": None}],
        "at": at,
        "times": {"a": dt.time(3, 4, 5, 6000)},
    }
    kept["day"] = dt.date(2026, 1, 2)
    serializer = savepoints.avro(schema, "acme.R")
    assert len(java_values(*encode([Row(**kept)], "rows"), serializer)) == 1
    with pytest.raises(DataError, match=reason):
        java_values(*encode([Row(**{**kept, **changed})], "rows"), serializer)


def test_a_union_whose_values_python_cannot_tell_apart_is_an_obstacle() -> None:
    records = [{"type": "record", "name": each, "fields": [{"name": "v", "type": "int"}]} for each in "AB"]
    assert "cannot be told apart" in (obstacle(typed(records)) or "")
    assert obstacle(typed(["int", "string"])) is None


def test_a_value_that_a_union_does_not_have_cannot_be_written() -> None:
    serializer = typed(["int", "string"])
    with pytest.raises(ValueError, match="several types"):
        bytes_of(serializer, {"member0": 1, "member1": "a"})
    with pytest.raises(ValueError, match="is null"):
        bytes_of(serializer, {"member0": None, "member1": None})


def test_what_is_not_a_schema_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not a schema"):
        savepoints.avro("{")
    with pytest.raises(ConfigurationError):
        savepoints.avro({"type": "unheard of"})


def test_numbers_are_big_endian_and_of_a_fixed_size() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": name} for name in ("int", "long", "float", "double", "boolean")],
    }
    data = struct.pack(">iqfd?", -2, 1 << 40, 0.5, -0.25, True)
    assert list(read(schema, data).values()) == [-2, 1 << 40, 0.5, -0.25, True]
