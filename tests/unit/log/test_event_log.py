"""The description of an event log."""

import errno
import gc
import gzip
import math
import os
import pickle
import subprocess
import sys
import traceback
import types
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from equipment.arrow_protocol import ArrowArray, ArrowSchema, Liar, LyingStream
from equipment.event_logs import event_log

from flinkcore._internal.io import text_files
from flinkcore._internal.io.text_files import CsvRows, csv_contents
from flinkcore.common import WatermarkStrategy
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import FILE
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError
from flinkcore.log.formats.file_format import source_faults
from flinkcore.log.sources.log_sources import TableSource

TABLE = pa.table({"ts": [1, 2, 3], "at": [4, 5, 6], "origin": ["a", "b", "a"]})


def test_a_table_and_a_path_describe_the_same_log(tmp_path):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    for data in (TABLE, tmp_path / "log.parquet", str(tmp_path), [str(tmp_path / "*.parquet")]):
        log = event_log(data, timestamp="ts", arrival="at", split="origin")
        assert log.schema == TABLE.schema
        (chunk,) = log.chunks(1)
        assert next(chunk.read(None, 10)).to_pydict() == TABLE.to_pydict()


def test_a_log_survives_pickling(tmp_path):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    log = event_log(tmp_path, timestamp="ts", split=FILE, on_bad_row=OutputTag("bad"))
    again = pickle.loads(pickle.dumps(log))
    assert again.split is FILE
    assert again.on_bad_row == OutputTag("bad")
    assert [chunk.label for chunk in again.chunks(1)] == [f"{tmp_path}/log.parquet"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"timestamp": ""}, "timestamp must be the name of a column or a pyarrow expression, not ''"),
        ({"arrival": 3}, "arrival must be the name of a column or a pyarrow expression, not 3"),
        ({"split": ""}, "split must be the name of a column, FILE, PARTITION or None, not ''"),
        ({"split": FILE}, "split=FILE needs a log of files"),
        ({"rate": 0}, "rate must be a number of records per second above zero, not 0"),
        ({"rate": math.nan}, "rate must be a number of records per second above zero, not nan"),
        ({"rate": math.inf}, "rate must be a number of records per second above zero, not inf"),
        ({"rate": "fast"}, "rate must be a number of records per second above zero, not 'fast'"),
        ({"arrival_start_ms": 1.5}, "arrival_start_ms must be an integer, not 1.5"),
        (
            {"arrival_start_ms": 2**63},
            "arrival_start_ms is a number of milliseconds since the epoch in 64 bits",
        ),
        ({"on_bad_row": "ignore"}, "on_bad_row must be 'fail', 'drop' or an OutputTag, not 'ignore'"),
        (
            {"on_bad_row": np.array(["drop", "fail"])},
            "on_bad_row must be 'fail', 'drop' or an OutputTag, not array",
        ),
        ({"format": "csv"}, "have no meaning for in-memory data"),
    ],
)
def test_a_setting_without_meaning_is_an_error_that_names_it(setting, message):
    with pytest.raises(ConfigurationError, match=message):
        event_log(TABLE, **{"timestamp": "ts", **setting})


@pytest.mark.parametrize("setting", ["arrival", "split"])
def test_a_column_that_is_not_there_is_an_error_that_lists_those_that_are(setting):
    with pytest.raises(
        SchemaError, match=f"{setting}= names column 'TS', which .* have: ts, at, origin. Did you mean 'ts'?"
    ):
        event_log(TABLE, timestamp="ts", **{setting: "TS"})


@pytest.mark.parametrize(
    ("first_line", "advice"),
    [
        ("a,b", ""),
        (
            "17706,u1",
            ". If the first line of the file is no header, put one before it, with the names of the columns",
        ),
        ("ts;user", ". If ';' stands between columns, give format_options={'delimiter': ';'}"),
    ],
)
def test_a_csv_file_without_a_header_or_with_another_delimiter_is_told(tmp_path, first_line, advice):
    (tmp_path / "log.csv").write_text(f"{first_line}\n1,2\n" if "," in first_line else f"{first_line}\n1;2\n")
    with pytest.raises(SchemaError) as error:
        event_log(tmp_path / "log.csv", timestamp="ts", arrival="at")
    assert str(error.value).endswith(f"{first_line.replace(',', ', ')}{advice}")


def test_a_time_column_that_is_text_because_of_one_row_is_told():
    events = StreamExecutionEnvironment().from_event_log(
        pa.table({"ts": ["1770681594542", "ts"]}), timestamp="ts"
    )
    message = (
        "column 'ts' holds '1770681594542', a number as text. If all its values are numbers, give their unit, "
        "timestamp_unit='ms'. If not, look for a row with a word, such as a second header; repair the log"
    )
    with pytest.raises(DataError, match=message):
        events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).to_arrow()


def test_the_error_of_times_in_another_form_of_text_names_an_expression_that_parses_them():
    log = pa.table({"ts": ["31.01.2001 12:00:00"]})

    def replayed(timestamp):
        events = StreamExecutionEnvironment().from_event_log(log, timestamp=timestamp)
        monotonous = WatermarkStrategy.for_monotonous_timestamps()
        return events.assign_timestamps_and_watermarks(monotonous).execute()

    with pytest.raises(DataError, match=r"holds '31\.01\.2001 12:00:00', which is not ISO 8601") as error:
        replayed("ts").to_arrow()
    expression = str(error.value).split("in place of the column: ")[1].split(", or on a Spark DataFrame")[0]
    report = replayed(eval(expression, {"pyarrow": pa})).report
    assert report.min_timestamp_ms == report.max_timestamp_ms == 980_942_400_000


def test_data_that_is_neither_paths_nor_arrow_is_an_error():
    with pytest.raises(ConfigurationError, match="not from int"):
        event_log(7, timestamp="ts")


def test_a_log_has_at_least_one_chunk():
    with pytest.raises(ConfigurationError, match="at least 1, not 0"):
        event_log(TABLE, timestamp="ts").chunks(0)


def test_a_log_without_files_is_an_error_when_it_is_described(tmp_path):
    with pytest.raises(SourceError, match="no file matches"):
        event_log(tmp_path / "*.parquet", timestamp="ts")


def test_arrow_data_of_other_libraries_is_checked_before_it_is_read() -> None:
    batch = pa.record_batch({"at": [1, 2], "text": ["a", "b"]})

    def lie(schema: ArrowSchema, array: ArrowArray) -> None:
        array.children[1].contents.buffers[1] = None

    assert TableSource.of(LyingStream(batch)).table.equals(pa.table(batch))
    assert TableSource.of(Liar(batch)).table.equals(pa.table(batch))
    for liar in (Liar(batch, lie), LyingStream(batch, lie)):
        with pytest.raises(
            DataError, match=r"column 'text' from .* is broken: the offsets of its values are missing"
        ):
            TableSource.of(liar)


def test_values_of_arrow_data_of_other_libraries_are_checked() -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    batch = pa.record_batch({"at": [1], "text": text})
    with pytest.raises(DataError, match=r"the Arrow data from LyingStream is broken: .*[Cc]olumn 1.*UTF8"):
        TableSource.of(LyingStream(batch))


def test_a_pipe_is_no_file_of_a_log(tmp_path):
    os.mkfifo(tmp_path / "log.csv")
    for path in (tmp_path / "log.csv", tmp_path / "*.csv"):
        with pytest.raises(SourceError, match="neither a file nor a directory but a pipe"):
            event_log(path, timestamp="ts")


ROW = "1,2,a\n"


def read(path, **options):
    log = event_log(path, timestamp="ts", arrival="at", **options)
    return [batch for chunk in log.chunks(1) for batch in chunk.read(None, 1000)]


@pytest.mark.parametrize("long_row", [0, 1], ids=["first", "later"])
def test_a_row_longer_than_a_block_names_the_option_that_reads_it(tmp_path, long_row):
    rows = [ROW, ROW]
    rows[long_row] = f"1,2,{'x' * (20 << 20)}\n"
    (tmp_path / "log.csv").write_text("ts,at,s\n" + "".join(rows))
    with pytest.raises(
        SourceError, match=r"more than 8,388,608 bytes.*format_options={'block_bytes': 67108864}"
    ):
        read(tmp_path / "log.csv")
    batches = read(tmp_path / "log.csv", format_options={"block_bytes": 67108864})
    assert sum(batch.num_rows for batch in batches) == 2


@pytest.mark.parametrize("size", [0, 1 << 31, 1.5, True, "8"])
def test_a_size_of_blocks_that_has_no_meaning_is_refused(tmp_path, size):
    (tmp_path / "log.csv").write_text("ts,at,s\n" + ROW)
    with pytest.raises(ConfigurationError, match="block_bytes is a number from"):
        read(tmp_path / "log.csv", format_options={"block_bytes": size})


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(
    ("name", "text"), [("log.csv", "ts,at,s\n" + ROW), ("log.jsonl", '{"ts": 1, "at": 2}\n')]
)
def test_text_that_is_no_utf_8_is_told_as_that(tmp_path, encoding, name, text):
    (tmp_path / name).write_text(text, encoding=encoding)
    with pytest.raises(SourceError, match=rf"{name} cannot be read: it is not UTF-8, but UTF-16 or UTF-32"):
        read(tmp_path / name)


def test_a_mark_of_utf_8_is_passed_over(tmp_path):
    (tmp_path / "log.csv").write_text("ts,at,s\n" + ROW, encoding="utf-8-sig")
    assert sum(batch.num_rows for batch in read(tmp_path / "log.csv")) == 1


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "Give this process, and on Spark the executors, the right to read it"),
        (errno.ENOENT, "let nothing remove them while the log is read"),
        (errno.EIO, "The disk or the network file system has failed"),
        (None, "truncated"),
    ],
)
def test_what_the_file_system_refuses_is_not_told_as_damage(number, remedy):
    failure = OSError(number, os.strerror(number)) if number else OSError("no magic bytes")
    with pytest.raises(SourceError, match=remedy), source_faults("log.parquet", "It is truncated"):
        raise failure


def test_a_file_that_is_named_twice_is_read_once(tmp_path):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    path = str(tmp_path / "log.parquet")
    log = event_log([path, path], timestamp="ts", arrival="at")
    assert sum(batch.num_rows for chunk in log.chunks(1) for batch in chunk.read(None, 10)) == 3


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        ([{"ts": number} for number in range(10_000)], r"Table\.from_pylist\(data\)"),
        ({"ts": list(range(10_000))}, r"pyarrow\.table\(data\)"),
    ],
)
def test_python_objects_are_refused_without_all_of_them_in_the_message(data, remedy):
    with pytest.raises(ConfigurationError, match=remedy) as refused:
        StreamExecutionEnvironment().from_event_log(data, timestamp="ts")
    assert len(str(refused.value)) < 500


WITH_A_NULL = pa.array([{"ts": 1}, None])


@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        (
            pa.array([1]),
            SchemaError,
            r"the Int64Array that was given is one of type int64: give pyarrow\.table",
        ),
        (pa.chunked_array([[1]]), SchemaError, "the ChunkedArray that was given is one of type int64"),
        (
            WITH_A_NULL,
            DataError,
            r"1 of the StructArray that was given are: take them out with drop_null\(\)",
        ),
        (pa.chunked_array([WITH_A_NULL]), DataError, "1 of the ChunkedArray that was given are"),
    ],
)
def test_columns_are_a_log_if_they_have_fields_and_no_nulls(data, error, told):
    with pytest.raises(error, match=told):
        TableSource.of(data)
    assert TableSource.of(WITH_A_NULL.drop_null()).table == pa.table({"ts": [1]})


def test_a_reader_that_fails_is_told():
    def batches():
        yield pa.record_batch({"ts": [1]})
        raise ValueError("no more of it")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"ts": pa.int64()}), batches())
    with pytest.raises(
        SourceError, match=r"the Arrow data of the RecordBatchReader cannot be read: .*no more of it\.?$"
    ):
        TableSource.of(reader)


@pytest.mark.parametrize("path", ["", [""], ["a.parquet", ""]])
def test_an_empty_path_is_not_the_working_directory(path):
    with pytest.raises(ConfigurationError, match="an event log is a path"):
        StreamExecutionEnvironment().from_event_log(path, timestamp="ts")


@pytest.mark.parametrize("trial", range(10))
@pytest.mark.parametrize("first", ["1,2", "x,2"])
def test_arrow_has_let_go_of_a_csv_file_that_is_read_in_part(tmp_path, monkeypatch, first, trial):
    blocks = []
    read_buffer = text_files._ArrowsRows.read_buffer

    def watched(self, n_bytes):
        block = read_buffer(self, n_bytes)
        blocks.append(weakref.ref(block))
        return block

    monkeypatch.setattr(text_files._ArrowsRows, "read_buffer", watched)
    (tmp_path / "log.csv").write_text(f"ts,at\n{first}\n" + "1,2\n" * (4 << 20))
    with pa.OSFile(str(tmp_path / "log.csv")) as stream:
        rows = CsvRows(stream, 1 << 20, ",")
        contents = csv_contents(
            rows,
            pacsv.ReadOptions(block_size=1 << 20),
            pacsv.ParseOptions(),
            pacsv.ConvertOptions(column_types={"ts": pa.int64()}),
        )
        try:
            assert next(contents).names == ["ts", "at"]
            next(contents)
        except pa.ArrowInvalid:
            assert first == "x,2"
        contents.close()
        assert all(block() is None for block in blocks)
        assert not [held for held in gc.get_referrers(rows) if isinstance(held, types.MethodType)]


def test_arrow_lets_go_of_a_csv_file_whose_compression_is_damaged(tmp_path):
    whole = gzip.compress(b"ts,at\n" + b"1,2\n" * 2_000_000)
    (tmp_path / "log.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pa.input_stream(str(tmp_path / "log.csv.gz")) as stream:
        rows = CsvRows(stream, 1 << 20, ",")
        with pytest.raises(OSError, match="Truncated compressed stream") as failure:
            list(csv_contents(rows, pacsv.ReadOptions(), pacsv.ParseOptions(), pacsv.ConvertOptions()))
        frames = [frame for frame, _ in traceback.walk_tb(failure.tb)]
        assert not [
            frame for frame in frames if "self" in frame.f_locals and frame.f_code.co_name == "read_buffer"
        ]


def test_a_csv_file_with_a_fault_leaves_no_thread_of_arrow_in_python(tmp_path):
    (tmp_path / "log.csv").write_text("ts,key\nx,a\n" + "1,b\n" * (5 << 20))
    program = f"""if True:
        from flinkcore.common import WatermarkStrategy
        from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
        from flinkcore.datastream.aggregates import count
        from flinkcore.errors import FlinkcoreError
        env = StreamExecutionEnvironment()
        try:
            log = env.from_event_log({str(tmp_path / "log.csv")!r}, timestamp="ts", schema={{"ts": "int64"}})
            keyed = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by("key")
            keyed.window(TumblingEventTimeWindows(10)).aggregate(n=count()).to_arrow()
        except FlinkcoreError as error:
            print("refused")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("refused\n", "", 0)


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("part-00000-3f0b9a52-7c1e-4d53-9a37-0d8f2f1c5a11-c000.snappy.parquet", True),
        ("part-00000.parquet", False),
    ],
)
def test_files_that_spark_has_written_in_no_order_are_told_as_such(tmp_path, name, is_told):
    log = pa.table({"ts": [3, 1, 2], "arrival": [30, 10, 20]})
    pq.write_table(log, tmp_path / name)
    monotonous = WatermarkStrategy.for_monotonous_timestamps()

    def report(**settings):
        events = StreamExecutionEnvironment().from_event_log(tmp_path, timestamp="ts", **settings)
        return events.assign_timestamps_and_watermarks(monotonous).execute().report

    assert ("Spark has written in no order: name position=" in str(report())) is is_told
    (warning,) = report(arrival="arrival").warnings
    assert ("Spark has written the files, with their rows in no order: name position=" in warning) is is_told
    assert "in no order" not in str(report(arrival="arrival", position="ts"))


def test_the_report_says_what_orders_events_that_have_no_arrival(tmp_path):
    pq.write_table(TABLE, tmp_path / "log.parquet")

    def orders(data, **settings):
        events = StreamExecutionEnvironment().from_event_log(data, timestamp="ts", **settings)
        timed = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        return [line for line in str(timed.execute().report).splitlines() if "order of the events" in line]

    without = "for there is no arrival: arrivals are derived at 1,000 events/s, and lateness is not that of production"
    assert orders(tmp_path) == [f"order of the events: that of the files, and of the rows in them, {without}"]
    assert orders(TABLE) == [f"order of the events: that of the rows, {without}"]
    (half,) = orders(TABLE, rate=0.5)
    assert "arrivals are derived at 0.5 events/s" in half
    assert orders(tmp_path, arrival="at") == orders(TABLE, arrival="at") == []


def test_a_column_of_pandas_with_values_of_several_types_is_named():
    frame = pd.DataFrame({"ts": pd.to_datetime(["2024-01-01", "2024-01-02"]), "x": [1, "a"]})
    with pytest.raises(
        SchemaError, match=r"the DataFrame has a column .* column x with type object; Could not .* one type"
    ):
        event_log(frame, timestamp="ts")
