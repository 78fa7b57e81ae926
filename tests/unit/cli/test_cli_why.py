"""`flinkcore why` tells of one key of the flights that come with the package."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flinkcore.cli import main
from flinkcore.examples.flights import LOG

FLIGHTS = [
    *("why", str(LOG), "--timestamp", "date", "--arrival", "arrival", "--split", "origin"),
    *(
        "--window",
        "tumbling:1h",
        "--out-of-orderness",
        "30m",
        "--idleness",
        "30m",
        "--allowed-lateness",
        "1h",
    ),
]


def test_the_story_of_an_hour_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FLIGHTS, "--key", "origin=ATL", "--at", "2001-01-02T11:00"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(
        "origin = 'ATL'\n  25 rows, 24 in window (2 behind the watermark, but in time), 1 late"
    )
    assert "LATE for [2001-01-02 11:00:00, 12:00:00): to the side output 'late'" in told
    assert "an out-of-orderness bound of 1 h 9 min 1 ms or an allowed lateness of 1 h 39 min 1 ms" in told


def test_a_key_in_another_case_is_told_how_the_log_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FLIGHTS, "--key", "origin=Atl"]) == 0
    told = capsys.readouterr().out
    assert (
        "0 rows; 0 firings; times in UTC\n  note: no row has this key, but there are rows with 'ATL'\n"
        in told
    )


def test_a_window_beyond_the_log_is_told_the_times_of_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FLIGHTS, "--key", "origin=ATL", "--at", "2002-01-02T11:00"]) == 0
    told = capsys.readouterr().out
    assert (
        "note: no window that was asked for has a row of this key: it has 1,348, of event times from 2001"
        in told
    )


def test_a_page_is_drawn_if_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "why.html"
    arguments = [*FLIGHTS, "--key", "origin=HNL", "--at", "2001-01-02T11:00"]
    assert main([*arguments, "--report", str(page)]) == 0
    assert capsys.readouterr().out.endswith(f"report: {page}\n")
    assert "Events and firings of the key" in page.read_text(encoding="utf-8")
    assert main([*arguments, "--report", str(tmp_path / "missing" / "why.html")]) == 1
    assert "a report cannot be written to" in capsys.readouterr().err


def test_the_tables_are_written_if_a_directory_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *FLIGHTS,
        "--key",
        "origin=HNL",
        "--aggregate",
        "n=count()",
        "--output",
        str(tmp_path / "why"),
    ]
    assert main(arguments) == 0
    events = pq.read_table(tmp_path / "why" / "events.parquet")
    firings = pq.read_table(tmp_path / "why" / "firings.parquet")
    assert (
        pq.read_table(tmp_path / "why" / "timers.parquet").num_rows == 0
    )  # windows over columns register none
    counted = sum(len(numbers) for numbers in firings.column("events").to_pylist())
    assert events.num_rows > 0
    assert counted >= events.num_rows - events.column("fate").to_pylist().count("late")
    assert main(arguments) == 1
    assert "exists; name a directory that does not" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--key", "origin"], "--key 'origin' is not a key; write COLUMN=VALUE, such as origin=ATL"),
        (["--key", "origin=ATL", "--key", "origin=SFO"], "'origin' is given twice"),
        (["--key", "destination=ATL", "--at", "noon"], "--at is a time within it"),
        (["--key", "delay=long"], "not a value of the key column 'delay'"),
    ],
)
def test_arguments_are_checked_before_the_log_is_read(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FLIGHTS, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_an_invalid_job_is_reported_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*FLIGHTS, "--key", "nothing=ATL", "--engine", "spark", "--master", "none"]
    assert main(arguments) == 1
    assert "nothing" in capsys.readouterr().err
