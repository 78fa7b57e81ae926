"""Writes the same rows as CSV in many ways, and reads each of them again."""

import tempfile
from decimal import Decimal
from pathlib import Path

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvSchema
from pyflink.table import DataTypes

TEXTS = [
    *(
        "string",
        "",
        " a",
        "a b",
        "a,b",
        "a;b",
        "a|b",
        'a"b',
        "a'b",
        "a\\b",
        "a\nb",
        "a\rb",
        "#a",
        "é",
        "€😀",
        "-",
        "+",
    ),
    *(
        "null",
        "NULL",
        "x" * 24,
        "x" * 25,
        "é" * 12 + "😀" * 6,
        "é" * 12 + "😀" * 7,
        "a\tb",
        "1.5",
        "A-Z_z",
        "~{}",
        "(1)",
    ),
]
NUMBERS = [
    *(0.0, -0.0, 1.0, 0.1, 1e7, 12345678.9, 0.001, 0.0009, 1e-5, 9999999.0, 123456789012345680.0, 4.9e-324),
    *(1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), 100.0, 1e16, 1e21, -2.5, 0.00123),
]
SINGLE = [1.0, 0.1, 1e7, 1.1, 16777216.0, 3.4028234663852886e38, 0.001, 0.0001, 123456.78, 8.41e21, -0.5]
TEXT_SCHEMAS = {
    "plain": lambda builder: builder,
    "header": lambda builder: builder.set_use_header(),
    "quote": lambda builder: builder.set_quote_char("'"),
    "no quote": lambda builder: builder.disable_quote_char(),
    "escape": lambda builder: builder.set_escape_char("\\"),
    "no quote, escape": lambda builder: builder.disable_quote_char().set_escape_char("!"),
    "bar": lambda builder: builder.set_column_separator("|"),
    "tab": lambda builder: builder.set_column_separator("\t"),
    "crlf": lambda builder: builder.set_line_separator("\r\n"),
    "no line": lambda builder: builder.set_line_separator(""),
    "wide line": lambda builder: builder.set_line_separator("~\n"),
    "null": lambda builder: builder.set_null_value("NULL"),
    "null of quotes": lambda builder: builder.set_null_value('"n,'),
    "comments": lambda builder: builder.set_allow_comments(),
}


def files_of(folder: Path) -> list:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def run(env: StreamExecutionEnvironment):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        texts_type = Types.ROW_NAMED(["s", "a text"], [Types.STRING(), Types.STRING()])
        texts = env.from_collection(
            [*(Row(text, text) for text in TEXTS), Row(None, "x"), Row("x", None)], texts_type
        )
        for name, change in TEXT_SCHEMAS.items():
            builder = CsvSchema.builder().add_string_column("s").add_string_column("a text")
            schema = change(builder).build()
            texts.sink_to(
                FileSink.for_bulk_format(str(root / name), CsvBulkWriters.for_schema(schema)).build()
            )
        doubles = CsvSchema.builder().add_number_column("d", DataTypes.DOUBLE()).build()
        env.from_collection(
            [Row(number) for number in NUMBERS], Types.ROW_NAMED(["d"], [Types.DOUBLE()])
        ).sink_to(FileSink.for_bulk_format(str(root / "doubles"), CsvBulkWriters.for_schema(doubles)).build())
        floats = CsvSchema.builder().add_number_column("f", DataTypes.FLOAT()).build()
        env.from_collection(
            [Row(number) for number in SINGLE], Types.ROW_NAMED(["f"], [Types.FLOAT()])
        ).sink_to(FileSink.for_bulk_format(str(root / "floats"), CsvBulkWriters.for_schema(floats)).build())
        others = (
            CsvSchema.builder()
            .add_boolean_column("b")
            .add_number_column("t", DataTypes.TINYINT())
            .add_number_column("l")
            .add_number_column("m", DataTypes.DECIMAL(38, 18))
            .build()
        )
        env.from_collection(
            [
                Row(True, -128, 2**63 - 1, Decimal("1.5")),
                Row(False, 127, -(2**63), Decimal("-0.001")),
                Row(None, None, None, None),
            ],
            Types.ROW_NAMED(
                ["b", "t", "l", "m"], [Types.BOOLEAN(), Types.BYTE(), Types.LONG(), Types.BIG_DEC()]
            ),
        ).sink_to(FileSink.for_bulk_format(str(root / "others"), CsvBulkWriters.for_schema(others)).build())
        env.execute("write")
        return {
            path.name: [file.read_bytes().decode() for file in files_of(path)]
            for path in sorted(root.iterdir())
        }
