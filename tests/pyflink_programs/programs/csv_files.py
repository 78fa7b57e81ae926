"""Reads CSV with a header and lists, as in PyFlink's documentation of the format, and writes it again."""

import tempfile
from pathlib import Path

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from pyflink.table import DataTypes

FILE = '''\
number|person|tags
1|"Smith, ""Jo"""|a,b
2||
-3|na\\|me|x
'''


def run(env: StreamExecutionEnvironment):
    schema = (
        CsvSchema.builder()
        .add_number_column("id", number_type=DataTypes.INT())
        .add_string_column("name")
        .add_array_column("list", ",", element_type=DataTypes.STRING())
        .set_column_separator("|")
        .set_escape_char("\\")
        .set_use_header()
        .build()
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.csv"
        path.write_text(FILE)
        source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(path)).build()
        row_type = Types.ROW_NAMED(
            ["id", "name", "list"], [Types.INT(), Types.STRING(), Types.BASIC_ARRAY(Types.STRING())]
        )
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv").map(
            lambda row: Row(id=row.id * 10, name=row["name"].upper(), list=list(row[2])), row_type
        )
        out = Path(folder) / "out"
        rows.sink_to(FileSink.for_bulk_format(str(out), CsvBulkWriters.for_schema(schema)).build())
        env.execute("csv")
        written = [path.read_text() for path in out.rglob("*") if path.is_file()]
    return {"schema": [str(schema), len(schema), schema.size()], "written": written}
