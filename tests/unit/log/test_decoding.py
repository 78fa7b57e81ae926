"""Messages in columns of a log are decoded as it is read: JSON, Avro and Protobuf, and those that cannot be."""

import json
import pickle
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.kafka_messages import CLICK, avro, descriptor_set, framed, kafka_table, protobuf

import flinkcore as fc
from flinkcore.errors import ConfigurationError, DataError, SchemaError
from flinkcore.log.decoding.wire_format import message_indexes, unframed
from flinkcore.testing import find_races

AT = pc.field("value", "at")
JSON = fc.json_values("user STRING, at BIGINT")


def clicks(number: int = 20) -> list[bytes]:
    return [json.dumps({"user": f"u{n % 2}", "at": 1_000 * n}).encode() for n in range(number)]


def events(log: Any, decoder: Any, timestamp: Any = AT, **settings: Any) -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    given = {"split": "partition", "decode": {"value": decoder}, **settings}
    stream = env.from_event_log(log, timestamp=timestamp, **given)
    return stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())


def values(log: Any, decoder: Any, **settings: Any) -> list[Any]:
    """Return the decoded values, in the order of their positions."""
    settings.setdefault("timestamp", "timestamp")
    rows = events(log, decoder, split=None, **settings).to_arrow()
    return rows["value"].to_pylist()  # type: ignore[no-any-return]


def windows(stream: Any) -> list[tuple[Any, ...]]:
    user = pc.field("value", "user")
    job = (
        stream.with_columns(user=user)
        .key_by("user")
        .window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(5)))
    )
    rows = job.aggregate(n=fc.count()).to_arrow().select(["user", "window_start", "n"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


# ---- as a part of the log


def test_times_splits_and_keys_come_from_decoded_values(tmp_path: Path) -> None:
    table = kafka_table(clicks())
    found = windows(events(table, JSON))
    assert [n for _, _, n in found] == [3, 2, 3, 2, 2, 3, 2, 3]
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    assert windows(events(tmp_path, JSON)) == found
    assert windows(events(tmp_path, JSON, arrival=AT)) == found
    by_user = table.append_column("reversed", pa.array(range(20, 0, -1)))
    assert windows(events(by_user.sort_by("reversed"), JSON, position="offset")) == found


def test_fields_of_decoded_values_go_by_dotted_names(tmp_path: Path) -> None:
    table = kafka_table(clicks())
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    for log in (table, tmp_path):
        stream = events(log, JSON, timestamp="value.at", arrival="value.at", position="value.at")
        keyed = stream.key_by("value.user").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(5)))
        rows = keyed.aggregate(n=fc.count()).to_arrow().select(["value.user", "window_start", "n"])
        assert sorted(tuple(row.values()) for row in rows.to_pylist()) == windows(events(table, JSON))
    with pytest.raises(SchemaError, match="The struct 'value' has no field 'usr': user, at"):
        events(table, JSON).key_by("value.usr").window(
            fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(5))
        ).aggregate(n=fc.count()).to_arrow()


def test_a_decoded_column_is_a_struct_of_the_declared_types() -> None:
    rows = events(
        kafka_table(clicks(1)), fc.json_values(pa.schema({"at": pa.int64(), "x": pa.list_(pa.int8())}))
    ).to_arrow()
    assert rows.schema.field("value").type == pa.struct({"at": pa.int64(), "x": pa.list_(pa.int8())})
    assert rows["value"].to_pylist() == [{"at": 0, "x": None}]


def test_text_is_decoded_like_binaries() -> None:
    table = kafka_table(clicks(3))
    text = table.set_column(1, "value", table["value"].cast(pa.string()))
    assert values(text, JSON) == values(table, JSON)


def test_columns_to_decode_are_checked() -> None:
    table = kafka_table(clicks(1))
    env = fc.StreamExecutionEnvironment.get_execution_environment()

    def schema(decode: Any) -> Any:
        return env.from_event_log(table, timestamp="timestamp", decode=decode).to_arrow().schema

    with pytest.raises(
        SchemaError, match=r"decode= names column 'valu', which the log does not have: key, value"
    ):
        schema({"valu": JSON})
    with pytest.raises(SchemaError, match=r"column 'offset', which is int64: messages are binary or text"):
        schema({"offset": JSON})
    with pytest.raises(ConfigurationError, match=r"decode= is a mapping of columns to decoders, such as"):
        schema({"value": "json"})
    with pytest.raises(ConfigurationError, match="json_values needs the fields"):
        fc.json_values({})


def test_analyses_and_functions_take_decoded_rows() -> None:
    table = kafka_table([*clicks(), b"oops"])
    user = pc.field("value", "user")
    size = fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(5))

    def job(stream: Any) -> Any:
        timed = stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
        return timed.with_columns(user=user).key_by("user").window(size).aggregate(n=fc.count())

    settings: dict[str, Any] = {"timestamp": AT, "decode": {"value": JSON}, "on_bad_row": "drop"}
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_event_log(table, **settings)
    story = job(stream).why("u1")
    assert story.events.num_rows == 10
    assert "20 events of 2 splits (1 row was rejected)" in str(job(stream).lateness())
    assert not find_races(job, table, split=fc.PARTITION, arrival="timestamp", **settings)
    timed = stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
    with timed.elements().map(lambda row: row.value).execute_and_collect() as elements:
        assert len(list(elements)) == 20


# ---- messages that cannot be decoded

BAD = [b'{"user": "u', b'{"user": 7}', b"[1]", b'{"at": 1}{"at": 2}', b'{"user": "\xff"}', b" x ", b'"text"']


@pytest.mark.parametrize("bad", BAD)
def test_a_message_that_is_not_json_is_an_error_with_its_row(tmp_path: Path, bad: bytes) -> None:
    table = kafka_table([*clicks(3), bad, *clicks(2)])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(
        DataError, match=r"row 3 \(from 0\) of .*a\.parquet: column 'value' cannot be decoded"
    ) as caught:
        events(tmp_path, JSON).to_arrow()
    assert (caught.value.row, caught.value.column) == (3, "value")


@pytest.mark.parametrize("position", [None, "offset"])
def test_messages_that_cannot_be_decoded_are_dropped_and_counted(position: str | None) -> None:
    good = clicks(10)
    mixed = [message for pair in zip(good, [*BAD, *BAD[:3]], strict=True) for message in pair]
    stream = events(kafka_table(mixed, 1), JSON, on_bad_row="drop", position=position)
    result = stream.execute()
    assert result.to_arrow()["value"].to_pylist() == [json.loads(each) for each in good]
    assert result.report.rejected == {"unreadable record": 10}


def test_messages_that_cannot_be_decoded_go_to_the_side_output_with_their_text(tmp_path: Path) -> None:
    tag = fc.OutputTag("bad")
    pq.write_table(kafka_table([*clicks(2), b"\xffoops"]), tmp_path / "a.parquet")
    for log, file in ((tmp_path, str(tmp_path / "a.parquet")), (pq.read_table(tmp_path), None)):
        result = events(log, JSON, on_bad_row=tag).execute()
        (row,) = result.get_side_output(tag).to_arrow().to_pylist()
        assert result.to_arrow().num_rows == 2
        assert row["reason"].startswith("unreadable record: column 'value' cannot be decoded: ")
        assert (row["record"]["file"], row["record"]["text"]) == (file, "\\xffoops")
        assert (row["offset"], row["value"]) == (1, None)


def test_tombstones_are_null(tmp_path: Path) -> None:
    messages = [*clicks(1), None, b"", b" null ", b'\n{"user":\n"u",\r\n "at": 5}\n']
    expected = [{"user": "u0", "at": 0}, None, None, None, {"user": "u", "at": 5}]
    assert values(kafka_table(messages), JSON) == expected
    with pytest.raises(DataError, match="null timestamp"):
        events(kafka_table(messages), JSON).to_arrow()


# ---- Avro

RECORD = {"user": "ann", "at": 1_500, "price": Decimal("1.25")}
AS_READ = {
    "user": "ann",
    "at": datetime(1970, 1, 1, 0, 0, 1, 500_000, timezone.utc),
    "price": Decimal("1.25"),
}
OLD = {**CLICK, "fields": CLICK["fields"][:2]}


def test_records_of_avro_have_the_types_of_their_schema(tmp_path: Path) -> None:
    (tmp_path / "click.avsc").write_text(json.dumps(CLICK))
    table = kafka_table([avro(CLICK, RECORD), None])
    for schema in (CLICK, json.dumps(CLICK), str(tmp_path / "click.avsc"), tmp_path / "click.avsc"):
        assert values(table, fc.avro_values(schema)) == [AS_READ, None]
    found = events(table, fc.avro_values(CLICK), timestamp="timestamp").to_arrow().schema.field("value").type
    assert found.field("price").type == pa.decimal128(9, 2)


def test_records_with_a_header_are_read_by_the_schema_of_their_id(tmp_path: Path) -> None:
    (tmp_path / "7.avsc").write_text(json.dumps(OLD))
    (tmp_path / "12.json").write_text(json.dumps(CLICK))
    (tmp_path / "README").write_text("not one")
    table = kafka_table([framed(12, avro(CLICK, RECORD)), framed(7, avro(OLD, RECORD))])
    for schemas in (tmp_path, str(tmp_path), {7: OLD, 12: json.dumps(CLICK)}):
        with pytest.raises(DataError, match=r"No default value for .*price|cannot be decoded"):
            values(table, fc.avro_values(schemas=schemas))
    nullable = {**CLICK, "fields": [*CLICK["fields"][:2], {**CLICK["fields"][2], "default": None}]}
    assert values(table, fc.avro_values(schemas={7: OLD, 12: nullable})) == [
        AS_READ,
        {**AS_READ, "price": None},
    ]
    assert values(table, fc.avro_values(OLD, schemas=tmp_path)) == [{"user": "ann", "at": AS_READ["at"]}] * 2
    with pytest.raises(DataError, match=r"its schema has the id 7, and there are 12"):
        values(table, fc.avro_values(schemas={12: CLICK}))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (avro(CLICK, RECORD), "it does not begin with a zero byte"),
        (framed(1, avro(CLICK, RECORD))[:-1], "cannot be decoded"),
        (framed(1, avro(CLICK, RECORD) + b"x"), "1 bytes follow the record"),
        (b"\0\0\0", "it does not begin with a zero byte"),
        (framed(1, b"\xff" * 12), "cannot be decoded"),
    ],
)
def test_records_that_are_damaged_are_errors(message: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        values(kafka_table([message]), fc.avro_values(CLICK, has_header=True))
    dropped = events(
        kafka_table([message]), fc.avro_values(CLICK, has_header=True), on_bad_row="drop"
    ).execute()
    assert dropped.report.rejected == {"unreadable record": 1}


@pytest.fixture
def registry() -> Iterator[tuple[str, list[str]]]:
    """A schema registry with two versions of a subject, and the requests that it got."""
    asked: list[str] = []
    versions = {1: (7, OLD), 2: (12, CLICK)}

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            path, _, version = self.path.rpartition("/")
            answer: Any = None
            if self.headers["Authorization"] == "Basic YW5uOnNlY3JldA==":
                if self.path == "/subjects/clicks-value/versions":
                    answer = [1, 2]
                elif path == "/subjects/clicks-value/versions":
                    number, schema = versions[int(version)]
                    answer = {"id": number, "version": int(version), "schema": json.dumps(schema)}
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://ann:secret@127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_schemas_are_fetched_from_a_registry_once(registry: tuple[str, list[str]]) -> None:
    url, asked = registry
    decoder = fc.avro_values(OLD, registry=url, subject="clicks-value")
    table = kafka_table([framed(12, avro(CLICK, RECORD)), framed(7, avro(OLD, RECORD))] * 10)
    assert values(table, decoder) == [{"user": "ann", "at": AS_READ["at"]}] * 20
    assert len(asked) == 3
    latest = fc.avro_values(registry=url, subject="clicks-value").prepared()
    assert "price" in [field.name for field in latest.type]
    assert "secret" not in repr(decoder) + repr(latest)
    with pytest.raises(
        ConfigurationError, match=r"answers 404 to http://127.*: check the name of the subject"
    ) as error:
        fc.avro_values(registry=url, subject="views-value").prepared()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ann:secret@registry:8081", "'...@registry:8081'"),
        ("ftp://ann:secret@registry", "'ftp://...@registry'"),
        ("http://ann:1/secret@registry", "'http://...@registry'"),
        ("http://ann:secret/@registry", "'http://...@registry'"),
        ("http://[ann:secret@registry", "'http://...@registry'"),
        ("http://registry:eight", "'http://registry:eight'"),
    ],
)
def test_what_is_not_the_url_of_a_registry_is_shown_without_its_password(url: str, shown: str) -> None:
    with pytest.raises(ConfigurationError, match="registry= is a URL such as") as error:
        fc.avro_values(registry=url, subject="s").prepared()
    assert f"not {shown}." in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs schema=, schemas= or registry="),
        ({"registry": "http://r"}, "registry= and subject= belong together"),
        ({"schemas": {1: CLICK}, "registry": "http://r", "subject": "s"}, "exclude each other"),
        ({"schemas": {"1": CLICK}}, "ids, which are integers"),
        ({"schemas": {1: CLICK}, "has_header": False}, "without a header"),
        ({"schemas": "no/such/folder"}, "folder of schemas 'no/such/folder' cannot be read"),
        ({"schema": "no/such.avsc"}, "schema of Avro 'no/such.avsc' cannot be read"),
        ({"schema": "{"}, "is not JSON"),
        ({"schema": 5}, "is a dict, its text or the path of a file, not 5"),
    ],
)
def test_settings_of_avro_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        fc.avro_values(**arguments)


# ---- Protobuf

FULL = {
    "user": "ann",
    "at": 1_500,
    "tags": ["a", "b"],
    "kind": 1,
    "place": 2.5,
    "big": 2**64 - 1,
    "raw": b"\xff",
    "counts": {"y": 2, "x": 1},
    "note": "",
}


def test_messages_of_protobuf_have_the_types_of_their_descriptors(tmp_path: Path) -> None:
    (tmp_path / "shop.desc").write_bytes(descriptor_set())
    decoder = fc.protobuf_values(tmp_path / "shop.desc", "shop.Click")
    table = kafka_table([protobuf("shop.Click", **FULL), None, protobuf("shop.Click", user="b", kind=9)])
    full, none, sparse = values(table, pickle.loads(pickle.dumps(decoder)))
    assert none is None
    assert full == {
        "user": "ann",
        "at": AS_READ["at"],
        "tags": ["a", "b"],
        "kind": "BUY",
        "place": {"x": 2.5},
        "big": 2**64 - 1,
        "raw": b"\xff",
        "counts": [("x", 1), ("y", 2)],
        "note": "",
    }
    absent = {
        "at": None,
        "tags": [],
        "kind": "9",
        "place": None,
        "big": 0,
        "raw": b"",
        "counts": [],
        "note": None,
    }
    assert sparse == {"user": "b", **absent}


def test_message_indexes_are_checked() -> None:
    body = protobuf("shop.Click", user="ann")
    click = fc.protobuf_values(descriptor_set(), "shop.Click", has_header=True)
    (value,) = values(kafka_table([framed(3, b"\x02\x02" + body)]), click)
    assert value["user"] == "ann"
    with pytest.raises(DataError, match=r"its message indexes are \[0\], and those of shop.Click are \[1\]"):
        values(kafka_table([framed(3, b"\0" + body)]), click)
    place = fc.protobuf_values(descriptor_set(), "shop.Click.Place", has_header=True)
    assert values(kafka_table([framed(3, b"\x04\x02\x00" + protobuf("shop.Click.Place"))]), place) == [
        {"x": 0.0}
    ]


@pytest.mark.parametrize("message", [b"\x0a\x05ab", b"\x00\x01", framed(1, b"\xff")])
def test_messages_of_protobuf_that_are_damaged_are_errors(message: bytes) -> None:
    decoder = fc.protobuf_values(descriptor_set(), "shop.Click")
    with pytest.raises(DataError, match="column 'value' cannot be decoded"):
        values(kafka_table([message]), decoder)


def test_settings_of_protobuf_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has no message 'shop.Clik': it has .*shop.Click"):
        fc.protobuf_values(descriptor_set(), "shop.Clik").prepared()
    with pytest.raises(ConfigurationError, match="the descriptor set cannot be taken"):
        fc.protobuf_values(b"\xff\xff", "shop.Click").prepared()
    with pytest.raises(ConfigurationError, match=r"the descriptor set .*none.desc.* cannot be read"):
        fc.protobuf_values(tmp_path / "none.desc", "shop.Click")
    with pytest.raises(ConfigurationError, match="message= is the full name of a type"):
        fc.protobuf_values(descriptor_set(), "")


# ---- the header


def test_headers_are_taken_off() -> None:
    assert unframed(framed(258, b"ab")) == (258, b"ab")
    assert message_indexes(b"\x00ab") == ((0,), b"ab")
    assert message_indexes(b"\x04\x02\x80\x02ab") == ((1, 128), b"ab")


@pytest.mark.parametrize(
    "body", [b"", b"\x04\x02", b"\x01\x00", b"\xff\xff\xff\xff\xff\xff", b"\xfe\x01" + b"\0" * 200]
)
def test_message_indexes_that_are_cut_off_or_absurd_are_errors(body: bytes) -> None:
    with pytest.raises(DataError, match="message indexes"):
        message_indexes(body)
