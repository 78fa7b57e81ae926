"""Messages of Flink's format ``avro``: the schema that it derives of a table, and tables over logs of such records."""

import json
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from jobs.sql_scenarios import golden

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import DataError, UnsupportedOperationError
from flinkcore.sql.formats.avro_schemas import derived_schema
from flinkcore.sql.types.logical_types import type_of

RECORD = "org.apache.flink.avro.generated.record"


def derived(columns: str, is_legacy: bool = True) -> Any:
    return derived_schema(type_of(f"ROW<{columns}> NOT NULL"), is_legacy)


def test_rows_within_rows_are_records_named_by_their_path() -> None:
    """As AvroSchemaConverterTest.testRowTypeAvroSchemaConversion has it."""

    def optional(name: str, kind: Any) -> Any:
        return {"name": name, "type": ["null", kind], "default": None}

    def record(name: str, *fields: Any) -> Any:
        return {"type": "record", "name": name, "fields": list(fields)}

    inner = record(f"{RECORD}_row3_row3", optional("c", "string"))
    assert derived(
        "`row1` ROW<`a` VARCHAR(2147483647)>, `row3` ROW<`row3` ROW<`c` VARCHAR(2147483647)>>"
    ) == record(
        RECORD,
        optional("row1", record(f"{RECORD}_row1", optional("a", "string"))),
        optional("row3", record(f"{RECORD}_row3", optional("row3", inner))),
    )


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("TINYINT", "int"),
        ("BIGINT", "long"),
        ("FLOAT", "float"),
        ("CHAR(3)", "string"),
        ("BYTES", "bytes"),
        ("DATE", {"type": "int", "logicalType": "date"}),
        ("TIME(3)", {"type": "int", "logicalType": "time-millis"}),
        ("TIMESTAMP(3)", {"type": "long", "logicalType": "timestamp-millis"}),
        ("DECIMAL(10, 2)", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
        ("ARRAY<INT NOT NULL>", {"type": "array", "items": "int"}),
        ("MAP<VARCHAR(9) NOT NULL, INT>", {"type": "map", "values": ["null", "int"]}),
    ],
)
def test_columns_that_are_not_null_have_the_schema_of_their_type(kind: str, schema: Any) -> None:
    assert derived(f"`c` {kind} NOT NULL")["fields"] == [{"name": "c", "type": schema}]


def test_local_timestamps_need_the_other_mapping() -> None:
    columns = (
        "`a` TIMESTAMP(6) NOT NULL, `b` TIMESTAMP_LTZ(3) NOT NULL, `c` ARRAY<TIMESTAMP(3) NOT NULL> NOT NULL"
    )
    found = [field["type"] for field in derived(columns, is_legacy=False)["fields"]]
    assert found == [
        {"type": "long", "logicalType": "local-timestamp-micros"},
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "array", "items": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    for kind in ("TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "TIME(6)", "MAP<INT, INT>"):
        with pytest.raises(
            UnsupportedOperationError, match="none in messages of the format 'avro', in Flink, too"
        ):
            derived(f"`c` {kind}")


COLUMNS = [
    ("k", "VARCHAR(2147483647)"),
    ("v", "INT"),
    ("d", "DECIMAL(10, 2) NOT NULL"),
    ("day", "DATE"),
    ("ts", "TIMESTAMP(3)"),
]


def plan_of(**options: str) -> Any:
    """Return a plan that reads columns of a topic, and writes them."""
    plan = json.loads(json.dumps(golden("edges-fire_one_phase")["plan"]))
    scan, sink = plan["nodes"][0], plan["nodes"][-1]
    kind = f"ROW<{', '.join(f'`{name}` {each}' for name, each in COLUMNS)}> NOT NULL"
    table = scan["scanTableSource"]["table"]["resolvedTable"]
    table["schema"] = {"columns": [{"name": name, "dataType": each} for name, each in COLUMNS]}
    table["options"] = {"connector": "kafka", "topic": "f", "format": "avro", **options}
    scan["scanTableSource"]["abilities"] = []
    scan["outputType"] = sink["outputType"] = kind
    plan["nodes"] = [scan, sink]
    plan["edges"] = plan["edges"][:1]
    plan["edges"][0].update(source=scan["id"], target=sink["id"])
    return plan


def rows_of(messages: list[bytes | None], **options: str) -> list[Any]:
    environment = StreamExecutionEnvironment.get_execution_environment()
    n = len(messages)
    log = pa.table({"value": pa.array(messages, pa.binary()), "partition": [0] * n, "offset": range(n)})
    log = log.append_column("timestamp", pa.array([0] * n, pa.timestamp("ms")))
    rows = environment.from_plan(plan_of(**options), {"f": log}).to_arrow().to_pylist()
    return [dict(zip(ROW, row.values(), strict=True)) for row in rows]


def written(row: dict[str, Any], is_legacy: bool = True) -> bytes:
    out = BytesIO()
    schema = derived(", ".join(f"`{name}` {kind}" for name, kind in COLUMNS), is_legacy)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


ROW = {"k": "a", "v": 2, "d": Decimal("1.50"), "day": date(2024, 2, 29), "ts": datetime(2024, 1, 1, 0, 0, 1)}


def test_records_are_rows_of_their_table() -> None:
    nothing = dict.fromkeys(ROW) | {"d": Decimal("-0.01")}
    local = {**ROW, "ts": 1_704_067_201_000}  # a long, whatever it means
    # By hand: a branch and a value for each nullable field, zigzag numbers, and a decimal of one byte.
    by_hand = bytes([2, 2]) + b"a" + bytes([2, 4, 2, 150, 2]) + bytes([0, 0])
    assert rows_of([written(local), None, written(nothing), by_hand]) == [
        ROW,
        nothing,
        {**ROW, "d": Decimal("-1.06"), "day": date(1970, 1, 1), "ts": None},
    ]
    assert rows_of([written(ROW, False)], **{"avro.timestamp_mapping.legacy": "false"}) == [ROW]


def test_a_record_of_another_schema_and_another_encoding_are_errors() -> None:
    with pytest.raises(DataError, match="bytes follow the record"):
        rows_of([written({**ROW, "ts": 0}) + b"\0"])
    with pytest.raises(UnsupportedOperationError, match=r"'avro.encoding' = 'binary', not 'json'"):
        rows_of([], **{"avro.encoding": "json"})
