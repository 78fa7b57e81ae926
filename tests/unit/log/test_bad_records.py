"""Records of CSV and JSON lines that cannot be read, among those that can."""

import gzip
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import OutputTag, StreamExecutionEnvironment
from flinkcore.errors import FlinkcoreError
from flinkcore.log.files.log_files import discover_files
from flinkcore.log.formats import text_formats
from flinkcore.log.formats.bad_records import BAD_RECORD, BadRecord, examined, records_of
from flinkcore.log.formats.csv_format import CsvFormat
from flinkcore.log.formats.file_format import ColumnsToRead
from flinkcore.log.formats.json_format import JsonFormat


def read(path, text_format, **types):
    """Return rows, and (line, text, reason) of bad records, with the number of rows before each."""
    (file,) = discover_files(path)
    columns = ColumnsToRead(pa.schema(types), {}, (), 1000)
    batches = list(text_format.batches(file, None, columns))
    table = (
        pa.concat_tables(
            pa.Table.from_batches([batch])
            for batch in batches
            if BAD_RECORD in batch.schema.names or batch.num_rows
        )
        if batches
        else None
    )
    rows, bad = [], []
    for row in table.to_pylist():
        fault = row.pop(BAD_RECORD, None)
        if fault is None:
            rows.append(row)
        else:
            bad.append((fault["line"], fault["text"], fault["reason"], len(rows)))
            assert set(row.values()) <= {None}
    return rows, bad


@pytest.mark.parametrize("name", ["log.json", "log.json.gz"])
def test_lines_of_json_that_cannot_be_read_are_found(tmp_path, name):
    text = '{"ts":1}\nnull\n{"ts":\n{"ts":"x"}\n\n[1]\n{"ts":5}\n{"ts"'
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    rows, bad = read(tmp_path / name, JsonFormat(is_lenient=True), ts=pa.int64())
    assert rows == [{"ts": 1}, {"ts": 5}]
    assert [(line, text, before) for line, text, _, before in bad] == [
        (2, "null", 1),
        (3, '{"ts":', 1),
        (4, '{"ts":"x"}', 1),
        (6, "[1]", 1),
        (8, '{"ts"', 2),
    ]
    assert [reason for _, _, reason, _ in bad] == [
        "null where an object belongs",
        "Invalid value",
        "Column(/ts) changed from number to string",
        "Column() changed from object to array",
        "Missing a colon after a name of object member",
    ]


CSV = 'ts,k,n\n1,a,1\n2,b\n3,"c,2\n\n4,d,x\n5,e,5,9\n6,"f""g",6\n7,h\n'


def test_lines_of_csv_that_cannot_be_read_are_found(tmp_path):
    (tmp_path / "log.csv").write_text(CSV)
    rows, bad = read(
        tmp_path / "log.csv", CsvFormat(is_lenient=True), ts=pa.int64(), k=pa.string(), n=pa.int64()
    )
    assert rows == [{"ts": 1, "k": "a", "n": 1}, {"ts": 6, "k": 'f"g', "n": 6}]
    assert bad == [
        (3, "2,b", "Expected 3 columns, got 2", 1),
        (4, '3,"c,2', "a quote is missing", 1),
        (6, "4,d,x", "CSV conversion error to int64: invalid value 'x'", 1),
        (7, "5,e,5,9", "Expected 3 columns, got 4", 1),
        (9, "7,h", "Expected 3 columns, got 2", 2),
    ]


def test_records_of_csv_may_have_line_breaks_in_quotes(tmp_path):
    (tmp_path / "log.csv").write_text('ts,k\n1,"a\nb"\nx,"c\n\nd"\n3,e\n4,"open\n5,f\n')
    text_format = CsvFormat(newlines_in_values=True, is_lenient=True)
    rows, bad = read(tmp_path / "log.csv", text_format, ts=pa.int64(), k=pa.string())
    assert rows == [{"ts": 1, "k": "a\nb"}, {"ts": 3, "k": "e"}]
    assert [(line, text) for line, text, _, _ in bad] == [(4, 'x,"c\n\nd"'), (8, '4,"open\n5,f')]


def test_lines_are_counted_over_records_that_blocks_cut(tmp_path, monkeypatch):
    whole = CsvFormat._blocks_of_records
    monkeypatch.setattr(CsvFormat, "_blocks_of_records", lambda self, file, _: whole(self, file, 8))
    (tmp_path / "log.csv").write_text('ts,k\n1,"a\nb\nc\nd\ne\nf"\n2,"g\nh"\nx,i\n3,j\ny,k\n')
    text_format = CsvFormat(newlines_in_values=True, is_lenient=True)
    rows, bad = read(tmp_path / "log.csv", text_format, ts=pa.int64(), k=pa.string())
    assert [row["ts"] for row in rows] == [1, 2, 3]
    assert [(line, text) for line, text, _, _ in bad] == [(10, "x,i"), (12, "y,k")]


@pytest.mark.parametrize("second", [[], [250]])
def test_a_quote_that_is_never_closed_costs_its_line_and_no_unbounded_memory(tmp_path, monkeypatch, second):
    monkeypatch.setattr(text_formats, "BLOCK_BYTES", 64)
    monkeypatch.setattr(text_formats, "MOST_BLOCKS_OF_LINE", 4)
    whole, held = CsvFormat._blocks_of_records, []

    def blocks(self, file, _):
        for records in whole(self, file, 64):
            held.append(sum(len(record.text) for record in records))
            yield records

    monkeypatch.setattr(CsvFormat, "_blocks_of_records", blocks)
    wrong = {50, *second}
    lines = [f"{number},{chr(34) * (number in wrong)}v{number}\n" for number in range(300)]
    (tmp_path / "log.csv").write_text("ts,k\n" + "".join(lines))
    text_format = CsvFormat(newlines_in_values=True, is_lenient=True)
    rows, bad = read(tmp_path / "log.csv", text_format, ts=pa.int64(), k=pa.string())
    assert max(held) < 600
    assert bad[0][:3] == (52, '50,"v50', "a quote is missing")
    lost = {int(line.partition(",")[0]) for _, text, _, _ in bad for line in text.splitlines()}
    assert wrong <= lost
    assert [row["ts"] for row in rows] == [number for number in range(300) if number not in lost]
    assert len(lost) < 80


@pytest.mark.parametrize("text_format", [CsvFormat, JsonFormat])
def test_types_are_those_of_records_that_can_be_read(tmp_path, text_format):
    text = (
        CSV if text_format is CsvFormat else 'null\n{"ts":1,"k":"a","n":2}\n{"ts":"x"}\n{"ts":2,"m":1.5}\n{'
    )
    (tmp_path / "log").write_text(text)
    (file,) = discover_files(tmp_path / "log")
    found = {"ts": pa.int64(), "k": pa.string(), "n": pa.string()}
    if text_format is JsonFormat:
        found |= {"n": pa.int64(), "m": pa.float64()}
    assert text_format(is_lenient=True).schema(file) == pa.schema(found)


@pytest.mark.parametrize("text", ["", "\n\n", "ts,k\n", "ts,k\nx\n"])
def test_a_file_of_csv_without_sound_records_has_none(tmp_path, text):
    (tmp_path / "log.csv").write_text(text)
    (file,) = discover_files(tmp_path / "log.csv")
    text_format = CsvFormat(is_lenient=True)
    columns = ColumnsToRead(pa.schema({"ts": pa.int64()}), {}, (), 1000)
    batches = list(text_format.batches(file, None, columns))
    assert sum(batch.num_rows - batch.column(BAD_RECORD).drop_null().__len__() for batch in batches) == 0


@settings(deadline=None)
@given(lines=st.lists(st.sampled_from([b"1\n", b"x\n", b"\n", b"12\n", b'"\n'])), size=st.integers(1, 5))
def test_every_record_is_sound_or_bad_and_in_its_place(lines, size):
    def parse(text):
        values = text.split()
        if not all(value.isdigit() for value in values):
            raise pa.ArrowInvalid("In CSV column #0: Row #7: no number")
        return pa.table({"n": [int(value) for value in values]})

    found = []
    for part in examined(records_of(b"".join(lines), 1), parse):
        if isinstance(part, BadRecord):
            assert part.reason == "no number"
            found.append((part.record.line, part.record.text))
        else:
            found += [(None, b"%d\n" % n) for n in part.rows["n"].to_pylist()]
    assert [text for _, text in found] == [line for line in lines if line.strip()]
    numbers = [number for number, line in enumerate(lines, 1) if line.strip() and not line.strip().isdigit()]
    assert [line for line, _ in found if line is not None] == numbers


def test_without_bad_records_rows_are_those_of_the_strict_reading(tmp_path):
    rows = [{"ts": n, "k": f"key {n % 7}", "x": n / 4} for n in range(1000)]
    (tmp_path / "log.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "log.csv").write_text(
        "ts,k,x\n" + "".join(f"{row['ts']},{row['k']},{row['x']}\n" for row in rows)
    )
    types = {"ts": pa.int64(), "k": pa.string(), "x": pa.float64()}
    assert read(tmp_path / "log.json", JsonFormat(is_lenient=True), **types) == (rows, [])
    assert read(tmp_path / "log.csv", CsvFormat(is_lenient=True), **types) == (rows, [])


# ---- in jobs

BAD = OutputTag("bad")


def write_days(path):
    """Write two files with eight events and seven records that are not: return the shape of the latter."""
    (path / "1.json").write_text(
        "".join(json.dumps({"ts": n, "k": "a", "n": n}) + "\n" for n in range(4)) + 'null\n{"ts": 4,\n'
    )
    (path / "2.json").write_text(
        '{"ts": "soon", "k": "a", "n": 1}\n[]\n'
        + "".join(json.dumps({"ts": n, "k": "b", "n": n}) + "\n" for n in range(4, 8))
        + '{"ts": null, "k": "b"}\n{"ts": 8, "k": "b", "n": "x"}\n{"ts": 9, "k'
    )
    return [
        ("1.json", 4, 5, "null", "unreadable record: null where an object belongs"),
        ("1.json", 5, 6, '{"ts": 4,', "unreadable record: Missing a name for object member"),
        (
            "2.json",
            0,
            1,
            '{"ts": "soon", "k": "a", "n": 1}',
            "unreadable record: Column(/ts) changed from number to string",
        ),
        ("2.json", 1, 2, "[]", "unreadable record: Column() changed from object to array"),
        ("2.json", 6, None, None, "null timestamp"),
        (
            "2.json",
            7,
            8,
            '{"ts": 8, "k": "b", "n": "x"}',
            "unreadable record: Column(/n) changed from number to string",
        ),
        ("2.json", 8, 9, '{"ts": 9, "k', "unreadable record: Missing a closing quotation mark in string"),
    ]


def events_of(path, on_bad_row, **settings):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    log = env.from_event_log(str(path), timestamp="ts", on_bad_row=on_bad_row, **settings)
    return log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


def test_a_job_goes_on_after_bad_records_and_counts_them(tmp_path):
    write_days(tmp_path)
    result = events_of(tmp_path, "drop").execute()
    assert sorted(result.to_arrow()["n"].to_pylist()) == list(range(8))
    assert result.report.rejected == {"unreadable record": 6, "null timestamp": 1}


def test_a_side_output_has_bad_records_with_their_place_text_and_reason(tmp_path):
    expected = write_days(tmp_path)
    result = events_of(tmp_path, BAD).execute()
    assert result.to_arrow().num_rows == 8
    rows = result.get_side_output(BAD).to_arrow()
    assert rows.schema.names == ["ts", "k", "n", "reason", "record"]
    found = [(*row["record"].values(), row["reason"]) for row in rows.to_pylist()]
    assert sorted(found, key=str) == sorted(
        ((f"{tmp_path}/{file}", row, line, text, reason) for file, row, line, text, reason in expected),
        key=str,
    )


def test_bad_records_are_not_taken_for_rows_that_a_filter_drops(tmp_path):
    write_days(tmp_path)
    env = StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(str(tmp_path), timestamp="ts", on_bad_row=BAD).filter(pc.field("k") == "a")
    result = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).execute()
    assert result.to_arrow()["n"].to_pylist() == [0, 1, 2, 3]
    assert result.get_side_output(BAD).to_arrow().num_rows == 6
    assert result.report.filtered == 5


def test_a_job_fails_at_a_bad_record_unless_it_says_otherwise(tmp_path):
    write_days(tmp_path)
    with pytest.raises(FlinkcoreError, match=r"1\.json cannot be read: .* line "):
        events_of(tmp_path, "fail").to_arrow()


def test_a_value_that_the_type_of_other_files_does_not_hold_is_a_bad_record(tmp_path):
    pq.write_table(pa.table({"ts": [1, 2, 3], "n": [5, 2**53 + 1, 6]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"ts": [4], "n": [0.5]}), tmp_path / "2.parquet")
    result = events_of(tmp_path, BAD).execute()
    assert result.to_arrow()["n"].to_pylist() == [5.0, 6.0, 0.5]
    assert result.get_side_output(BAD).to_arrow().to_pylist() == [
        {
            "ts": 2,
            "n": None,
            "reason": "unreadable record: 'n' is 9007199254740993, which double does not hold",
            "record": {"file": f"{tmp_path}/1.parquet", "row": 1, "line": None, "text": None},
        }
    ]


def test_blocks_with_bad_records_and_without_come_together(tmp_path, monkeypatch):
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", 16)
    write_days(tmp_path)
    result = events_of(tmp_path, "drop").execute()
    assert sorted(result.to_arrow()["n"].to_pylist()) == list(range(8))


def test_rows_have_their_order_by_position_also_among_bad_records(tmp_path):
    lines = ['{"ts": 3, "at": 2}', "null", '{"ts": 1, "at": 1}', '{"ts"', '{"ts": 2, "at": 0}']
    (tmp_path / "1.json").write_text("\n".join(lines) + "\n")
    result = events_of(tmp_path, "drop", position="at").execute()
    assert result.to_arrow()["ts"].to_pylist() == [2, 1, 3]
    assert result.report.rejected == {"unreadable record": 2}
