"""The command `flinkcore lateness`, in this process and with the embedded engine."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore.cli import main
from flinkcore.cli.lateness import share_of
from flinkcore.errors import ConfigurationError
from flinkcore.examples import flights

FLIGHTS = ["lateness", str(flights.LOG), "--timestamp", "date", "--arrival", "arrival"]


def told(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main([*FLIGHTS, *options]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 1
    return capsys.readouterr().err


def test_the_text_says_what_bounds_lose_and_delay(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "--out-of-orderness", "30min", "--window", "tumbling:1h", "--allowed-lateness", "1h")
    first, decides, _, title, head, *_ = text.splitlines()
    assert first.startswith("33,798 events of 1 split, out of order by up to ")
    assert "your 30 min lose" in decides
    assert title.startswith(
        "Lost are events late for all their tumbling windows of 1 h, allowed lateness 1 h;"
    )
    assert head.split() == [
        "bound",
        "loses",
        "events",
        "incomplete",
        "windows",
        "wait",
        "(median)",
        "99",
        "%",
        "longest",
    ]


def test_a_share_and_a_delay_give_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "--window", "tumbling:1h", "--lose", "1%", "--delay", "10h").splitlines()
    assert len(text) == 2
    assert "loses 1 % of the events" in text[0] or "loses 0.9" in text[0]
    assert text[1].startswith(
        "Results of tumbling windows of 1 h of which 99 % wait no longer than 10 h allow a bound of"
    )


def test_figures_and_splits_are_written_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "lateness")
    text = told(
        capsys, "--split", "origin", "--by-split", "--output", output, "--bound", "1h", "--bound", "2h"
    )
    head, first = text.splitlines()[-23:-21]
    assert head.split("  ")[0] == "split"
    assert "holds the watermark" in head
    assert re.search(r"PSG +2 +0 +0 % +0 ms +22 h 31 min +41 % +11 h 29 min +1 day 15 h", first)
    assert f"figures: {output}" in text
    assert pq.read_table(f"{output}/frontier.parquet")["bound_ms"].to_pylist() == [0, 3_600_000, 7_200_000]
    assert pq.read_table(f"{output}/splits.parquet").num_rows == 223


def test_figures_are_not_written_over_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["lateness", "no-such-file.parquet", "--timestamp", "ts", "--output", str(tmp_path)]
    assert f"--output {tmp_path} exists; name a directory that does not" in refused(capsys, *options)


def test_shares_are_written_as_people_do() -> None:
    assert [share_of(text) for text in ("0.1%", "0.001", "100 %", "0", ".5")] == [0.001, 0.001, 1.0, 0.0, 0.5]
    for text in ("", "2", "-1%", "0.1%%", "one"):
        with pytest.raises(ConfigurationError, match="not a share"):
            share_of(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lose", "2"], "--lose '2' is not a share of the events"),
        (["--delay", "soon"], "'soon' is not a duration"),
        (["--delay", "-4s"], "--delay '-4s' is negative"),
        (["--bound", "-1s"], "--bound '-1s' is negative"),
        (["--window", "session:1h"], "The command has no option for such calls of a program"),
        (["--window", "daily"], "'daily' is not a window"),
        (["--allowed-lateness", "1h"], "--allowed-lateness needs --window"),
        (["--split", "a", "--split-per-file"], "exclude each other"),
    ],
)
def test_options_are_checked_before_anything_is_read(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, "lateness", "no-such-file.parquet", "--timestamp", "ts", *options)
    assert message in error
    assert "no-such-file" not in error


def test_an_invalid_log_is_reported_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"ts": [1]}), tmp_path / "log.parquet")
    log = str(tmp_path / "log.parquet")
    assert "names column 'nothing', which the log does not have: ts" in refused(
        capsys, "lateness", log, "--timestamp", "nothing", "--engine", "spark", "--master", "none"
    )


def test_a_delay_that_no_bound_reaches_is_an_error_that_names_the_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [*FLIGHTS, "--window", "tumbling:1h", "--delay", "1s"]
    assert "no bound makes them come within 1 s; --by-split shows" in refused(
        capsys, *options, "--split", "origin"
    )
    assert refused(capsys, *options).strip().endswith("no bound makes them come within 1 s")


def test_splits_are_shown_also_where_no_bound_reaches_a_delay(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--window", "tumbling:1h", "--split", "origin", "--by-split", "--lose", "1%", "--delay", "1s"]
    assert main([*FLIGHTS, *options]) == 1
    text, error = capsys.readouterr()
    bound, *_, rest = text.strip().splitlines()
    assert bound.startswith("A bound of ")
    assert "holds the watermark" in text
    assert rest == "… 203 more rows"
    assert "no bound makes them come within 1 s" in error


def test_a_page_is_drawn_if_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "lateness.html"
    assert told(capsys, "--window", "tumbling:1h", "--report", str(page)).endswith(f"report: {page}\n")
    assert "What each bound loses" in page.read_text(encoding="utf-8")
    missing = str(tmp_path / "missing" / "lateness.html")
    assert "a report cannot be written to" in refused(capsys, *FLIGHTS, "--report", missing)
