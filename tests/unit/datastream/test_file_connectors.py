"""Files as sources and sinks of jobs that run element by element."""

import gzip
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.full_disks import most_bytes_of_a_file

from flinkcore.common import Encoder, Row, Types, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from flinkcore.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from flinkcore.datastream.formats.json import JsonBulkWriters, JsonReaderFormat
from flinkcore.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from flinkcore.errors import (
    ConfigurationError,
    DataError,
    SchemaError,
    SourceError,
    UnsupportedOperationError,
    UserCodeError,
)
from flinkcore.table import DataTypes

PERSON = Types.ROW_NAMED(["user", "age", "score"], [Types.STRING(), Types.INT(), Types.DOUBLE()])
PEOPLE = [("ann", 41, 1.5), ("bob", None, 2.0), ('c,"y', 3, None)]
CSV = (
    CsvSchema.builder()
    .add_string_column("user")
    .add_number_column("age", Types.INT())
    .add_number_column("score", Types.DOUBLE())
    .set_use_header()
    .set_null_value("")
    .build()
)
FORMATS = {
    "parquet": (ParquetBulkWriters.for_row_type(PERSON), ParquetColumnarRowInputFormat(PERSON)),
    "csv": (CsvBulkWriters.for_schema(CSV), CsvReaderFormat.for_schema(CSV)),
    "json": (JsonBulkWriters.for_row_type(PERSON), JsonReaderFormat.for_row_type(PERSON)),
}


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def read(env: StreamExecutionEnvironment, format: StreamFormat, *paths: Path) -> list[Any]:
    source = FileSource.for_record_stream_format(format, *map(str, paths)).process_static_file_set().build()
    return list(env.from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect())


def in_one_folder(folder: Path, format: Any) -> FileSink:
    make = FileSink.for_row_format if isinstance(format, Encoder) else FileSink.for_bulk_format
    return make(str(folder), format).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


@pytest.mark.parametrize("name", FORMATS)
def test_rows_that_were_written_are_read_again(
    env: StreamExecutionEnvironment, name: str, tmp_path: Path
) -> None:
    writers, format = FORMATS[name]
    env.from_collection(PEOPLE, PERSON).sink_to(in_one_folder(tmp_path, writers))
    env.execute()
    rows = read(env, format, tmp_path)
    assert [tuple(row) for row in rows] == PEOPLE
    assert rows[0].user == "ann"


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_something_else_is_an_error_that_names_it(
    env: StreamExecutionEnvironment, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "broken"
    path.write_text('user,age,score\nann,old,1\n{"user": 1\n')
    with pytest.raises(DataError, match="broken does not have rows of RowTypeInfo"):
        read(env, FORMATS[name][1], path)


@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_text_that_is_not_utf_8_is_an_error_that_names_the_file(
    env: StreamExecutionEnvironment, name: str, tmp_path: Path
) -> None:
    writers, format = FORMATS[name]
    env.from_collection([("Grüße", 1, 1.0)], PERSON).sink_to(in_one_folder(tmp_path, writers))
    env.execute()
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace("ü".encode(), b"\xff\xff"))
    with pytest.raises(DataError, match=rf"{path} does not have rows of RowTypeInfo"):
        read(env, format, path)


@pytest.mark.parametrize("line_end", ["", "\n"])
def test_json_that_is_nested_without_measure_is_an_error(
    env: StreamExecutionEnvironment, tmp_path: Path, line_end: str
) -> None:
    depth = 100_000
    lists = ("[" + line_end) * depth + ("]" + line_end) * depth
    (tmp_path / "a").write_text('{"user": "ann", "else": ' + line_end + lists + "}\n")
    with pytest.raises(DataError, match=r"a has arrays and objects that are more than 100 levels deep"):
        read(env, FORMATS["json"][1], tmp_path)


@pytest.mark.parametrize("text", ["null\n{}\n", '{"user": "ann"}\nnull\n'])
def test_json_with_null_in_place_of_an_object_is_an_error(
    env: StreamExecutionEnvironment, tmp_path: Path, text: str
) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(DataError, match="a has null where an object belongs"):
        read(env, FORMATS["json"][1], tmp_path)


def test_pages_of_parquet_files_are_checked_where_they_have_checksums(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"user": ["abcdefgh"], "age": pa.array([1], pa.int32()), "score": [0.5]})
    pq.write_table(table, path, write_page_checksum=True, use_dictionary=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abcdefgH"))
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read: .*CRC checksum"):
        read(env, FORMATS["parquet"][1], path)


@pytest.mark.parametrize("header", ["", "user,age,score\n"])
def test_a_csv_file_that_ends_within_a_row_is_not_read_as_if_it_were_whole(
    env: StreamExecutionEnvironment, header: str, tmp_path: Path
) -> None:
    format = CsvReaderFormat.for_schema(replace(CSV, use_header=bool(header)))
    path = tmp_path / "a.csv"
    for end in ('"b', '"b,1,1\nc,2,2\n', "b,1"):
        path.write_text(f'{header}"ann",41,1.5\n{end}')
        with pytest.raises(
            DataError,
            match=rf"{path} does not have rows of .*: .*(it ends within a quoted value|it has 2 values, not 3)",
        ):
            read(env, format, path)
    path.write_text(f'{header}"ann",41,1.5\nb,1,22')
    with pytest.warns(UserWarning, match=rf"{path} ends without a line break"):
        assert [tuple(row) for row in read(env, format, path)] == [("ann", 41, 1.5), ("b", 1, 22.0)]


def test_a_first_value_of_csv_may_be_long(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'"{"x" * 200_000}",1,2\n')
    (row,) = read(env, CsvReaderFormat.for_schema(replace(CSV, use_header=False)), tmp_path)
    assert len(row.user) == 200_000


@pytest.mark.parametrize("name", ["csv", "json"])
def test_an_empty_file_has_no_rows_and_is_warned_of(
    env: StreamExecutionEnvironment, name: str, tmp_path: Path
) -> None:
    (tmp_path / "a").touch()
    with pytest.warns(UserWarning, match=rf"{tmp_path}/a is empty"):
        assert read(env, FORMATS[name][1], tmp_path) == []


def test_a_file_without_a_column_is_an_error(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": ["ann"], "age": [41]}), tmp_path / "few.parquet")
    with pytest.raises(SchemaError, match=r"few\.parquet has no column 'score'; it has user, age"):
        read(env, FORMATS["parquet"][1], tmp_path)


def test_lines_of_files_are_read_in_the_order_of_their_names(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "b.txt").write_bytes(b"three\r\nfour")
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    (tmp_path / ".hidden").write_text("no\n")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part").write_text("no\n")
    with gzip.open(tmp_path / "c.txt.gz", "wt") as file:
        file.write("five\n")
    lines = StreamFormat.text_line_format()
    assert read(env, lines, tmp_path) == ["one", "", "two", "three", "four", "five"]
    assert read(env.set_parallelism(2), lines, tmp_path / "b.txt") == ["three", "four"]
    assert sorted(read(env, lines, tmp_path)) == ["", "five", "four", "one", "three", "two"]


def test_what_cannot_be_read_is_an_error(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nothing' does not exist"):
        read(env, StreamFormat.text_line_format(), tmp_path / "nothing")
    (tmp_path / "latin").write_bytes(b"\xe4\n")
    with pytest.raises(DataError, match="latin is not encoded in utf-8"):
        read(env, StreamFormat.text_line_format(), tmp_path)
    assert read(env, StreamFormat.text_line_format("latin-1"), tmp_path) == ["ä"]
    with pytest.raises(ConfigurationError, match="no charset is named 'klingon'"):
        StreamFormat.text_line_format("klingon")
    with pytest.raises(ConfigurationError, match="files are read by a format"):
        FileSource.for_record_stream_format("text", "x")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="needs the paths of files"):
        FileSource.for_record_stream_format(StreamFormat.text_line_format())
    with pytest.raises(UnsupportedOperationError, match="a job here ends with its input"):
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), "x").monitor_continuously(1)


def test_files_of_a_job_that_fails_never_appear(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    sink = in_one_folder(tmp_path, Encoder.simple_string_encoder())
    env.from_collection([1, 0]).map(lambda value: 1 // value).sink_to(sink)
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        env.execute()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room", [0, 10, 5_000, 100_000])
@pytest.mark.parametrize("name", [*FORMATS, "text"])
def test_a_disk_that_is_full_is_an_error_that_names_the_directory_and_no_file_is_left(
    env: StreamExecutionEnvironment, name: str, room: int, tmp_path: Path
) -> None:
    writers = FORMATS[name][0] if name in FORMATS else Encoder.simple_string_encoder()
    people = [Row(f"user{n}", n, math.sin(n)) for n in range(8_000)]
    env.from_collection(people, PERSON).sink_to(in_one_folder(tmp_path, writers))
    with (
        most_bytes_of_a_file(room),
        pytest.raises(
            SourceError, match=rf"a file in {tmp_path} cannot be written: .*File too large.*bytes are free"
        ),
    ):
        env.execute()
    assert list(tmp_path.iterdir()) == []


def test_files_of_a_job_that_is_cancelled_never_appear(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    numbers = env.from_collection(range(10_000))
    numbers.sink_to(in_one_folder(tmp_path, Encoder.simple_string_encoder()))
    assert numbers.execute_and_collect(limit=3) == [0, 1, 2]
    assert list(tmp_path.iterdir()) == []


def test_each_subtask_writes_files_of_its_own(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    sink = in_one_folder(tmp_path, Encoder.simple_string_encoder())
    env.from_collection(["a", "b", "c"], Types.STRING()).sink_to(sink).set_parallelism(2)
    env.execute()
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["a\nc\n", "b\n"]


def test_files_are_named_rolled_and_put_into_buckets_by_the_clock_of_the_job(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    env.get_config().set_arrival_rate(1)
    sink = (
        FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
        .with_output_file_config(
            OutputFileConfig.builder().with_part_prefix("n").with_part_suffix(".txt").build()
        )
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH-mm"))
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4))
        .build()
    )
    env.from_collection(["58", "59", "60", "61", "62"], Types.STRING()).sink_to(sink)
    env.execute()
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.txt"))
    assert {str(path.parent) for path in files} == {"1970-01-01--00-00"}
    assert all(path.name.startswith("n-") for path in files)
    assert sorted((tmp_path / path).read_text() for path in files) == ["58\n59\n", "60\n61\n", "62\n"]


def test_values_that_do_not_fit_a_column_are_refused(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.from_collection([Row("ann", 2**40, 1.0)]).sink_to(in_one_folder(tmp_path, FORMATS["parquet"][0]))
    with pytest.raises(
        DataError, match="field 'age': 1099511627776 is not of type Integer, which has 32 bits"
    ):
        env.execute()


def test_nested_rows_are_structs_in_parquet(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    nested = Types.ROW_NAMED(["id", "tags", "place"], [Types.INT(), Types.LIST(Types.STRING()), PERSON])
    elements = [Row(id=1, tags=["x"], place=Row(user="a", age=1, score=0.5))]
    env.from_collection(elements, nested).sink_to(
        in_one_folder(tmp_path, ParquetBulkWriters.for_row_type(nested))
    )
    env.execute()
    (path,) = tmp_path.iterdir()
    assert pq.read_table(path).to_pylist() == [
        {"id": 1, "tags": ["x"], "place": {"user": "a", "age": 1, "score": 0.5}}
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FileSink.for_row_format("x", "utf-8"), "for_row_format takes an encoder"),
        (lambda: FileSink.for_bulk_format("x", 5), "for_bulk_format takes a factory"),
        (
            lambda: FileSink.for_row_format("s3://x", Encoder.simple_string_encoder()),
            "writes into a local directory",
        ),
        (lambda: ParquetBulkWriters.for_row_type(Types.INT()), "takes a type such as Types.ROW_NAMED"),
        (
            lambda: ParquetBulkWriters.for_row_type(Types.ROW([Types.PICKLED_BYTE_ARRAY()])),
            "no column of Arrow",
        ),
        (lambda: CsvReaderFormat.for_schema(CsvSchema.builder().build()), "needs at least one column"),
        (lambda: CsvReaderFormat.for_schema("a,b"), "CSV needs a CsvSchema"),
        (lambda: BucketAssigner.date_time_bucket_assigner("EEE"), "has the fields"),
        (
            lambda: BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Olympus"),
            "no time zone is named",
        ),
        (lambda: RollingPolicy.default_rolling_policy(part_size=0), "above 0"),
    ],
)
def test_settings_of_files_that_have_no_meaning_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_a_header_of_csv_is_checked_only_if_that_is_asked_for(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("score,user\nann,41,1.5\n")
    assert [tuple(row) for row in read(env, FORMATS["csv"][1], tmp_path)] == [("ann", 41, 1.5)]
    with pytest.raises(DataError, match=r"a\.csv .*: the header is score, user, not user, age, score"):
        read(env, CsvReaderFormat.for_schema(replace(CSV, strict_headers=True)), tmp_path)


@pytest.mark.parametrize(
    ("line", "message", "place"),
    [
        ("bob,4.5,1", "row 2: column 'age': '4.5' is not a whole number", {"row": 1, "column": "age"}),
        (
            "bob,2147483648,1",
            "row 2: column 'age': 2147483648 is beyond 32 bits",
            {"row": 1, "column": "age"},
        ),
        ("bob,4,1,2", "row 2: it has 4 values, not 3", {"row": 1}),
        ('"bob"s,4,1', "line 3: 's' follows the end of a quoted value", {}),
    ],
)
def test_a_fault_in_csv_names_its_row_and_column(
    env: StreamExecutionEnvironment, line: str, message: str, place: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(f"user,age,score\nann,41,1.5\n{line}\n")
    with pytest.raises(DataError, match=rf"a\.csv does not have rows of .*: {message}") as caught:
        read(env, FORMATS["csv"][1], tmp_path)
    assert caught.value.place == {"file": str(tmp_path / "a.csv"), **place}


def test_csv_with_a_mark_of_its_encoding_is_read_and_other_zero_bytes_are_refused(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        path.write_text("user,age,score\nänn,41,1.5\n", encoding)
        assert [tuple(row) for row in read(env, FORMATS["csv"][1], path)] == [("änn", 41, 1.5)]
    path.write_text("user,age,score\nann,41,1.5\n", "utf-16-le")
    with pytest.raises(DataError, match="it is not UTF-8, but UTF-16 or UTF-32, or not text"):
        read(env, FORMATS["csv"][1], path)


def test_types_of_the_table_api_are_those_of_rows() -> None:
    schema = (
        CsvSchema.builder()
        .add_number_column("id")
        .add_array_column("tags", "|", DataTypes.DOUBLE())
        .add_array_column("more", element_type=Types.INT())
        .build()
    )
    expected = Types.ROW_NAMED(
        ["id", "tags", "more"], [Types.LONG(), Types.LIST(Types.DOUBLE()), Types.LIST(Types.INT())]
    )
    assert CsvReaderFormat.for_schema(schema).produced_type() == expected
    people = DataTypes.ROW(
        [DataTypes.FIELD("user", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT())]
    )
    assert ParquetColumnarRowInputFormat(people).produced_type().get_field_names() == ["user", "n"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda builder: builder.set_column_separator("ab"),
            "Column separator must be a single char, got ab",
        ),
        (lambda builder: builder.set_quote_char(""), "Quote char must be a single char"),
        (lambda builder: builder.set_escape_char("ab"), "Escape char must be a single char"),
        (
            lambda builder: builder.remove_array_element_separator(3),
            "there is no column 3, from 0: there are 1",
        ),
        (lambda builder: builder.add_number_column("n", int), "the column 'n' has a type such as"),
        (lambda builder: builder.add_string_column(5), "the name of a column is a text"),
        (
            lambda builder: CsvBulkWriters.for_schema(builder.add_string_column("a").build()),
            "not 'a' twice",
        ),
        (
            lambda builder: CsvReaderFormat.for_schema(
                builder.add_number_column("n", DataTypes.TIMESTAMP_LTZ(3)).build()
            ),
            "'n' of CSV has no values of the type LocalZonedTimestampType",
        ),
    ],
)
def test_a_schema_of_csv_that_has_no_meaning_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(CsvSchema.builder().add_string_column("a"))


def test_decimals_of_csv_have_the_digits_of_their_column_without_zeros_at_the_end(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    schema = CsvSchema.builder().add_number_column("m", DataTypes.DECIMAL(6, 2)).set_null_value("-").build()
    values = ["1.50", "1.555", "1000", "0.00", "-0.005", "12345.6"]
    rows = [Row(Decimal(value)) for value in values]
    sink = in_one_folder(tmp_path, CsvBulkWriters.for_schema(schema))
    env.from_collection(rows, Types.ROW_NAMED(["m"], [Types.BIG_DEC()])).sink_to(sink)
    env.execute()
    (path,) = tmp_path.iterdir()
    assert path.read_text().split() == ["1.5", "1.56", "1E+3", "0", "-0.01", "-"]
