"""Tables of Kafka over logs of its records: messages, metadata, keys and changes as the DDL declares them."""

import json
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jobs.sql_scripts import CLICKS, Recorded, records

from flinkcore._internal.arrow.expressions import RowFailure
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.declared_messages import DeclaredMessages
from flinkcore.errors import ConfigurationError, DataError, RejectedRowsWarning, UnsupportedOperationError
from flinkcore.log.decoding.csv_values import csv_values
from flinkcore.log.decoding.declared_steps import declared_steps
from flinkcore.log.decoding.decoded_chunk import decoded_schema
from flinkcore.sql.nodes.scans import ScannedColumn
from flinkcore.sql.types.logical_types import LogicalType, Root


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorded:
    recorded = Recorded(request.param)
    recorded.stand_for_flink(monkeypatch, tmp_path)
    return recorded


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
@pytest.mark.parametrize("form", ["arrow", "path", "stream"])
def test_messages_keys_and_metadata_are_columns_of_a_table(
    script: Recorded, form: str, tmp_path: Path
) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    log: Any = CLICKS
    if form == "path":
        log = str(tmp_path / "dump.parquet")
        pq.write_table(CLICKS, log)
    elif form == "stream":
        log = environment.from_event_log(CLICKS, arrival="timestamp")
    rows = environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow().to_pylist()
    first = datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert sorted(rows, key=lambda row: row["written"])[:2] == [
        {
            "user": "ada",
            "doubled": Decimal("3.00"),
            "item": {"id": 7, "tags": ["new", "red"]},
            "partition": 0,
            "written": first,
        },
        {
            "user": "bob",
            "doubled": Decimal("4.00"),
            "item": {"id": 8, "tags": []},
            "partition": 1,
            "written": first.replace(second=1),
        },
    ]
    assert [row["user"] for row in rows].count("ada") == 3
    spent = environment.from_sql(script.text, {"clicks": log}, sink="select_2").to_arrow().to_pylist()
    assert sorted((row["user"], row["window_end"].minute, row["spent"]) for row in spent) == [
        ("ada", 1, Decimal("5.75")),
        ("ada", 2, None),
        ("bob", 1, Decimal("2.00")),
    ]


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_log_with_the_columns_of_the_table_is_not_decoded(script: Recorded) -> None:
    rows = pa.table(
        {
            "user": ["ada"],
            "price": ["1.50"],
            "item": pa.array([None], pa.struct([("id", pa.int64()), ("tags", pa.list_(pa.string()))])),
            "ts": ["2024-01-01 00:00:01Z"],
            "partition": [3],
            "timestamp": [datetime(2024, 1, 1, tzinfo=timezone.utc)],
        }
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    (row,) = environment.from_sql(script.text, {"clicks": rows}, sink="select").to_arrow().to_pylist()
    assert (row["user"], row["doubled"], row["partition"]) == ("ada", Decimal("3.00"), 3)


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_message_that_cannot_be_read_is_an_error_unless_the_table_ignores_it(script: Recorded) -> None:
    bad = records([{"price": 1, "ts": "2024-01-01 00:00:01Z"}, b"{"], [{"user": "a"}, {"user": "b"}])
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(DataError, match="value"):
        environment.from_sql(script.text, {"clicks": bad}, sink="select").to_arrow()
    for step in script.json["steps"]:
        for node in step["plan"]["nodes"]:
            if "scanTableSource" in node:
                node["scanTableSource"]["table"]["resolvedTable"]["options"][
                    "value.json.ignore-parse-errors"
                ] = "true"
    text = script.text + "-- once more\nSELECT 1;"
    with pytest.warns(RejectedRowsWarning):
        rows = environment.from_sql(text, {"clicks": bad}, sink="select").to_arrow()
    assert rows.num_rows == 1


@pytest.mark.parametrize("is_ordered", [False, True])
def test_rows_are_named_among_those_that_messages_become(tmp_path: Path, is_ordered: bool) -> None:
    for name, messages in (("a", [None, None, b'{"n": 1}']), ("b", [None, b'{"n": 2}', b"{}"])):
        columns = {"value": pa.array(messages, pa.binary())}
        if is_ordered:  # by offsets
            columns = dict(zip(records([]).column_names, records(messages).columns, strict=True))
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    fields = pa.schema([("n", pa.int64())])
    declared = DeclaredMessages("json", fields, None, pa.schema([]), "", {"connector": "kafka"})
    environment = StreamExecutionEnvironment.get_execution_environment()
    log = environment.from_event_log(
        f"{tmp_path}/*.parquet", timestamp="n", timestamp_unit="ms", decode=declared
    )
    with pytest.raises(DataError, match=r"row 1 \(from 0\) of the rows decoded from .*b\.parquet"):
        log.to_arrow()


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_format_without_a_decoder_is_refused_by_name(script: Recorded) -> None:
    for step in script.json["steps"]:
        for node in step["plan"]["nodes"]:
            if "scanTableSource" in node:
                node["scanTableSource"]["table"]["resolvedTable"]["options"]["value.format"] = "protobuf"
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match="messages of the format 'protobuf' are not decoded"):
        environment.from_sql(script.text, {"clicks": CLICKS}, sink="select").to_arrow()


@pytest.mark.parametrize("script", ["debezium"], indirect=True)
def test_changes_of_a_database_are_changes_of_results(script: Recorded) -> None:
    changes = (
        records(
            [
                {"op": "c", "before": None, "after": {"id": 1, "city": "Ulm"}},
                {"op": "u", "before": {"id": 1, "city": "Ulm"}, "after": {"id": 1, "city": "Bern"}},
                {"op": "d", "before": {"id": 1, "city": "Bern"}, "after": None},
            ]
        )
        .set_column(3, "partition", pa.array([0, 0, 0], pa.int32()))
        .set_column(4, "offset", pa.array([0, 1, 2], pa.int64()))
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_sql(script.text, {"users": changes}).to_arrow().to_pylist()
    assert [(row["row_kind"], row["city"], row["people"]) for row in rows] == [
        ("+I", "Ulm", 1),
        ("-D", "Ulm", 1),
        ("+I", "Bern", 1),
        ("-D", "Bern", 1),
    ]


def options_of(script: Recorded) -> list[dict[str, str]]:
    """Return the options of the tables that a script reads, to be changed in place."""
    return [
        node["scanTableSource"]["table"]["resolvedTable"]["options"]
        for step in script.json["steps"]
        for node in step["plan"]["nodes"]
        if "scanTableSource" in node
    ]


USERS = [{"user": "ada"}, {"user": "bob"}, {"user": "cyd"}]


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_record_without_a_value_is_not_a_row(script: Recorded) -> None:
    ts = "2024-01-01 00:00:01Z"
    log = records([{"price": 1, "ts": ts}, None, {"price": 3, "ts": ts}], USERS)
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow().to_pylist()
    assert sorted((row["user"], row["doubled"]) for row in rows) == [
        ("ada", Decimal("2.00")),
        ("cyd", Decimal("6.00")),
    ]


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_deletion_of_upsert_kafka_is_refused_with_its_row(script: Recorded) -> None:
    ts = "2024-01-01 00:00:01Z"
    log = records([{"price": 1, "ts": ts}, None, {"price": 3, "ts": ts}], USERS)
    for options in options_of(script):
        options["connector"] = "upsert-kafka"
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(DataError, match=r"row 1 .*deletions of upsert-kafka are not decoded"):
        environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow()
    for options in options_of(script):
        options["value.json.ignore-parse-errors"] = "true"
    with pytest.raises(UnsupportedOperationError, match="deletions would be dropped"):
        environment.from_sql(script.text + "SELECT 1;", {"clicks": log}, sink="select").to_arrow()


def rewrite(script: Recorded, old: str, new: str) -> None:
    """Let the recorded plans have another text."""
    script.json = json.loads(json.dumps(script.json).replace(old, new))


TEXT = "VARCHAR(2147483647)"


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_binaries_in_json_are_base64(script: Recorded) -> None:
    rewrite(script, TEXT, "VARBINARY(2147483647)")
    ts = "2024-01-01 00:00:01Z"
    item = {"id": 7, "tags": ["aGVsbG8=", None, ""]}
    log = records([{"ts": ts, "item": item}, {"ts": ts}], [{"user": "YWRh"}, {}])
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow().to_pylist()
    assert [(row["user"], row["item"]) for row in rows] == [
        (b"ada", {"id": 7, "tags": [b"hello", None, b""]}),
        (None, None),
    ]
    bad = records([{"ts": ts}, {"ts": ts, "item": {"tags": ["aGVsbG8"]}}], [{}, {}])
    with pytest.raises(DataError, match=r"row 1 .*field 'item' is not base64"):
        environment.from_sql(script.text, {"clicks": bad}, sink="select").to_arrow()


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_objects_of_json_are_maps(script: Recorded) -> None:
    rewrite(script, f"ROW<`id` BIGINT, `tags` ARRAY<{TEXT}>>", f"MAP<{TEXT}, TIMESTAMP(3)>")
    environment = StreamExecutionEnvironment.get_execution_environment()
    ts = "2024-01-01 00:00:01Z"
    log = records([{"ts": ts, "item": {"a": "2024-01-01 00:00:02.5", "b": None}}, {"ts": ts}], [{}, {}])
    rows = environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow().to_pylist()
    at = datetime(2024, 1, 1, 0, 0, 2, 500_000)
    assert sorted((row["item"] for row in rows), key=str) == sorted(([("a", at), ("b", None)], None), key=str)


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
@pytest.mark.parametrize("old", [f"ARRAY<{TEXT}>", f"ROW<`id` BIGINT, `tags` ARRAY<{TEXT}>>"])
def test_a_map_in_json_has_texts_as_keys(script: Recorded, old: str) -> None:
    rewrite(script, old, f"MAP<INT, {TEXT}>")
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match=r"MAP<INT, .* has keys that are not texts"):
        environment.from_sql(script.text, {"clicks": CLICKS}, sink="select").to_arrow()


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
@pytest.mark.parametrize(("zone", "hour"), [("GMT-08:00", 16), ("GMT+1", 1), ("GMT+00:00", 0)])
def test_windows_are_cut_by_a_time_zone_that_is_an_offset(script: Recorded, zone: str, hour: int) -> None:
    rewrite(script, '"table.local-time-zone": "UTC"', f'"table.local-time-zone": "{zone}"')
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_sql(script.text, {"clicks": CLICKS}, sink="select_2").to_arrow().to_pylist()
    assert {row["window_end"].hour for row in rows} == {hour}


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_time_zone_with_minutes_is_refused_with_a_region(script: Recorded) -> None:
    rewrite(script, '"table.local-time-zone": "UTC"', '"table.local-time-zone": "GMT+05:30"')
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ConfigurationError, match="such as Asia/Kolkata"):
        environment.from_sql(script.text, {"clicks": CLICKS}, sink="select_2").to_arrow()


@pytest.mark.parametrize("given", [pa.string(), pa.binary()])
def test_fields_that_are_named_like_columns_of_records_are_decoded(given: pa.DataType) -> None:
    fields = pa.schema([("key", pa.string()), ("value", pa.int64())])
    declared = DeclaredMessages("json", fields)
    record = pa.schema([("key", pa.binary()), ("value", given)])
    steps = declared_steps(record, declared, False)
    assert bool(steps) == pa.types.is_binary(given)
    binaries = pa.schema([("key", pa.binary()), ("value", pa.binary())])
    assert not declared_steps(binaries, DeclaredMessages("json", binaries), False)
    of_texts = DeclaredMessages("raw", pa.schema([("value", pa.string())]))
    assert bool(declared_steps(record, of_texts, False)) == pa.types.is_binary(given)
    if steps:
        assert decoded_schema(steps, record).field("value").type == pa.int64()


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_field_that_cannot_be_read_is_null_where_the_table_ignores_errors(script: Recorded) -> None:
    for options in options_of(script):
        options["value.json.ignore-parse-errors"] = "true"
    rewrite(script, "ROW<`id` BIGINT", "ROW<`id` TIMESTAMP(3)")
    ts = "2024-01-01 00:00:01Z"
    log = records(
        [
            {"price": "zz", "ts": ts, "item": {"tags": [5, "x"]}},
            {"price": "2.345", "ts": ts, "item": {"id": "zz", "tags": 7}},
            {"price": 3, "ts": ts, "item": "zz"},
        ],
        USERS,
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow().to_pylist()
    found = sorted((row["user"], row["doubled"], row["item"] and row["item"]["tags"]) for row in rows)
    assert found == [
        ("ada", None, ["5", "x"]),
        ("bob", Decimal("4.70"), None),
        ("cyd", Decimal("6.00"), None),
    ]


def test_a_column_of_a_scan_that_ignores_errors_is_null_where_a_text_is_not_of_its_type() -> None:
    texts = pa.record_batch({"at": ["2024-01-01 00:00:01", "zz", None]})
    kind = LogicalType(Root.TIMESTAMP, precision=3)
    assert ScannedColumn("at", kind, True).evaluate(texts).to_pylist() == [
        datetime(2024, 1, 1, 0, 0, 1),
        None,
        None,
    ]
    with pytest.raises(RowFailure):
        ScannedColumn("at", kind).evaluate(texts)


def test_digits_of_a_time_are_cut_off_or_refused() -> None:
    kind = LogicalType(Root.TIMESTAMP, precision=3)
    times = pa.record_batch({"at": pa.array([1000, 1001], pa.timestamp("us"))})
    assert ScannedColumn("at", kind).evaluate(times).cast(pa.int64()).to_pylist() == [1, 1]
    assert len(ScannedColumn("at", kind, is_exact=True).evaluate(times.slice(0, 1))) == 1
    with pytest.raises(RowFailure, match="not TIMESTAMP") as failure:
        ScannedColumn("at", kind, is_exact=True).evaluate(times)
    assert failure.value.row == 1


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_missing_field_that_is_to_fail_is_refused(script: Recorded) -> None:
    for options in options_of(script):
        options["value.json.fail-on-missing-field"] = "true"
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match="fail-on-missing-field is not supported"):
        environment.from_sql(script.text, {"clicks": CLICKS}, sink="select").to_arrow()


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_rows_of_csv_have_the_options_of_the_table(script: Recorded) -> None:
    for options in options_of(script):
        options.update(
            {"value.format": "csv", "value.csv.field-delimiter": "|", "value.csv.null-literal": "n/a"}
        )
    log = records(
        [
            b"1.5|7;new|2024-01-01 00:00:01Z",
            b'"2"|n/a;n/a|2024-01-01 00:00:02Z',
            None,
            b"n/a||2024-01-01 00:00:03Z",
        ],
        [{"user": "ada"}] * 4,
    )
    rewrite(script, f"ARRAY<{TEXT}>", TEXT)
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow().to_pylist()
    assert [(row["user"], row["doubled"], row["item"]) for row in rows] == [
        ("ada", Decimal("3.00"), {"id": 7, "tags": "new"}),
        ("ada", Decimal("4.00"), {"id": None, "tags": None}),
        ("ada", None, None),
    ]
    bad = records([b"1|1;a|2024-01-01 00:00:01Z", b"x|1;a|2024-01-01 00:00:01Z"], [{"user": "ada"}] * 2)
    with pytest.raises(DataError, match=r"row 1 .*column 'price'"):
        environment.from_sql(script.text, {"clicks": bad}, sink="select").to_arrow()
    for options in options_of(script):
        options["value.csv.ignore-parse-errors"] = "true"
    rows = environment.from_sql(script.text + "SELECT 1;", {"clicks": bad}, sink="select").to_arrow()
    assert rows.column("doubled").to_pylist() == [Decimal("2.00"), None]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"csv.field-delimiter": "ab"}, "csv.field-delimiter is a single character"),
        ({"csv.quote-character": "'", "csv.disable-quote-character": "true"}, "leave one out"),
        ({"csv.fields": "a"}, "no option 'fields'"),
        ({"csv.allow-comments": "yes"}, "true or false"),
    ],
)
def test_wrong_options_of_csv_are_refused(options: dict[str, str], shown: str) -> None:
    declared = DeclaredMessages("csv", pa.schema([("a", pa.int64())]), options=options)
    with pytest.raises(ConfigurationError, match=shown):
        declared_steps(pa.schema([("value", pa.binary())]), declared, False)


def test_a_time_beyond_the_type_is_not_a_null_where_errors_are_ignored() -> None:
    decoder = csv_values(pa.schema([("at", pa.timestamp("ns"))]), {"ignore-parse-errors": "true"})
    found = decoder.decode([b"0001-01-01 00:00:00", b"x"])
    assert list(found.faults) == [0]
    assert found.values.to_pylist() == [None, {"at": None}]


@pytest.mark.parametrize(("connector", "rows"), [("kafka", [b"a", None, b""]), ("upsert-kafka", None)])
def test_a_record_without_a_value_is_a_row_of_raw(connector: str, rows: list[bytes | None] | None) -> None:
    declared = DeclaredMessages("raw", pa.schema([("f", pa.binary())]), options={"connector": connector})
    log = pa.record_batch({"value": pa.array([b"a", None, b""])})
    decoding, present, columns = declared_steps(log.schema, declared, False)
    decoded = decoding.decode(log, ["value"], None)
    struct = pa.record_batch(decoded.columns, ["value"])
    assert not decoded.faults
    found = present.decode(struct, ["value"], None)
    assert (list(found.faults) == [1]) == (rows is None)
    if rows is not None:
        fields = columns.decode(pa.record_batch(found.columns, ["value"]), ["f"], None)
        assert fields.columns[0].to_pylist() == rows
