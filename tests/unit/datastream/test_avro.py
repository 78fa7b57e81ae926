"""Files and messages of Avro, in programs and as event logs."""

import datetime
import io
import json
import pickle
import random
import uuid
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import fastavro
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore._internal.io import avro_files
from flinkcore._internal.io.avro_files import AvroFile, raw_schema
from flinkcore.common import Configuration, Duration, Instant, Row, Time, Types, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, StreamFormat
from flinkcore.datastream.formats.avro import (
    AvroBulkWriters,
    AvroInputFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from flinkcore.datastream.formats.orc import OrcBulkWriters
from flinkcore.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from flinkcore.errors import (
    ConfigurationError,
    DataError,
    SchemaError,
    SourceError,
    UnsupportedOperationError,
)
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.table import DataTypes

UTC = datetime.timezone.utc


def logical(kind: str, name: str, /, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": each, "type": kind} for each, kind in fields.items()],
    }


DEFINITION = record(
    "Event",
    id="long",
    name=["null", "string"],
    color={"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]},
    other="Color",
    tags={"type": "array", "items": "string"},
    counts={"type": "map", "values": ["null", "int"]},
    place=record("Place", x="float", y=["double", "null"]),
    at=logical("long", "timestamp-millis"),
    local=logical("long", "local-timestamp-micros"),
    day=["null", logical("int", "date")],
    time=logical("int", "time-millis"),
    price=logical("bytes", "decimal", precision=9, scale=2),
    key=logical("string", "uuid"),
    hash={"type": "fixed", "name": "Hash", "size": 2},
    flag="boolean",
)
SCHEMA = AvroSchema.parse_string(json.dumps(DEFINITION))
FIRST = {
    "id": 1,
    "name": "ann",
    "color": "RED",
    "other": "BLUE",
    "tags": ["a", "b"],
    "counts": {"k": 1, "l": None},
    "place": {"x": 0.5, "y": None},
    "at": datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, UTC),
    "local": datetime.datetime(2020, 1, 2, 3, 4, 5, 678901),
    "day": datetime.date(2020, 1, 2),
    "time": datetime.time(3, 4, 5),
    "price": Decimal("1.50"),
    "key": uuid.UUID(int=5),
    "hash": b"\x00\x01",
    "flag": True,
}
# Local timestamps and UUIDs are given back as the library for Python gives them that PyFlink has.
READ = {"local": 1577934245678901, "key": str(uuid.UUID(int=5))}
RECORDS = [FIRST, FIRST | {"id": -2, "name": None, "tags": [], "counts": {}, "day": None, "flag": False}]
RECORDS_READ = [record | READ for record in RECORDS]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def container(records: list[Any], definition: Any = DEFINITION, **options: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(definition), records, **options)
    return stream.getvalue()


def written(env: StreamExecutionEnvironment, folder: Path, writers: Any, elements: list[Any]) -> Path:
    sink = FileSink.for_bulk_format(str(folder), writers)
    env.from_collection(elements, Types.PICKLED_BYTE_ARRAY()).map(lambda element: element).sink_to(
        sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    )
    env.execute()
    (path,) = folder.iterdir()
    return path


def read(env: StreamExecutionEnvironment, format: StreamFormat, path: Path) -> list[Any]:
    source = FileSource.for_record_stream_format(format, str(path)).build()
    return list(env.from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect())


# ---- files in programs


def test_records_that_were_written_are_read_again(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    path = written(env, tmp_path, AvroBulkWriters.for_generic_record(SCHEMA), RECORDS)
    assert list(env.create_input(AvroInputFormat(str(path), SCHEMA)).execute_and_collect()) == RECORDS_READ
    assert read(env, AvroInputFormat(str(path), SCHEMA), path) == RECORDS_READ
    again = written(env, tmp_path / "again", AvroBulkWriters.for_generic_record(SCHEMA), RECORDS_READ)
    assert read(env, AvroInputFormat(str(again), SCHEMA), again) == RECORDS_READ
    with path.open("rb") as file:
        assert list(fastavro.reader(file)) == RECORDS


def test_files_of_others_are_read_and_others_read_ours(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    frame = polars.DataFrame({"user": ["a", None, "c"], "n": [1, 2, 3], "x": [0.5, 1.5, None]})
    frame.write_avro(tmp_path / "in.avro", compression="deflate", name="r")
    wanted = AvroSchema(
        json.dumps(record("r", user=["null", "string"], n=["null", "long"], x=["null", "double"]))
    )
    found = list(env.create_input(AvroInputFormat(str(tmp_path / "in.avro"), wanted)).execute_and_collect())
    assert found == frame.to_dicts()
    path = written(env, tmp_path / "out", AvroBulkWriters.for_generic_record(wanted), found)
    assert polars.read_avro(path).to_dicts() == found


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_every_compression_is_read(codec: str) -> None:
    packed = container(RECORDS, codec="null" if codec in ("snappy", "zstandard") else codec)
    if codec in ("snappy", "zstandard"):
        packed = compressed_anew(packed, codec)
    opened = AvroFile(pa.BufferReader(packed))
    assert [record for block in opened.blocks() for record in block] == RECORDS


def compressed_anew(whole: bytes, codec: str) -> bytes:
    """A container of one block with a codec that the library lacks."""
    marker = whole[-16:]
    body = whole.index(marker) + 16
    payload = io.BytesIO(whole[body:-16])
    count, size = fastavro.schemaless_reader(payload, record("two", a="long", b="long"), None).values()
    data = payload.read()
    assert len(data) == size
    if codec == "snappy":
        data = pa.compress(data, "snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big")
    else:
        data = pa.compress(data, "zstd", asbytes=True)
    lengths = io.BytesIO()
    fastavro.schemaless_writer(lengths, record("two", a="long", b="long"), {"a": count, "b": len(data)})
    header = whole[:body].replace(b"\x08null", bytes([2 * len(codec)]) + codec.encode(), 1)
    return header + lengths.getvalue() + data + marker


def test_records_are_read_as_the_schema_that_is_asked_for(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    path = tmp_path / "a.avro"
    path.write_bytes(container([{"id": 1, "gone": "x"}], record("r", id="int", gone="string")))
    definition = record("r", id="double", new="int")
    definition["fields"][1]["default"] = 7
    wanted = AvroSchema(json.dumps(definition))
    assert read(env, AvroInputFormat(str(path), wanted), path) == [{"id": 1.0, "new": 7}]
    with pytest.raises(DataError, match=r"a\.avro does not have records of .*: a block cannot be decoded"):
        read(env, AvroInputFormat(str(path), SCHEMA), path)


@pytest.mark.parametrize(
    "element",
    [FIRST | {"id": "x"}, FIRST | {"id": 2**63}, {"id": 1}, FIRST | {"color": "PINK"}, 5, Row(1, 2)],
)
@pytest.mark.parametrize("make", [AvroBulkWriters, AvroParquetWriters])
def test_an_element_that_is_no_record_is_refused(
    env: StreamExecutionEnvironment, make: Any, element: Any, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="is not a record of"):
        written(env, tmp_path, make.for_generic_record(SCHEMA), [element])
    assert list(tmp_path.iterdir()) == []


def test_rows_with_names_are_records(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    schema = AvroSchema(json.dumps(record("r", a="int", inner=record("s", b="string"))))
    path = written(env, tmp_path, AvroBulkWriters.for_generic_record(schema), [Row(a=1, inner=Row(b="x"))])
    assert read(env, AvroInputFormat(str(path), schema), path) == [{"a": 1, "inner": {"b": "x"}}]


def test_the_type_of_records_knows_which_values_are_some() -> None:
    type_info = GenericRecordAvroTypeInfo(SCHEMA)
    conversion = type_info.conversion()
    assert conversion(FIRST) is FIRST
    assert type_info.accepts(FIRST)
    assert not type_info.accepts({"id": 1})
    with pytest.raises(DataError, match="is not a record of the schema"):
        conversion({"id": 1})
    assert type_info == GenericRecordAvroTypeInfo(pickle.loads(pickle.dumps(SCHEMA)))
    assert GenericRecordAvroTypeInfo(AvroSchema('"int"')).text({"a": "ü"}) == '{"a": "ü"}'


def test_a_schema_is_read_from_a_file_and_shown_as_json(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(json.dumps(DEFINITION, indent=4))
    assert str(AvroSchema.parse_file(str(tmp_path / "a.avsc"))) == json.dumps(
        DEFINITION, separators=(",", ":")
    )


def doubled(times: int) -> dict[str, Any]:
    """A type that has the one before it twice, which has the one before it twice, ..."""
    definition = record("R0", a="null")
    for number in range(1, times + 1):
        definition = record(f"R{number}", a=definition, b=f"R{number - 1}")
    return record("Top", n="int", r=definition)


def chained(length: int) -> dict[str, Any]:
    """A record of types side by side, each of which has the one before it."""
    types = {"t0": record("R0", a="int")}
    for number in range(1, length):
        types[f"t{number}"] = record(f"R{number}", a=f"R{number - 1}")
    return record("Top", **types)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("{", "is JSON, not"),
        ('{"type":"foo"}', "is not a schema of Avro"),
        ("5", "is not a schema of Avro"),
        ('{"type":"array"}', "is not a schema of Avro"),
        ('{"type":"enum","name":"e","symbols":5}', "is not a schema of Avro"),
        ('{"type":"fixed","name":"e","size":-1}', "the size of a fixed type"),
        *(
            (
                json.dumps(logical(kind, "decimal", name="d", size=4, **more)),
                f"the {message} of a decimal is|: decimal {message}",
            )  # type: ignore[arg-type]
            for kind in ("bytes", "fixed")
            for message, more in (
                ("precision", {}),
                ("precision", {"precision": "x"}),
                ("precision", {"precision": 0}),
                ("scale", {"precision": 4, "scale": 6}),
                ("scale", {"precision": 4, "scale": -1}),
                ("scale", {"precision": 4, "scale": None}),
            )
        ),
        ('{"type":"array","items":"null"}', "items of an array take no bytes"),
        (json.dumps({"type": "array", "items": record("e")}), "items of an array take no bytes"),
        (json.dumps(record("r", next=["null", "r"])), "a type has itself within it"),
        (json.dumps(doubled(30)), "written out, it has more than 16,384 types"),
        (json.dumps(chained(150)), "levels deep"),
        ('{"type":"array","items":' * 150 + '"int"' + "}" * 150, "levels deep"),
        ('{"type":"array","items":' * 100_000, "is JSON, not"),
    ],
)
def test_what_is_no_schema_or_may_fill_the_memory_is_refused(definition: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        AvroSchema(definition)


def test_schemas_of_many_types_are_taken() -> None:
    wide = record("r", **{f"c{number}": ["null", "double"] for number in range(5_000)})
    for definition in (wide, doubled(10), chained(80)):
        assert AvroSchema(json.dumps(definition)).types.arrow_schema().names


# ---- damaged files


def damaged_files() -> Iterator[bytes]:
    whole = container([FIRST] * 50, sync_interval=400)
    rng = random.Random(1)
    for _ in range(300):
        damaged = bytearray(whole[: rng.randrange(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randint(0, 3)):
            if damaged:
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        yield bytes(damaged)


def test_damaged_files_are_read_or_refused() -> None:
    refused = 0
    for damaged in damaged_files():
        try:
            for _ in AvroFile(pa.BufferReader(damaged)).blocks():
                pass
        except DataError:
            refused += 1
    assert refused > 150


def with_block(payload: bytes, count: int, size: int | None = None, codec: bytes = b"null") -> bytes:
    named = bytes([2 * len(codec)]) + codec
    header = b'Obj\x01\x04\x16avro.schema\x0a"int"\x14avro.codec' + named + b"\x00" + b"m" * 16
    lengths = io.BytesIO()
    values = {"a": count, "b": len(payload) if size is None else size}
    fastavro.schemaless_writer(lengths, record("two", a="long", b="long"), values)
    return header + lengths.getvalue() + payload + b"m" * 16


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "it ends within its header"),
        (b"PAR1" * 10, "does not begin as a file of Avro"),
        (b"Obj\x01\x00" + b"m" * 16, "no schema that can be read"),
        (b"Obj\x01" + b"\xff" * 20, "a number without an end"),
        (with_block(b"\x02", 1 << 40), "cannot have 1099511627776 records"),
        (with_block(b"\x02", -1), "cannot have -1 records"),
        (with_block(b"\x02", 1, 1 << 62), "a block claims to have 4611686018427387904 bytes"),
        (with_block(b"\x02", 1, 1 << 27), "it ends within a block"),
        (with_block(b"\x02\x02", 1, 1), "does not end with the file's marker"),
        (with_block(b"\x80", 1), "a block cannot be decoded"),
        (with_block(b"\x02", 2), "cannot have 2 records"),
        (with_block(b"\x80\x02", 2), "a block cannot be decoded"),
        *(
            (with_block(payload, 1), "a block has more than the 1 records|a block cannot be decoded")
            for payload in (b"\x02\x00", b"\x02\x02", b"\x02\x02\x04", b"\x02\x01", b"\x02\x01\x02\x02")
        ),
        (with_block(b"\x00", 0), "a block has more than the 0 records"),
        (with_block(b"\x02", 1, codec=b"gzip"), "it is compressed by b'gzip'"),
        (
            with_block(b"\x02", 1, codec=b"deflate"),
            "a block cannot be decompressed|compressed block is truncated",
        ),
        (with_block(b"\x02", 1, codec=b"snappy"), "a block claims to have"),
        (with_block(b"\x01\x00\x02\x00\x00\x00\x00", 1, codec=b"snappy"), "the checksum of a block is wrong"),
        (with_block(b"\x02", 1, codec=b"zstandard"), "a block cannot be decompressed"),
    ],
)
def test_forged_files_are_refused_with_their_reason(damaged: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(AvroFile(pa.BufferReader(damaged)).blocks())


def test_numbers_are_read_without_copies_of_what_follows() -> None:
    whole = container([{"a": number} for number in range(400)], record("r", a="int"), sync_interval=1)
    whole += bytes(avro_files._STEP_BYTES - len(whole))
    opened = AvroFile(pa.BufferReader(whole))
    blocks = opened.blocks()
    next(blocks)
    held = opened._held
    assert [records for records, _ in zip(blocks, range(300), strict=False)][-1] == [{"a": 300}]
    assert opened._held is held


def test_a_block_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_files, "_MOST_BLOCK_BYTES", 1 << 20)
    packed = zlib.compress(bytes(1 << 21))[2:-4]
    for codec, data in (
        (b"deflate", packed),
        (b"zstandard", pa.compress(bytes(1 << 21), "zstd", asbytes=True)),
    ):
        with pytest.raises(DataError, match="a block has more than 1,048,576 bytes"):
            list(AvroFile(pa.BufferReader(with_block(data, 1, codec=codec))).blocks())


# ---- event logs


def test_an_avro_file_is_an_event_log(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    definition = record("e", ts="long", user=["null", "string"])
    events = [{"ts": 1000 * n, "user": f"u{n % 3}"} for n in range(1000)]
    (tmp_path / "a.avro").write_bytes(container(events[:600], definition, sync_interval=500))
    (tmp_path / "b.avro").write_bytes(container(events[600:], definition, codec="deflate"))
    counts = (
        env.from_event_log(str(tmp_path / "*.avro"), timestamp="ts")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1_000))
        )
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.seconds(100)))
        .aggregate(n=count())
        .execute()
        .to_arrow()
    )
    assert sum(counts["n"].to_pylist()) == 1000
    assert counts.num_rows == 30


def log_of(path: Path) -> list[pa.RecordBatch]:
    return [batch for chunk in LogFiles.discover(path).chunks(2) for batch in chunk.read(None, 10)]


def test_columns_of_every_type_are_those_of_arrow(tmp_path: Path) -> None:
    (tmp_path / "a.avro").write_bytes(container(RECORDS))
    source = LogFiles.discover(tmp_path / "a.avro")
    (chunk,) = source.chunks(4)
    table = pa.Table.from_batches(chunk.read(None, 100))
    assert table.schema.names == list(FIRST)
    assert [table.schema.field(name).type for name in ("at", "local", "day", "price")] == [
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us"),
        pa.date32(),
        pa.decimal128(9, 2),
    ]
    expected = FIRST | {"key": str(FIRST["key"]), "counts": list(FIRST["counts"].items())}  # type: ignore[attr-defined]
    assert table.to_pylist()[0] == expected
    (few,) = LogFiles.discover(tmp_path / "a.avro").chunks(1)
    assert [batch.to_pydict() for batch in few.read(["flag", "id"], 10)] == [
        {"flag": [True, False], "id": [1, -2]}
    ]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"Obj\x01nothing", SourceError, r"a\.avro cannot be read: .*truncated, damaged or not Avro"),
        (container([{"a": None}], record("r", a=["null"])), SchemaError, "has one type beside null"),
        (container([1], "int"), SchemaError, "rows need a schema of records"),
        (
            container([{"a": "no uuid"}], record("r", a=logical("string", "uuid"))),
            SourceError,
            r"column 'a' of .*a\.avro has a value that is not string: badly formed",
        ),
    ],
    ids=["no schema", "a null type", "integers", "a UUID that is none"],
)
def test_a_log_that_cannot_be_read_is_an_error(
    content: bytes, error: type[Exception], message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.avro").write_bytes(content)
    with pytest.raises(error, match=message):
        log_of(tmp_path / "a.avro")


def with_schema(definition: Any) -> bytes:
    text = json.dumps(definition).encode()
    size = io.BytesIO()
    fastavro.schemaless_writer(size, "long", len(text))
    return b"Obj\x01\x02\x16avro.schema" + size.getvalue() + text + b"\x00" + b"m" * 16


def test_a_file_with_a_decimal_that_is_refused_is_named(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "a.avro").write_bytes(with_schema(record("r", a=logical("bytes", "decimal"))))
    with pytest.raises(SourceError, match=r"a\.avro cannot be read: .*the precision of a decimal is"):
        log_of(tmp_path / "a.avro")
    with pytest.raises(DataError, match=r"a\.avro does not have records .*the precision of a decimal is"):
        read(env, AvroInputFormat(str(tmp_path), AvroSchema('"int"')), tmp_path)
    (tmp_path / "a.avro").write_bytes(with_schema(record("r", a=logical("bytes", "decimal", precision=77))))
    with pytest.raises(
        SchemaError, match=r"a\.avro: field 'a': a decimal has up to 76 digits in Arrow, not 77"
    ):
        log_of(tmp_path / "a.avro")


LOGICAL_TYPES = {
    "date": (logical("int", "date"), pa.date32()),
    "time-millis": (logical("int", "time-millis"), pa.time32("ms")),
    "time-micros": (logical("long", "time-micros"), pa.time64("us")),
    "timestamp-millis": (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC")),
    "timestamp-micros": (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
    "timestamp-nanos": (logical("long", "timestamp-nanos"), pa.timestamp("ns", "UTC")),
    "local-timestamp-millis": (logical("long", "local-timestamp-millis"), pa.timestamp("ms")),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), pa.timestamp("us")),
    "local-timestamp-nanos": (logical("long", "local-timestamp-nanos"), pa.timestamp("ns")),
    "decimal": (logical("bytes", "decimal", precision=38, scale=3), pa.decimal128(38, 3)),
    "large decimal": (logical("bytes", "decimal", precision=76, scale=70), pa.decimal256(76, 70)),
    "fixed decimal": (
        {**logical("fixed", "decimal", precision=18, scale=0, size=8), "name": "Exact"},
        pa.decimal128(18, 0),
    ),
    "uuid": (logical("string", "uuid"), pa.string()),
    "fixed uuid": ({**logical("fixed", "uuid", size=16), "name": "Id"}, pa.string()),
    "duration": ({**logical("fixed", "duration", size=12), "name": "Span"}, pa.binary()),
    "unknown": (logical("long", "of-tomorrow"), pa.int64()),
    "timestamp on text": (logical("string", "timestamp-millis"), pa.string()),
}


def stored_values(kind: str) -> list[Any]:
    """Extreme values of a logical type as they are stored."""
    definition, arrow_type = LOGICAL_TYPES[kind]
    if kind.startswith("time-"):
        return [0, 1, 86_400_000 * (1 if kind == "time-millis" else 1000) - 1]
    if definition["type"] in ("int", "long"):
        bits = 31 if definition["type"] == "int" else 63
        return [0, 1, -1, 2**bits - 1, -(2**bits)]
    if "decimal" in kind:
        digits = [0, 1, -1, 10**arrow_type.precision - 1, 1 - 10**arrow_type.precision]
        size = definition.get("size", 33)
        return [number.to_bytes(size, "big", signed=True) for number in digits]
    if kind == "uuid":
        return [str(uuid.UUID(int=number)) for number in (0, 2**128 - 1)]
    if definition["type"] == "string":
        return ["", "x"]
    return [bytes(definition["size"]), b"\xff" * definition["size"]]


def expected_values(kind: str) -> list[Any]:
    """The same values as Arrow has them: times are numbers."""
    arrow_type = LOGICAL_TYPES[kind][1]
    stored = stored_values(kind)
    if pa.types.is_decimal(arrow_type):
        exact = 10**arrow_type.scale
        return [Fraction(int.from_bytes(value, "big", signed=True), exact) for value in stored]
    return [str(uuid.UUID(bytes=value)) for value in stored] if kind == "fixed uuid" else stored


def numbers_of(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values = column.to_pylist()
    if not pa.types.is_decimal(column.type):
        return values
    return [None if value is None else Fraction(value) for value in values]


def stored_container(records: list[Any], definition: Any) -> bytes:
    """A file whose values are stored without a look at their logical types."""
    block = io.BytesIO()
    for each in records:
        fastavro.schemaless_writer(block, fastavro.parse_schema(raw_schema(definition)), each)
    sizes = io.BytesIO()
    fastavro.schemaless_writer(sizes, "long", len(records))
    fastavro.schemaless_writer(sizes, "long", len(block.getvalue()))
    return with_schema(definition) + sizes.getvalue() + block.getvalue() + b"m" * 16


def in_forms(definition: Any, value: Any) -> Iterator[tuple[Any, Any, Callable[[Any], Any]]]:
    """A type within others: their definition, the stored value, and what finds it in the value that is read."""
    yield definition, value, lambda read: read
    yield ["null", definition], value, lambda read: read
    yield [{"type": "null"}, definition], value, lambda read: read
    yield [definition, {"type": "null"}], None, lambda read: read
    yield {"type": "array", "items": [{"type": "null"}, definition]}, [None, value], lambda read: read[1]
    yield {"type": "map", "values": definition}, {"k": value}, lambda read: dict(read)["k"]
    yield record("inner", x=definition), {"x": value}, lambda read: read["x"]


@pytest.mark.parametrize("kind", list(LOGICAL_TYPES))
def test_values_of_logical_types_are_those_that_are_stored(kind: str, tmp_path: Path) -> None:
    definition, arrow_type = LOGICAL_TYPES[kind]
    stored, path = stored_values(kind), tmp_path / "a.avro"
    for is_nullable in (False, True):
        written = record("r", ts="long", a=[{"type": "null"}, definition] if is_nullable else definition)
        values = [*stored, None] if is_nullable else stored
        path.write_bytes(stored_container([{"ts": 1, "a": value} for value in values], written))
        table = pa.Table.from_batches(log_of(path))
        assert table.schema.field("a").type == arrow_type
        assert numbers_of(table["a"]) == [*expected_values(kind), *([None] if is_nullable else [])]


@pytest.mark.parametrize("kind", [*LOGICAL_TYPES, "null"])
def test_logical_types_within_others_are_those_of_arrow(kind: str, tmp_path: Path) -> None:
    definition, arrow_type = LOGICAL_TYPES.get(kind, ({"type": "string"}, pa.string()))
    value = "x" if kind == "null" else stored_values(kind)[-1]
    for form, stored, find in in_forms(definition, value):
        (tmp_path / "a.avro").write_bytes(stored_container([{"a": stored}], record("r", a=form)))
        table = pa.Table.from_batches(log_of(tmp_path / "a.avro"))
        inner = table.schema.field("a").type
        assert (
            arrow_type == inner
            or arrow_type in [inner.field(at).type for at in range(inner.num_fields)]
            or (pa.types.is_map(inner) and inner.item_type == arrow_type)
        ), inner
        if stored is None:
            assert table["a"].to_pylist() == [None]
        elif not pa.types.is_temporal(arrow_type):  # Python has not all of these times
            found = find(table["a"].to_pylist()[0])
            assert (
                Fraction(found) == expected_values(kind)[-1]
                if "decimal" in kind
                else found
                in (
                    value,
                    str(uuid.UUID(int=2**128 - 1)),
                )
            )


def test_values_that_their_logical_type_does_not_hold_concern_only_jobs_that_read_them(
    tmp_path: Path,
) -> None:
    unreadable = {
        "small": (logical("bytes", "decimal", precision=2, scale=0), b"\x7f\xff"),
        "long": (logical("bytes", "decimal", precision=76, scale=0), b"\x7f" * 40),
        "uuid": (logical("string", "uuid"), "none"),
        "day": (logical("int", "time-millis"), 86_400_000),
        "time": (logical("long", "time-micros"), -1),
    }
    definition = record("r", ts="long", **{name: kind for name, (kind, _) in unreadable.items()})
    values = {name: value for name, (_, value) in unreadable.items()}
    (tmp_path / "a.avro").write_bytes(stored_container([{"ts": 1, **values}], definition))
    (chunk,) = LogFiles.discover(tmp_path).chunks(1)
    assert [batch.to_pydict() for batch in chunk.read(["ts"], 10)] == [{"ts": [1]}]
    for name in unreadable:
        with pytest.raises(SourceError, match=rf"column '{name}' of .*a\.avro has a value that is not .*: "):
            list(chunk.read([name], 10))


def test_types_may_be_written_in_their_long_forms(tmp_path: Path) -> None:
    definition = {
        "type": {
            "type": "record",
            "name": "a.b.Event",
            "fields": [
                {"name": "text", "type": {"type": {"type": "string", "avro.java.string": "String"}}},
                {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
                {"name": "same", "type": {"type": "a.b.Color"}},
                {"name": "near", "type": "Color"},
                {"name": "maybe", "type": {"type": [{"type": "null"}, {"type": "a.b.Color"}]}},
                {"name": "nothing", "type": {"type": "null"}},
                {"name": "none", "type": {"type": {"type": "null"}}},
            ],
        }
    }
    short = record(
        "r",
        text="string",
        color="int",
        same="int",
        near="int",
        maybe=["null", "int"],
        nothing="null",
        none="null",
    )
    values = {"text": "x", "color": 0, "same": 1, "near": 0, "maybe": 1, "nothing": None, "none": None}
    content = stored_container([values], short).replace(
        with_schema(raw_schema(short)), with_schema(definition)
    )
    (tmp_path / "a.avro").write_bytes(content)
    table = pa.Table.from_batches(log_of(tmp_path / "a.avro"))
    assert table.to_pylist() == [{**values, "color": "RED", "same": "BLUE", "near": "RED", "maybe": "BLUE"}]


def test_a_time_in_nanoseconds_opens_the_windows_of_its_day(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    day = 1_700_006_400
    for name in ("timestamp-nanos", "local-timestamp-nanos"):
        definition = record("r", ts=logical("long", name))
        (tmp_path / f"{name}.avro").write_bytes(stored_container([{"ts": day * 10**9 + 5}], definition))
        windows = (
            env.from_event_log(str(tmp_path / f"{name}.avro"), timestamp="ts")
            .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
            .key_by("ts")
            .window(TumblingEventTimeWindows.of(Time.days(1)))
        )
        starts = windows.aggregate(events=count()).execute().to_arrow()["window_start"]
        assert starts.cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist() == [day * 1000]


def test_columns_of_the_files_of_a_log_have_types_for_the_values_of_all(tmp_path: Path) -> None:
    (tmp_path / "a.avro").write_bytes(container([{"a": 1}], record("r", a="int")))
    (tmp_path / "b.avro").write_bytes(container([{"a": 2**40}], record("r", a="long")))
    assert pa.Table.from_batches(log_of(tmp_path)) == pa.table({"a": [1, 2**40]})
    (tmp_path / "b.avro").write_bytes(container([{"a": "x"}], record("r", a="string")))
    with pytest.raises(SchemaError, match=r"'a' is int32 in .*a\.avro but string in .*b\.avro"):
        log_of(tmp_path)


# ---- messages


def test_a_message_is_a_row_and_a_row_a_message() -> None:
    definition = json.dumps(DEFINITION)
    message = io.BytesIO()
    fastavro.schemaless_writer(message, fastavro.parse_schema(DEFINITION), FIRST)
    reader = AvroRowDeserializationSchema(avro_schema_string=definition)
    row = reader.deserialize(message.getvalue())
    assert row.as_dict(True) == FIRST | READ | {"at": datetime.datetime(2020, 1, 2, 3, 4, 5, 678000)}
    assert row.place == Row(x=0.5, y=None)
    writer = AvroRowSerializationSchema(avro_schema_string=definition)
    assert writer.serialize(row) == message.getvalue()
    assert pickle.loads(pickle.dumps(reader)).deserialize(message.getvalue()) == row
    assert pickle.loads(pickle.dumps(writer)).serialize(row) == message.getvalue()
    assert reader.get_produced_type().get_field_names() == list(FIRST)


def test_messages_that_are_none_of_the_schema_are_refused() -> None:
    schema = json.dumps(record("r", a="int", b="string"))
    with pytest.raises(DataError, match="is not a record of"):
        AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(b"\x02\x08ab")
    with pytest.raises(DataError, match="field 'a': 'x' is not of type Integer"):
        AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row("x", "y"))
    with pytest.raises(UnsupportedOperationError, match=r"is a class of Java\. Give its schema"):
        AvroRowDeserializationSchema("com.example.Event")
    with pytest.raises(ConfigurationError, match="needs avro_schema_string"):
        AvroRowSerializationSchema()


# ---- Parquet and ORC


def test_records_in_parquet_are_read_again(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    path = written(env, tmp_path, AvroParquetWriters.for_generic_record(SCHEMA), RECORDS)
    assert read(env, AvroParquetReaders.for_generic_record(SCHEMA), path) == RECORDS_READ
    assert pq.read_table(path).column("counts").to_pylist()[0] == [("k", 1), ("l", None)]


def test_values_of_unions_are_members_in_parquet_and_in_logs(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    inner = record("s", b="string")
    definition = record("r", u=["int", "null", "double", "string", inner])
    values = [1, 2.5, None, "x", {"b": "y"}]
    records = [{"u": value} for value in values]
    schema = AvroSchema(json.dumps(definition))
    path = written(env, tmp_path / "p", AvroParquetWriters.for_generic_record(schema), records)
    assert pq.read_table(path)["u"].to_pylist()[:2] == [
        {"member0": 1, "member1": None, "member2": None, "member3": None},
        {"member0": None, "member1": 2.5, "member2": None, "member3": None},
    ]
    assert read(env, AvroParquetReaders.for_generic_record(schema), path) == records
    (tmp_path / "a.avro").write_bytes(container(records, definition))
    (batch,) = log_of(tmp_path / "a.avro")
    assert batch.column(0).to_pylist() == pq.read_table(path)["u"].to_pylist()
    whole = AvroSchema(json.dumps(record("r", u=["double", "string"])))
    path = written(env, tmp_path / "q", AvroParquetWriters.for_generic_record(whole), [{"u": 3}])
    assert read(env, AvroParquetReaders.for_generic_record(whole), path) == [{"u": 3.0}]
    with pytest.raises(ConfigurationError, match="has one type beside null"):
        AvroRowDeserializationSchema(avro_schema_string=json.dumps(definition))


def union_of(*branches: Any) -> dict[str, Any]:
    return record("r", ts="long", s=record("inner", u=["null", *branches]))


@pytest.mark.parametrize(
    ("definition", "value", "message"),
    [
        (union_of(record("A", a="int"), record("B", b="string")), {"b": "x"}, "values of A and of B"),
        (union_of("float", "double"), 0.1, "values of float and of double"),
        (union_of("int", "long"), 2**40, "values of int and of long"),
        (
            union_of(logical("int", "date"), "string", logical("long", "timestamp-millis")),
            datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
            r"values of date \(int\) and of timestamp-millis \(long\)",
        ),
        (
            union_of({"type": "enum", "name": "E", "symbols": ["X"]}, "string"),
            "Y",
            "values of E and of string",
        ),
        (union_of("string", logical("string", "uuid")), "Y", "values of string and of .*string.*"),
        (union_of("bytes", {"type": "fixed", "name": "F", "size": 1}), b"x", "values of bytes and of F"),
        (
            union_of({"type": "map", "values": "int"}, record("A", a="int")),
            {"a": 1},
            "values of map and of A",
        ),
    ],
)
def test_unions_of_types_whose_values_cannot_be_told_apart_are_refused(
    definition: dict[str, Any], value: Any, message: str, tmp_path: Path
) -> None:
    message = (
        f"field 's': field 'u': the union of .* is not taken: {message} cannot be told apart; write a record"
    )
    schema = AvroSchema(json.dumps(definition))
    for make in (AvroParquetWriters, AvroParquetReaders):
        with pytest.raises(ConfigurationError, match=message):
            make.for_generic_record(schema)
    (tmp_path / "a.avro").write_bytes(container([{"ts": 1, "s": {"u": value}}], definition))
    with pytest.raises(SchemaError, match=f"a\\.avro: {message}"):
        log_of(tmp_path / "a.avro")


def test_values_of_unions_of_different_classes_are_those_that_were_written(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    definition = union_of(
        {"type": "array", "items": ["null", "int"]},
        logical("long", "timestamp-millis"),
        "boolean",
        "double",
        logical("bytes", "decimal", precision=4, scale=1),
        {"type": "enum", "name": "E", "symbols": ["X"]},
        {"type": "map", "values": ["int", "string"]},
    )
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    values = [[1, None], moment, True, 0.1, Decimal("1.5"), "X", {"k": 1, "l": "x"}, None, False, []]
    records = [{"ts": 1, "s": {"u": value}} for value in values]
    schema = AvroSchema(json.dumps(definition))
    path = written(env, tmp_path / "p", AvroParquetWriters.for_generic_record(schema), records)
    assert read(env, AvroParquetReaders.for_generic_record(schema), path) == records
    (tmp_path / "a.avro").write_bytes(container(records, definition))
    (batch,) = log_of(tmp_path / "a.avro")
    assert batch.column(1).to_pylist() == pq.read_table(path)["s"].to_pylist()


def test_parquet_without_a_column_of_the_schema_is_an_error(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    schema = AvroSchema(json.dumps(record("r", a="long", b="long")))
    with pytest.raises(SchemaError, match=r"a\.parquet has no column 'b'; it has a"):
        read(env, AvroParquetReaders.for_generic_record(schema), tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"a\.parquet does not have records of"):
        read(env, AvroParquetReaders.for_generic_record(schema), tmp_path)


@pytest.mark.parametrize(
    ("wrap", "element", "place"),
    [
        (lambda inner: inner, {}, "a"),
        (lambda inner: record("outer", s=inner), {"s": {}}, "s.a"),
        (lambda inner: record("outer", l={"type": "array", "items": inner}), {"l": [{}]}, "l.item.a"),
    ],
    ids=["record", "record of a record", "record of a list"],
)
def test_a_record_without_a_field_that_parquet_needs_is_an_error(
    wrap: Callable[[Any], Any], element: Any, place: str
) -> None:
    definition = record("r", a="int")
    definition["fields"][0]["default"] = 7
    schema = AvroSchema(json.dumps(wrap(definition)))
    writer = AvroParquetWriters.for_generic_record(schema).create(io.BytesIO())
    writer.add_element(element)
    with pytest.raises(DataError, match=f"not of the schema: Column '{place}' is declared non-nullable"):
        writer.finish()


@pytest.mark.parametrize(
    "writers",
    [
        AvroParquetWriters.for_generic_record(AvroSchema(json.dumps(record("r", a="int")))),
        AvroParquetWriters.for_generic_record(
            AvroSchema(json.dumps(record("r", a={"type": "map", "values": "int"})))
        ),
        ParquetBulkWriters.for_row_type(Types.ROW([Types.INT()])),
        OrcBulkWriters.for_row_type(Types.ROW([Types.INT()])),
    ],
)
def test_none_is_no_row_of_a_file_of_columns(writers: Any) -> None:
    with pytest.raises(DataError, match=r"None is not a (row|record) of"):
        writers.create(io.BytesIO()).add_element(None)


def test_names_of_parquet_columns_may_differ_in_case(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    pq.write_table(pa.table({"User": ["ann"], "N": [1]}), tmp_path / "a.parquet")
    people = DataTypes.ROW(
        [DataTypes.FIELD("n", DataTypes.BIGINT()), DataTypes.FIELD("user", DataTypes.STRING())]
    )
    rows = read(env, ParquetColumnarRowInputFormat(people, is_case_sensitive=False), tmp_path)
    assert rows == [Row(n=1, user="ann")]
    with pytest.raises(SchemaError, match="has no column 'n'; it has User, N"):
        read(env, ParquetColumnarRowInputFormat(people), tmp_path)


def test_timestamps_of_parquet_in_96_bits_are_those_that_were_written(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    far = datetime.datetime(3000, 1, 2, 3, 4, 5, 678)
    rows = pa.table({"at": pa.array([far], pa.timestamp("us"))})
    pq.write_table(rows, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    row_type = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    assert read(env, ParquetColumnarRowInputFormat(row_type), tmp_path) == [Row(at=far)]


def configuration(**properties: str) -> Configuration:
    config = Configuration()
    for key, value in properties.items():
        config.set_string(key.replace("_", "."), value)
    return config


def test_the_compression_of_parquet_is_that_of_the_configuration(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    people = DataTypes.ROW([DataTypes.FIELD("user", DataTypes.STRING())])
    writers = ParquetBulkWriters.for_row_type(people, configuration(parquet_compression="zstd"))
    path = written(env, tmp_path, writers, [Row("ann")])
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    with pytest.raises(ConfigurationError, match=r"parquet\.compression is one of"):
        ParquetBulkWriters.for_row_type(people, configuration(parquet_compression="zip"))


def test_decimals_and_instants_of_rows_are_those_of_the_columns(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    columns = DataTypes.ROW(
        [
            DataTypes.FIELD("price", DataTypes.DECIMAL(4, 1).bridged_to("java.math.BigDecimal")),
            DataTypes.FIELD("at", DataTypes.TIMESTAMP_LTZ(3)),
        ]
    )
    rows = [Row(Decimal("1.25"), Instant(1, 500_000_000)), Row(Decimal("12345"), None), Row(None, None)]
    path = written(env, tmp_path, ParquetBulkWriters.for_row_type(columns), rows)
    table = pq.read_table(path)
    assert table.schema.types == [pa.decimal128(4, 1), pa.timestamp("ms", "UTC")]
    assert table["price"].to_pylist() == [Decimal("1.3"), None, None]
    assert table["at"].cast(pa.int64()).to_pylist() == [1500, None, None]
    assert [row.price for row in read(env, ParquetColumnarRowInputFormat(columns), path)] == [
        Decimal("1.3"),
        None,
        None,
    ]


def test_rows_are_written_as_orc(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    from pyarrow import orc

    people = DataTypes.ROW(
        [
            DataTypes.FIELD("user", DataTypes.STRING()),
            DataTypes.FIELD("numbers", DataTypes.ARRAY(DataTypes.INT())),
            DataTypes.FIELD("at", DataTypes.TIMESTAMP(6)),
        ]
    )
    writers = OrcBulkWriters.for_row_type(
        people, configuration(orc_compress="SNAPPY", orc_stripe_size="1000000")
    )
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
    path = written(env, tmp_path, writers, [Row("ann", [1, None], moment), Row(None, None, None)])
    file = orc.ORCFile(path)
    assert file.compression == "SNAPPY"
    assert file.read().to_pylist() == [
        {"user": "ann", "numbers": [1, None], "at": moment},
        {"user": None, "numbers": None, "at": None},
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OrcBulkWriters.for_row_type(Types.INT()), "takes a type such as"),
        (
            lambda: OrcBulkWriters.for_row_type(Types.ROW([Types.SQL_TIME()])),
            "ORC has no column for the field 'f0'",
        ),
        (
            lambda: OrcBulkWriters.for_row_type(Types.ROW([Types.INT()]), configuration(orc_compress="zip")),
            "orc.compress=zip is not a property",
        ),
        (
            lambda: OrcBulkWriters.for_row_type(Types.ROW([Types.INT()]), configuration(orc_else="1")),
            "orc.else=1 is not a property",
        ),
        (lambda: AvroBulkWriters.for_generic_record("x"), "takes an AvroSchema"),  # type: ignore[arg-type]
        (lambda: AvroInputFormat("x", None), "takes an AvroSchema"),  # type: ignore[arg-type]
        (lambda: AvroParquetReaders.for_generic_record("x"), "takes an AvroSchema"),  # type: ignore[arg-type]
        (
            lambda: AvroParquetWriters.for_generic_record(AvroSchema(json.dumps(record("r", a=["null"])))),
            "has one type beside null",
        ),
        (lambda: AvroParquetWriters.for_generic_record(AvroSchema('"int"')), "need a schema of records"),
    ],
)
def test_formats_that_have_no_meaning_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_an_input_is_a_format_of_files(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ConfigurationError, match="create_input takes a format such as AvroInputFormat"):
        env.create_input("x.avro")  # type: ignore[arg-type]
