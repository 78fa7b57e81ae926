"""Schemas of messages: the bytes and rows that Flink 2.3.0 made of the same rows and bytes."""

import datetime
import io
import math
import pickle
from decimal import Decimal
from typing import Any

import pytest

from flinkcore.common import ByteArraySchema, Row, SimpleStringSchema, Types
from flinkcore.common.serialization import RowFieldExtractorSchema
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.formats.csv import (
    CsvBulkWriters,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from flinkcore.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from flinkcore.errors import ConfigurationError, DataError

ROW = Types.ROW_NAMED(["s", "n", "b"], [Types.STRING(), Types.INT(), Types.BOOLEAN()])
NESTED = Types.ROW_NAMED(
    ["a", "r", "o", "y"],
    [
        Types.BASIC_ARRAY(Types.INT()),
        Types.ROW([Types.STRING(), Types.INT()]),
        Types.OBJECT_ARRAY(Types.STRING()),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ],
)
REFUSED = "refused"


def csv_of(message: bytes, type_info: TypeInformation = ROW, **settings: Any) -> Any:
    builder = CsvRowDeserializationSchema.Builder(type_info)
    for name, value in settings.items():
        builder = getattr(builder, name)(value)
    return outcome(builder.build(), message)


def json_of(message: bytes, type_info: TypeInformation = ROW, *settings: str) -> Any:
    builder = JsonRowDeserializationSchema.builder().type_info(type_info)
    for name in settings:
        builder = getattr(builder, name)()
    return outcome(builder.build(), message)


def outcome(schema: Any, message: bytes) -> Any:
    try:
        row = schema.deserialize(message)
    except DataError:
        return REFUSED
    return None if row is None else tuple(row)


def one(type_info: TypeInformation) -> TypeInformation:
    return Types.ROW_NAMED(["v"], [type_info])


# ---- CSV


@pytest.mark.parametrize(
    ("message", "expected", "ignoring_errors"),
    [
        (b"x,1,true", ("x", 1, True), ("x", 1, True)),
        (b"x,1,true\ny,2,false\n", ("x", 1, True), ("x", 1, True)),
        (b"", REFUSED, None),
        (b"\n", REFUSED, ("", None, None)),
        (b"x,1", REFUSED, ("x", 1, None)),
        (b"x,1,true,5", REFUSED, None),
        (b"x,1,true,", ("x", 1, True), ("x", 1, True)),
        (b"x,q,true", REFUSED, ("x", None, True)),
        (b'"a,b",1,no', ("a,b", 1, False), ("a,b", 1, False)),
        (b" x , 1 , true ", (" x ", 1, True), (" x ", 1, True)),
        (b"x,,true", REFUSED, ("x", None, True)),
        (b"\xff,1,true", REFUSED, None),
        (b'"x,1,true', REFUSED, None),
        (b"#x,1,true", ("#x", 1, True), ("#x", 1, True)),
    ],
)
def test_a_message_of_csv_is_the_row_that_flink_reads(
    message: bytes, expected: Any, ignoring_errors: Any
) -> None:
    assert csv_of(message) == expected
    assert csv_of(message, set_ignore_parse_errors=True) == ignoring_errors


def test_settings_of_csv_messages_are_obeyed() -> None:
    assert csv_of(b"#a\nx,1,true", set_allow_comments=True) == ("x", 1, True)
    assert csv_of(b"#a", set_allow_comments=True) == REFUSED
    assert csv_of(
        b"'a|b'|n|true",
        set_field_delimiter="|",
        set_quote_character="'",
        set_escape_character="\\",
        set_null_literal="n",
    ) == ("a|b", None, True)


def test_arrays_rows_and_bytes_in_csv_are_those_of_flink() -> None:
    assert csv_of(b"1;2,x;5,p;q,aGVsbG8=", NESTED) == ([1, 2], Row("x", 5), ["p", "q"], b"hello")
    assert csv_of(b",,,", NESTED) == ([], None, [], b"")
    assert csv_of(b"1,x,p,q", NESTED) == REFUSED
    assert csv_of(b"1|2,x|5,p;q,aGVsbG8=", NESTED, set_array_element_delimiter="|") == (
        *([1, 2], Row("x", 5), ["p;q"], b"hello"),
    )
    assert csv_of(b"-;2,-;5,-,-", NESTED, set_null_literal="-") == ([None, 2], Row(None, 5), [None], None)


@pytest.mark.parametrize(
    ("type_info", "text", "value", "written"),
    [
        (Types.BYTE(), "1", 1, "1"),
        (Types.LONG(), "1", 1, "1"),
        (Types.FLOAT(), "1.1", 1.100000023841858, "1.1"),
        (Types.DOUBLE(), "1e7", 1e7, "1.0E7"),
        (Types.BIG_DEC(), " 1.50 ", Decimal("1.50"), "1.50"),
        (Types.BIG_INT(), "123456789012345678901", 123456789012345678901, "123456789012345678901"),
        (Types.SQL_DATE(), "2020-1-2", datetime.date(2020, 1, 2), "2020-01-02"),
        (Types.SQL_TIME(), "3:4:5", datetime.time(3, 4, 5), "03:04:05"),
        (
            Types.SQL_TIMESTAMP(),
            "2020-01-02 03:04:05.678",
            datetime.datetime(2020, 1, 2, 3, 4, 5, 678000),
            '"2020-01-02 03:04:05.678"',
        ),
        (
            Types.SQL_TIMESTAMP(),
            "2020-01-02 03:04:05",
            datetime.datetime(2020, 1, 2, 3, 4, 5),
            '"2020-01-02 03:04:05.0"',
        ),
    ],
)
def test_values_of_csv_are_read_and_written_as_by_flink(
    type_info: TypeInformation, text: str, value: Any, written: str
) -> None:
    assert csv_of(text.encode(), one(type_info)) == (value,)
    schema = CsvRowSerializationSchema.Builder(one(type_info)).build()
    assert schema.serialize(Row(value)) == f"{written}\n".encode()


def test_rows_of_csv_are_written_as_by_flink() -> None:
    nulls, row = Row(None, None, None), Row("a b", 1, False)
    builder = CsvRowSerializationSchema.Builder
    assert builder(ROW).build().serialize(nulls) == b",,\n"
    other = builder(ROW).set_null_literal("NULL").set_field_delimiter("|").set_line_delimiter("\r\n")
    assert other.build().serialize(nulls) == b"NULL|NULL|NULL\r\n"
    assert builder(ROW).set_quote_character("'").build().serialize(row) == b"'a b',1,false\n"
    plain = builder(ROW).disable_quote_character().set_escape_character("\\").set_line_delimiter("")
    assert plain.build().serialize(row) == b"a b,1,false"
    nested = Row([None, 2], Row(None, 5), [None], b"hello")
    assert builder(NESTED).build().serialize(nested) == b";2,;5,,aGVsbG8=\n"
    marked = builder(NESTED).set_null_literal("N").set_array_element_delimiter("|").build()
    assert marked.serialize(Row([None, 2], Row(None, 5), [None], None)) == b"N|2,N|5,N,N\n"


# ---- JSON


@pytest.mark.parametrize(
    ("message", "expected", "failing_on_missing", "ignoring_errors"),
    [
        ('{"s":"x","n":1,"b":true}', *[("x", 1, True)] * 3),
        ('{"n":1}', (None, 1, None), REFUSED, (None, 1, None)),
        ("{}", (None, None, None), REFUSED, (None, None, None)),
        ("null", None, None, None),
        ("[1]", REFUSED, REFUSED, None),
        ('"x"', REFUSED, REFUSED, None),
        ("", REFUSED, REFUSED, None),
        ('{"s":5,"n":"7","b":"TRUE"}', *[("5", 7, True)] * 3),
        ('{"s":null,"n":null,"b":null}', *[(None, None, None)] * 3),
        ('{"s":{"q": [1, 2]},"n":1.7,"b":1}', *[('{"q":[1,2]}', 1, False)] * 3),
        ('{"s":[1],"n":1e2,"b":false}', *[("[1]", 100, False)] * 3),
        ('{"s":"x","n":2147483648,"b":true}', REFUSED, REFUSED, ("x", None, True)),
        ('{"s":"x","n":" 5 ","b":" true "}', *[("x", 5, True)] * 3),
        ('{"s":true,"n":true,"b":null}', REFUSED, REFUSED, ("true", None, None)),
        ('{"s":1.0,"n":-0,"b":0}', *[("1.0", 0, False)] * 3),
        ('{"s":"x"', REFUSED, REFUSED, None),
        ('{"s":"x"} {"s":"y"}', ("x", None, None), REFUSED, ("x", None, None)),
        ('{"s":"x","s":"y"}', ("y", None, None), REFUSED, ("y", None, None)),
        ('{"s":"x","n":1,"b":true,"z":3}', *[("x", 1, True)] * 3),
        ("{'s':'x'}", REFUSED, REFUSED, None),
        ('{"s":NaN}', REFUSED, REFUSED, None),
        ('{"s":1e400}', ("Infinity", None, None), REFUSED, ("Infinity", None, None)),
        ('{"s":12345678901234567890}', ("12345678901234567890", None, None), REFUSED, None),
        ('{"s":1.10}', ("1.1", None, None), REFUSED, ("1.1", None, None)),
        (' {"s":"\\u00e9\\n"}\n', ("é\n", None, None), REFUSED, ("é\n", None, None)),
        ('{"s":100000000.0}', ("1.0E8", None, None), REFUSED, ("1.0E8", None, None)),
    ],
)
def test_a_message_of_json_is_the_row_that_flink_reads(
    message: str, expected: Any, failing_on_missing: Any, ignoring_errors: Any
) -> None:
    if ignoring_errors is None and expected != REFUSED:
        ignoring_errors = expected
    assert json_of(message.encode()) == expected
    assert json_of(message.encode(), ROW, "fail_on_missing_field") == failing_on_missing
    assert json_of(message.encode(), ROW, "ignore_parse_errors") == ignoring_errors


@pytest.mark.parametrize(
    ("type_info", "text", "value", "written"),
    [
        (Types.BYTE(), '"2"', 2, "2"),
        (Types.BYTE(), "300", REFUSED, None),
        (Types.SHORT(), "1.5", REFUSED, None),
        (Types.INT(), "-1.7", -1, "-1"),
        (Types.INT(), "1e10", REFUSED, None),
        (Types.INT(), "[1]", REFUSED, None),
        (Types.LONG(), "9223372036854775807", 2**63 - 1, "9223372036854775807"),
        (Types.LONG(), "9223372036854775808", REFUSED, None),
        (Types.FLOAT(), "1.1", 1.100000023841858, "1.1"),
        (Types.FLOAT(), "1e40", math.inf, '"Infinity"'),
        (Types.DOUBLE(), "1", 1.0, "1.0"),
        (Types.DOUBLE(), '"-Infinity"', -math.inf, '"-Infinity"'),
        (Types.DOUBLE(), "true", REFUSED, None),
        (Types.DOUBLE(), "1e8", 1e8, "1.0E8"),
        (Types.BIG_DEC(), "1.50", Decimal("1.5"), "1.5"),
        (Types.BIG_DEC(), '"1.50"', Decimal("1.50"), "1.50"),
        (Types.BIG_DEC(), "1e2", Decimal("1E+2"), "1E+2"),
        (Types.BIG_INT(), "123456789012345678901", 123456789012345678901, "123456789012345678901"),
        (Types.BIG_INT(), "1.5", REFUSED, None),
        (Types.SQL_DATE(), '"2020-01-02"', datetime.date(2020, 1, 2), '"2020-01-02"'),
        (Types.SQL_DATE(), '"2020-1-2"', REFUSED, None),
        (Types.SQL_TIME(), '"03:04:05Z"', datetime.time(3, 4, 5), '"03:04:05Z"'),
        (Types.SQL_TIME(), '"03:04:05"', REFUSED, None),
        (Types.SQL_TIME(), '"03:04:05.678Z"', REFUSED, None),
        (
            Types.SQL_TIMESTAMP(),
            '"2020-01-02T03:04:05.678Z"',
            datetime.datetime(2020, 1, 2, 3, 4, 5, 678000),
            '"2020-01-02T03:04:05.678Z"',
        ),
        (
            Types.SQL_TIMESTAMP(),
            '"2020-01-02T03:04:05.Z"',
            datetime.datetime(2020, 1, 2, 3, 4, 5),
            '"2020-01-02T03:04:05Z"',
        ),
        (Types.SQL_TIMESTAMP(), '"2020-01-02T03:04:05"', REFUSED, None),
        (Types.SQL_TIMESTAMP(), '"2020-01-02T03:04Z"', REFUSED, None),
        (Types.CHAR(), '"x"', "x", '"x"'),
        (Types.CHAR(), '"xy"', REFUSED, None),
        (Types.MAP(Types.STRING(), Types.INT()), '{"a":1,"b":null}', {"a": 1, "b": None}, '{"a":1,"b":null}'),
        (Types.MAP(Types.STRING(), Types.INT()), "[1]", {}, "{}"),
        (Types.LIST(Types.INT()), "[1,2]", [1, 2], "[1,2]"),
        (Types.LIST(Types.INT()), "5", REFUSED, None),
        (Types.OBJECT_ARRAY(Types.BASIC_ARRAY(Types.INT())), "[[1],null]", [[1], None], "[[1],null]"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), '"aGVsbG8="', b"hello", '"aGVsbG8="'),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "5", None, "null"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), '"%%"', REFUSED, None),
        (one(Types.INT()), '{"v":1}', Row(v=1), '{"v":1}'),
        (
            Types.STRING(),
            '"a\\"\\u2028/\\n\\u001F\\u0001"',
            'a"\u2028/\n\x1f\x01',
            '"a\\"\u2028/\\n\\u001F\\u0001"',
        ),
    ],
)
def test_values_of_json_are_read_and_written_as_by_flink(
    type_info: TypeInformation, text: str, value: Any, written: str | None
) -> None:
    found = json_of(f'{{"v":{text}}}'.encode(), one(type_info))
    assert found == (value if value == REFUSED else (value,))
    if written is not None:
        schema = JsonRowSerializationSchema.builder().with_type_info(one(type_info)).build()
        assert schema.serialize(Row(value)) == f'{{"v":{written}}}'.encode()


def test_a_decimal_anywhere_in_a_type_keeps_the_digits_of_all_fractions() -> None:
    types = Types.ROW_NAMED(["s", "d"], [Types.STRING(), Types.OBJECT_ARRAY(Types.BIG_DEC())])
    digits = "0.12345678901234567890123456789012345"
    assert json_of(f'{{"s":1e5,"d":[{digits}]}}'.encode(), types) == ("1E+5", [Decimal(digits)])


@pytest.mark.parametrize("number", ["1e99999999999999999999", "-1e-99999999999999999999"])
def test_a_fraction_of_json_with_too_large_an_exponent_is_refused(number: str) -> None:
    message = f'{{"v":{number}}}'.encode()
    assert json_of(message, one(Types.BIG_DEC())) == REFUSED
    assert json_of(message, one(Types.BIG_DEC()), "ignore_parse_errors") is None


def test_json_that_is_nested_without_measure_is_an_error() -> None:
    assert json_of(b'{"s":' + b"[" * 100_000 + b"]" * 100_000 + b"}") == REFUSED


def test_a_json_schema_describes_a_type() -> None:
    schema = """{"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "integer"}, "d": {"type": "boolean"},
        "e": {"type": ["string", "null"]}, "f": {"type": "array", "items": {"type": "integer"}},
        "g": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]},
        "i": {"type": "string", "format": "date"}, "j": {"type": "string", "format": "time"},
        "k": {"type": "string", "format": "date-time"}, "l": {"type": "string", "contentEncoding": "base64"},
        "m": {"$ref": "#/definitions/q"}, "n": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "o": {"type": "string", "format": "email"}, "p": {"type": "array", "items": {"type": "string"}}},
        "definitions": {"q": {"type": "object", "properties": {"z": {"type": "string"}}}}}"""
    found = JsonRowDeserializationSchema.builder().json_schema(schema).build().get_produced_type()
    assert repr(found) == (
        "RowTypeInfo(a: String, b: BigDecimal, c: BigDecimal, d: Boolean, e: String, "
        "f: ObjectArrayTypeInfo<BigDecimal>, g: RowTypeInfo(f0: BigDecimal, f1: String), i: DateTypeInfo, "
        "j: TimeTypeInfo, k: TimestampTypeInfo, l: PrimitiveArrayTypeInfo<Byte>, m: RowTypeInfo(z: String), "
        "n: String, o: String, p: BasicArrayTypeInfo<String>)"
    )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"type":"string"}', "takes a type such as"),
        ('{"type":"object","properties":{"a":{"anyOf":[]}}}', "<root>/a of the JSON schema has 'anyOf'"),
        ('{"type":"object","properties":{"a":{"type":"foo"}}}', "unknown type 'foo'"),
        ('{"type":"object","properties":{"a":{"type":["string","integer"]}}}', "one type beside null"),
        ('{"type":"object","properties":{"a":{"type":"null"}}}', "one type beside null"),
        ('{"type":"object","additionalProperties":true,"properties":{}}', "additional properties"),
        ('{"type":"object","properties":{"a":{"type":"array"}}}', "needs 'items'"),
        ('{"type":"object","properties":{"a":{"$ref":"#/nope"}}}', "leads nowhere"),
        ('{"type":"object","properties":{"a":{"$ref":"#/properties/a"}, "type":{}}}', "one type beside null"),
        ('{"oneOf":[{"$ref":"#"}]}', "one type beside null|leads to itself"),
        ('{"type":"object","properties":{"a":{}}}', "one type beside null"),
        ("x", "is not JSON"),
    ],
)
def test_a_json_schema_without_a_type_of_rows_is_refused(schema: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        JsonRowDeserializationSchema.builder().json_schema(schema).build()


# ---- all


def test_texts_bytes_and_fields_are_messages_as_in_flink() -> None:
    assert SimpleStringSchema().serialize("é") == b"\xc3\xa9"
    assert SimpleStringSchema("ISO-8859-1").serialize("é€") == b"\xe9?"
    assert SimpleStringSchema().deserialize(b"\xe9a") == "\ufffda"
    assert ByteArraySchema().deserialize(ByteArraySchema().serialize(b"\x00")) == b"\x00"
    key = RowFieldExtractorSchema(0)
    assert [key.serialize(Row(b"a", 1)), key.serialize(Row(None, 1))] == [b"a", b""]
    for index, message in ((1, "has bytes, not 1"), (2, "has no field 2")):
        with pytest.raises(DataError, match=message):
            RowFieldExtractorSchema(index).serialize(Row(b"a", 1))
    with pytest.raises(ConfigurationError, match="must be non-negative"):
        RowFieldExtractorSchema(-1)
    with pytest.raises(ConfigurationError, match="no charset is named"):
        SimpleStringSchema("klingon")


def test_schemas_are_functions_of_a_job() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    read = JsonRowDeserializationSchema.builder().type_info(ROW).build()
    write = CsvRowSerializationSchema.Builder(ROW).build()
    messages = env.from_collection([b'{"s":"x","n":1}', b'{"s":"a b","b":true}'])
    rows = messages.map(read.deserialize, read.get_produced_type())
    assert list(rows.map(write.serialize).execute_and_collect()) == [b"x,1,\n", b'"a b",,true\n']


@pytest.mark.parametrize(
    "schema",
    [
        CsvRowDeserializationSchema.Builder(ROW).set_field_delimiter("|").build(),
        JsonRowDeserializationSchema.builder().type_info(ROW).ignore_parse_errors().build(),
    ],
)
def test_schemas_travel_with_their_settings(schema: Any) -> None:
    message = b'{"s":"x|y"' if isinstance(schema, JsonRowDeserializationSchema) else b"x|1|true"
    assert outcome(pickle.loads(pickle.dumps(schema)), message) == outcome(schema, message)
    writers = (
        CsvRowSerializationSchema.Builder(ROW).set_field_delimiter("|").build(),
        JsonRowSerializationSchema.builder().with_type_info(ROW).build(),
    )
    for writer in writers:
        assert pickle.loads(pickle.dumps(writer)).serialize(Row("x", 1, True)) == writer.serialize(
            Row("x", 1, True)
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CsvRowDeserializationSchema.Builder(Types.INT()), "takes a type such as"),
        (lambda: CsvRowSerializationSchema.Builder(ROW).set_line_delimiter("x"), "a line ends with"),
        (lambda: CsvRowSerializationSchema.Builder(ROW).set_field_delimiter("ab"), "must be a single char"),
        (
            lambda: CsvRowSerializationSchema.Builder(one(Types.MAP(Types.INT(), Types.INT()))).build(),
            "'v' of CSV has no values of the type",
        ),
        (
            lambda: CsvRowDeserializationSchema.Builder(
                one(Types.OBJECT_ARRAY(Types.BASIC_ARRAY(Types.INT())))
            ).build(),
            "within the column 'v' of CSV are single values",
        ),
        (lambda: JsonRowDeserializationSchema.builder().build(), "takes a type such as"),
        (
            lambda: (
                JsonRowDeserializationSchema.builder()
                .type_info(ROW)
                .fail_on_missing_field()
                .ignore_parse_errors()
                .build()
            ),
            "not both",
        ),
        (
            lambda: JsonRowSerializationSchema.builder().with_type_info(Types.INT()).build(),
            "takes a type such as",
        ),
        (
            lambda: (
                JsonRowSerializationSchema.builder().with_type_info(one(Types.PICKLED_BYTE_ARRAY())).build()
            ),
            "'v' of JSON has no values of the type",
        ),
    ],
)
def test_settings_that_have_no_meaning_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_none_is_no_row_of_csv() -> None:
    with pytest.raises(DataError, match="None is not a row of CSV"):
        CsvRowSerializationSchema.Builder(ROW).build().serialize(None)
    writer = CsvBulkWriters.for_schema(CsvSchema.builder().add_string_column("s").build())
    with pytest.raises(DataError, match="None is not a row of CSV"):
        writer.create(io.BytesIO()).add_element(None)


@pytest.mark.parametrize("value", ["x", 2**31, [1]])
def test_a_value_of_another_type_names_its_field(value: Any) -> None:
    with pytest.raises(DataError, match="field 'n'"):
        CsvRowSerializationSchema.Builder(ROW).build().serialize(Row("x", value, True))
    with pytest.raises(DataError, match="field 'n'"):
        JsonRowSerializationSchema.builder().with_type_info(ROW).build().serialize(Row("x", value, True))
