"""Rows, arrays and maps of Flink SQL become structs, lists and maps; those that contradict themselves are errors."""

import datetime
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.state_columns import EntryError
from flinkcore.savepoints.serializers.java_objects import JavaObject
from flinkcore.savepoints.serializers.sql import SqlSerializer, single_serializer, sql_type

MOST = 1 << 20


def logical(kind: str, /, **fields: object) -> JavaObject:
    return JavaObject(f"org.apache.flink.table.types.logical.{kind}", dict(fields))


def row_of(*types: JavaObject) -> SqlSerializer:
    fields = JavaObject("java.util.ArrayList", {}, [])
    fields.written = [logical("RowType$RowField", name=f"x{i}", type=each) for i, each in enumerate(types)]
    return SqlSerializer(sql_type(logical("RowType", fields=fields)))


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def read(serializer: SqlSerializer, *values: bytes, exact: bool = False) -> list[object]:
    column = serializer.column(exact)
    for value in values:
        assert column.read_value(sized(value), 0, MOST) == len(value) + 4
    array = pa.array(column.array())
    array.validate(full=True)
    return list(array.to_pylist())


def slots(*values: bytes, kind: int = 0, nulls: int = 0, rest: bytes = b"") -> bytes:
    """Return a row of less than 57 fields: the kind, a bit for each null, the slots and what lies elsewhere."""
    return bytes([kind]) + nulls.to_bytes(7, "little") + b"".join(v.ljust(8, b"\0") for v in values) + rest


def at(offset: int, size: int) -> bytes:
    return struct.pack("<II", size, offset)


def short(data: bytes) -> bytes:
    return data.ljust(7, b"\0") + bytes([0x80 | len(data)])


def test_fields_of_every_type_are_read() -> None:
    types = [
        *(logical("TinyIntType"), logical("SmallIntType"), logical("IntType"), logical("BigIntType")),
        *(logical("FloatType"), logical("DoubleType"), logical("BooleanType"), logical("DateType")),
        *(logical("TimeType"), logical("VarCharType"), logical("VarCharType"), logical("VarBinaryType")),
        *(logical("DecimalType", precision=10, scale=2), logical("DecimalType", precision=30, scale=3)),
        *(logical("TimestampType", precision=3), logical("LocalZonedTimestampType", precision=6)),
    ]
    begin = 8 + 8 * len(types)
    rest = "länger als sieben".encode() + (-1234567890123456789012).to_bytes(16, "big", signed=True)
    text = len("länger als sieben".encode())
    rest += struct.pack("<q", -1)
    row = slots(
        *(b"\xff", struct.pack("<h", -2), struct.pack("<i", -3), struct.pack("<q", -(2**63))),
        *(struct.pack("<f", 0.5), struct.pack("<d", -0.25), b"\1", struct.pack("<i", 1)),
        *(struct.pack("<i", 3_723_000), short(b"abc"), at(begin, text), short(b"")),
        *(struct.pack("<q", -1234), at(begin + text, 16)),
        *(struct.pack("<q", 1_000), at(begin + text + 16, 999_000)),
        kind=2,
        rest=rest,
    )
    utc = datetime.timezone.utc
    assert read(row_of(*types), row) == [
        dict(
            zip(
                [*(f"x{i}" for i in range(len(types))), "row_kind"],
                [
                    *(
                        -1,
                        -2,
                        -3,
                        -(2**63),
                        0.5,
                        -0.25,
                        True,
                        datetime.date(1970, 1, 2),
                        datetime.time(1, 2, 3),
                    ),
                    *(
                        "abc",
                        "länger als sieben",
                        b"",
                        Decimal("-12.34"),
                        Decimal("-1234567890123456789.012"),
                    ),
                    datetime.datetime(1970, 1, 1, 0, 0, 1),
                    datetime.datetime(1970, 1, 1, tzinfo=utc) - datetime.timedelta(microseconds=1),
                    "+U",
                ],
                strict=True,
            )
        )
    ]


def test_nulls_are_read() -> None:
    row = slots(struct.pack("<i", 5), b"", nulls=0b10)
    assert read(row_of(logical("IntType"), logical("VarCharType")), row) == [
        {"x0": 5, "x1": None, "row_kind": "+I"}
    ]


def test_arrays_maps_and_rows_within_rows_are_read() -> None:
    text, number = logical("VarCharType"), logical("IntType")
    types = row_of(
        logical("ArrayType", elementType=text),
        logical("MapType", keyType=text, valueType=number),
        logical(
            "RowType",
            fields=JavaObject("java.util.ArrayList", {}, [logical("RowField", name="y", type=number)]),
        ),
    )
    array = struct.pack("<i", 2) + b"\x02\0\0\0" + short(b"a") + b"\0" * 8
    keys = struct.pack("<i", 1) + b"\0" * 4 + short(b"k")
    values = struct.pack("<i", 1) + b"\0" * 4 + struct.pack("<i", 7) + b"\0" * 4
    mapped = struct.pack("<i", len(keys)) + keys + values
    nested = slots(struct.pack("<i", 9))
    offsets = [32, 32 + len(array), 32 + len(array) + len(mapped)]
    row = slots(
        *(at(offsets[0], len(array)), at(offsets[1], len(mapped)), at(offsets[2], len(nested))),
        rest=array + mapped + nested,
    )
    assert read(types, row) == [
        {"x0": ["a", None], "x1": [("k", 7)], "x2": {"y": 9, "row_kind": "+I"}, "row_kind": "+I"}
    ]


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (logical("IntType"), b"\0" * 15, "a row of 1 fields has 15 bytes"),
        (logical("IntType"), slots(b"", kind=4), "does not have the kind 4"),
        (logical("VarCharType"), slots(at(16, 1)), "byte 16 with 1 bytes of a row that has 16"),
        (logical("VarCharType"), slots(at(2**31 - 1, 2**31)), "of a row that has 16"),
        (logical("VarCharType"), slots(b"\0" * 7 + b"\xff"), "a short value of a row has 127 bytes"),
        (logical("VarCharType"), slots(short(b"\xff")), "a text is not UTF-8"),
        (logical("DecimalType", precision=30, scale=0), slots(at(0, 0)), "a decimal has 0 bytes"),
        (
            logical("TimestampType", precision=9),
            slots(at(8, 2_000_000)),
            "does not have 2,000,000 nanoseconds",
        ),
        (
            logical("TimestampType", precision=9),
            slots(at(16, 0), rest=b"\xff" * 7 + b"\x7f"),
            "outside of those",
        ),
        (
            logical("ArrayType", elementType=logical("IntType")),
            slots(at(16, 8), rest=struct.pack("<i", 2**31 - 1) + b"\0" * 4),
            "an array of 2,147,483,647 elements has 8 bytes",
        ),
        (
            logical("ArrayType", elementType=logical("IntType")),
            slots(at(16, 4), rest=struct.pack("<i", -1)),
            "an array of -1 elements",
        ),
        (
            logical("MapType", keyType=logical("IntType"), valueType=logical("IntType")),
            slots(at(16, 8), rest=struct.pack("<ii", 99, 0)),
            "the keys of a map have 99 bytes of 8",
        ),
    ],
)
def test_rows_that_contradict_themselves_are_errors(kind: JavaObject, data: bytes, message: str) -> None:
    with pytest.raises(EntryError, match=message):
        read(row_of(kind), data)


def test_texts_that_are_not_utf_8_are_bytes_if_they_are_read_exactly() -> None:
    assert read(row_of(logical("VarCharType")), slots(short(b"\xff")), exact=True) == [
        {"x0": b"\xff", "row_kind": "+I"}
    ]


@pytest.mark.parametrize(
    "kind",
    [
        logical("UnknownType"),
        logical("DecimalType", precision=99, scale=0),
        logical("TimestampType"),
        logical("RowType", fields=None),
        "text",
    ],
)
def test_types_that_are_not_known_are_refused(kind: object) -> None:
    with pytest.raises(ValueError, match=r"not known|of a type is|are not a list|not an object"):
        sql_type(kind)


@pytest.mark.parametrize(
    ("numbers", "value", "data"),
    [
        ((10, 2), Decimal("-1.25"), struct.pack(">q", -125)),
        ((25, 3), Decimal("1.280"), b"\0\0\0\2\x05\0"),
        ((25, 3), Decimal("-0.001"), b"\0\0\0\1\xff"),
        ((3,), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), struct.pack(">q", -1)),
        ((6,), datetime.datetime(1970, 1, 1, 0, 0, 0, 1002), struct.pack(">qi", 1, 2000)),
    ],
)
def test_decimals_and_timestamps_that_are_in_no_row_are_read_and_written(
    numbers: tuple[int, ...], value: object, data: bytes
) -> None:
    column = single_serializer(*numbers).column(False)
    assert column.read_value(data, 0, MOST) == len(data)
    found = pa.array(column.array())
    assert found.to_pylist() == [value]
    batch = RecordBatch(pa.RecordBatch.from_arrays([found], ["value"]), any_type=True)
    column.bind_batch(batch, 0)
    assert column.write_value(0) == data


@pytest.mark.parametrize(
    ("numbers", "data"),
    [((25, 3), b"\0\0\0\0"), ((25, 3), b"\0\0\0\x11" + bytes(17)), ((6,), struct.pack(">qi", 1, -1))],
)
def test_damaged_decimals_and_timestamps_are_refused(numbers: tuple[int, ...], data: bytes) -> None:
    with pytest.raises(EntryError, match=r"bytes|nanoseconds"):
        single_serializer(*numbers).column(False).read_value(data, 0, MOST)
