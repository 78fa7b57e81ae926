"""Records of CSV and JSON lines that cannot be read, among those that can."""

import gzip
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkcore.log.files.log_files import discover_files
from flinkcore.log.formats.bad_records import BAD_RECORD, BadRecord, examined, records_of
from flinkcore.log.formats.file_format import ColumnsToRead
from flinkcore.log.formats.text_formats import CsvFormat, JsonFormat


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
