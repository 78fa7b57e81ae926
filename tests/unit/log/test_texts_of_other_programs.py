"""Text files as other programs write them: encodings, tabs, arrays of JSON, and compressed files under other names."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import flinkcore as fc
from flinkcore.errors import ConfigurationError, SchemaError, SourceError

ROWS = [{"ts": 0, "user": "Zoë, née"}, {"ts": 1, "user": "Günther"}]
CSV = "ts,user\n" + "".join(f'{row["ts"]},"{row["user"]}"\n' for row in ROWS)


def rows(path: Path, **settings: Any) -> list[dict[str, Any]]:
    environment = fc.StreamExecutionEnvironment.get_execution_environment()
    return environment.from_event_log(str(path), timestamp="ts", **settings).to_arrow().to_pylist()


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "iso8859-15", "utf-16", "utf-16-le", "utf-32", "UTF8", "utf-8-sig"]
)
@pytest.mark.parametrize("on_bad_row", ["fail", "drop"])
def test_csv_is_read_in_the_encoding_that_is_named(encoding: str, on_bad_row: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(CSV.encode(encoding))
    options = {"encoding": encoding}
    assert rows(tmp_path / "log.csv", format_options=options, on_bad_row=on_bad_row) == ROWS


def test_an_encoding_goes_with_compression_and_values_with_line_breaks(tmp_path: Path) -> None:
    text = CSV.replace("Günther", "Gün\nther")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text.encode("cp1252")))
    options = {"encoding": "cp1252", "newlines_in_values": True}
    assert [row["user"] for row in rows(tmp_path / "log.csv.gz", format_options=options)] == [
        "Zoë, née",
        "Gün\nther",
    ]
    with pytest.raises(SourceError, match="newlines_in_values"):
        rows(tmp_path / "log.csv.gz", format_options={"encoding": "cp1252"})


def test_characters_across_the_blocks_of_a_file_are_read_in_its_encoding(tmp_path: Path) -> None:
    count = 200_000
    text = "ts,user\n" + "".join(f"{number},é{'ü' * (number % 7)}\n" for number in range(count))
    (tmp_path / "log.csv").write_bytes(text.encode("utf-16-le"))
    options = {"encoding": "utf-16-le", "block_bytes": 1 << 20}
    read = rows(tmp_path / "log.csv", format_options=options)
    assert [row["user"] for row in read] == [f"é{'ü' * (number % 7)}" for number in range(count)]


def test_text_that_is_not_utf8_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(CSV.encode("latin-1"))
    with pytest.raises(
        SchemaError, match=r"log\.csv has text that is not UTF-8: .*format_options=\{'encoding': 'latin-1'\}"
    ):
        rows(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_bytes(CSV.encode("utf-16"))
    with pytest.raises(SourceError, match=r"UTF-16 or UTF-32.*format_options=\{'encoding': 'utf-16'\}"):
        rows(tmp_path / "log.csv")


def test_text_in_another_encoding_than_the_named_one_is_an_error_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(CSV.encode("latin-1"))
    with pytest.raises(SourceError, match=r"log\.csv cannot be read: 'ascii' codec can't decode byte 0xeb"):
        rows(tmp_path / "log.csv", format_options={"encoding": "ascii"})


@pytest.mark.parametrize("encoding", ["latin-7000", "", 8, "rot13", "base64"])
def test_an_encoding_that_is_not_one_of_text_is_refused(encoding: Any, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)
    message = f"encoding is the name of an encoding of text, .*, not {re.escape(repr(encoding))}$"
    with pytest.raises(ConfigurationError, match=message):
        rows(tmp_path / "log.csv", format_options={"encoding": encoding})


@pytest.mark.parametrize("name", ["log.tsv", "log.TSV", "log.tsv.gz"])
def test_files_of_tabs_are_read_by_their_ending(name: str, tmp_path: Path) -> None:
    text = "ts\tuser\n" + "".join(f"{row['ts']}\t{row['user']}\n" for row in ROWS)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert rows(tmp_path / name) == ROWS
    assert rows(tmp_path / name, format="tsv") == ROWS
    assert rows(tmp_path / name, format="csv", format_options={"delimiter": "\t"}) == ROWS


def test_a_delimiter_that_is_given_counts_more_than_the_ending(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text(CSV)
    assert rows(tmp_path / "log.tsv", format_options={"delimiter": ","}) == ROWS


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("before", ["", "\n "])
def test_a_file_that_is_one_array_names_the_command_that_makes_lines(
    indent: int | None, before: str, tmp_path: Path
) -> None:
    (tmp_path / "log.json").write_text(before + json.dumps(ROWS, indent=indent))
    with pytest.raises(
        SourceError, match=r"log\.json cannot be read: line \d is an array, and not an object.*jq -c '\.\[\]'"
    ):
        rows(tmp_path / "log.json")


def test_a_line_that_is_an_array_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"ts": 0}\n[{"ts": 1}]\n')
    with pytest.raises(SourceError, match="line 2 is an array, and not an object"):
        rows(tmp_path / "log.json")
    assert rows(tmp_path / "log.json", on_bad_row="drop") == [{"ts": 0}]


@pytest.mark.parametrize("name", ["log.json", "log.csv", "log.tsv"])
def test_a_compressed_file_under_another_name_says_how_to_name_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"ts,user\n0,a\n"))
    with pytest.raises(SourceError, match=r"it is compressed, but its name.*end in \.gz, \.bz2, \.zst or"):
        rows(tmp_path / name)


def test_a_path_of_the_home_directory_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(CSV)
    environment = fc.StreamExecutionEnvironment.get_execution_environment()
    stream = environment.from_event_log("~/log.csv", timestamp="ts")
    stream = stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
    counts = stream.key_by("user").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_millis(1)))
    counts.aggregate(n=fc.count()).execute(stop_with_checkpoint="~/checkpoint").to_arrow()
    stream.write_parquet("~/out", mode="overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "log.csv", "out"]
    assert pa.parquet.read_table(tmp_path / "out").num_rows == 2
