"""Reads CSV that is written in many ways."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.csv import CsvReaderFormat, CsvSchema
from pyflink.table import DataTypes


def texts():
    return CsvSchema.builder().add_string_column("s").add_string_column("t")


def mixed():
    return CsvSchema.builder().add_string_column("s").add_number_column("n").add_boolean_column("b")


def number(data_type):
    return CsvSchema.builder().add_number_column("n", data_type)


def array(element_type=None, separator=";"):
    return CsvSchema.builder().add_string_column("s").add_array_column("a", separator, element_type)


FILES = {
    "plain": (mixed(), "x,1,true\n,+2,TRUE\n , -3 , no \ny,007,\n"),
    "quotes": (texts(), '"x,y","a""b"\n"x\ny",a"b\n"x" ,y\n"x"\t,"y"  \n "x",\'y\'\n'),
    "lines": (texts(), "a,b\r\nc,d\re,f\n"),
    "trailing separator": (texts(), "a,b,\nc,d,  \n"),
    "one column": (CsvSchema.builder().add_string_column("s"), "a\n\nb\n\n"),
    "header": (mixed().set_use_header(), "b,s\nx,1,true\n"),
    "strict header": (mixed().set_use_header().set_strict_headers(), "s,n,b\nx,1,true\n"),
    "strict without header": (texts().set_strict_headers(), "q,r\n"),
    "skip": (texts().set_skip_first_data_row(), '"a\nq",b\nx,y\n'),
    "header and skip": (texts().set_use_header().set_skip_first_data_row(), '"a\nq",b\n1,2\nx,y\n'),
    "comments": (texts().set_allow_comments(), '#a,b\n  x,y\n\n #q,r\n  \nx,#y\n"#x",y\n#c\n'),
    "no comments": (texts(), "#a,b\n"),
    "comments and header": (texts().set_allow_comments().set_use_header(), "#c\na,b\n#d\nx,y\n"),
    "null": (mixed().set_null_value("NULL"), 'NULL,NULL,NULL\n,1,true\n"NULL",1,true\n'),
    "empty null": (mixed().set_null_value(""), ",,\n"),
    "separator": (texts().set_column_separator("|"), "a,b|c\n"),
    "tab": (texts().set_column_separator("\t"), " \ty\na\t\n"),
    "quote": (texts().set_quote_char("'"), "'x,y',\"z\"\n"),
    "no quote": (texts().disable_quote_char(), '"x",y"\n'),
    "escape": (
        texts().set_escape_char("\\"),
        'x\\,y,"x\\"y"\nx\\ny,\\"x\n"a\\\\b","a\\tb\\rc\\0d"\nx\\\ny,z\n',
    ),
    "no escape": (texts().set_escape_char("\\").disable_escape_char(), "x\\y,z\n"),
    "quote is escape": (texts().set_quote_char("'").set_escape_char("'"), "'x''y',z\n"),
    "mark": (texts(), "\ufeffx,y\n"),
    "unicode": (texts(), "äöü€😀,a\x0bz\x1cq\u2028w\n"),
    "any property": (texts().set_any_property_name("rest"), "a,b,c\nd,e,f,g\nh,i\n"),
    "double": (
        number(DataTypes.DOUBLE()),
        "1\n1e400\nNaN\nInfinity\n-Infinity\n1d\n1f\n0x1p3\n.5\n5.\n 1.5 \n-0\n",
    ),
    "float": (number(DataTypes.FLOAT()), "1.1\n3.4e39\n16777217\n"),
    "tiny": (number(DataTypes.TINYINT()), "127\n-128\n"),
    "decimal": (number(DataTypes.DECIMAL(6, 2)), "1.25\n1.555\n123456.789\n1E+2\n-.5\n"),
    "arrays": (array(), 'x,1;2;3\nx,1\nx,\nx,1;\nx,; ;\nx, 1 ; 2 \nx,"1;2"\n'),
    "arrays of numbers": (array(DataTypes.INT()), "x,1;2;3\nx, 1 ; 2 \nx,\n"),
    "array separator": (array(None, "::"), "x,1::2:3\n"),
    "array null": (array().set_null_value("N"), "x,N;1\nx,N\n"),
    "array empty null": (array().set_null_value(""), "x,;1;\nx,\n"),
    "removed array separator": (array(None, "|").remove_array_element_separator(1), "x,1|2;3\n"),
    "schema's array separator": (array(None, "").set_array_element_separator("|"), "x,1|2;3\n"),
    "columns of another": (texts().add_columns_from(number(DataTypes.INT()).build()), "a,b,1\n"),
    "columns cleared": (texts().clear_columns().add_string_column("only"), "a\n"),
}
FILES_AT_ONCE = 8


def shown(row):
    """Values as text; arrays are tuples in PyFlink's thread mode."""
    return repr([list(value) if isinstance(value, (list, tuple)) else value for value in row])


def run(env: StreamExecutionEnvironment):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for index, (name, (builder, content)) in enumerate(FILES.items(), 1):
            path = root / "in" / name.replace(" ", "_")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content.encode())
            source = FileSource.for_record_stream_format(
                CsvReaderFormat.for_schema(builder.build()), str(path)
            ).build()
            lines = env.from_source(source, WatermarkStrategy.no_watermarks(), name).map(
                shown, Types.STRING()
            )
            lines.sink_to(
                FileSink.for_row_format(str(root / "out" / name), Encoder.simple_string_encoder()).build()
            )
            if index % FILES_AT_ONCE == 0 or index == len(FILES):
                env.execute("read")
        return {
            name: [
                line
                for path in (root / "out" / name).rglob("*")
                if path.is_file()
                for line in path.read_text().splitlines()
            ]
            for name in FILES
        } | {"schemas": [str(builder.build()) for builder, _ in FILES.values()]}
