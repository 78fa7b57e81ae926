"""The command line, in this process and with the embedded engine."""

import ast
import io
import json
import logging
import os
import re
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest

import flinkcore
from flinkcore.cli import _OPTIONS, main
from flinkcore.cli.log_options import duration_ms, format_options_of, window_assigner
from flinkcore.cli.replay import named_aggregate, named_aggregates
from flinkcore.datastream import (
    Aggregate,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.window import CumulativeEventTimeWindows
from flinkcore.errors import ConfigurationError
from flinkcore.examples import flights

GOLDEN = Path(__file__).parents[2] / "golden" / "seed_trace.jsonl"
INTERVAL_MS = 200

COUNTED = [
    *("--engine", "embedded", "--timestamp", "ts", "--key", "k"),
    *("--window", "tumbling:10ms", "--aggregate", "n=count()"),
]


def seed_traces() -> list[dict[str, Any]]:
    return [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def log_of(events: list[list[Any]]) -> tuple[list[dict[str, Any]], int]:
    """The records as a log in which a tick follows each, and how far the watermark trails the largest timestamp."""
    rows: list[dict[str, Any]] = []
    trails = set()
    for event in events:
        if event[0] == "r":
            rows.append(
                {"ts": event[1], "arrival": INTERVAL_MS * (len(rows) + 1), "key": event[2], "value": event[3]}
            )
        elif event[1] != 2**63 - 1:
            trails.add(max(row["ts"] for row in rows) - event[1])
    (trail,) = trails
    return rows, trail


@pytest.mark.parametrize("scenario", seed_traces(), ids=lambda scenario: scenario["name"])
def test_the_seed_trace_is_replayed_from_the_command_line(scenario: dict[str, Any], tmp_path: Path) -> None:
    item = scenario["input"]
    rows, trail = log_of(item["events"])
    if trail == 0:
        pytest.skip("only the legacy extractor has watermarks that do not trail the largest timestamp at all")
    pa.csv.write_csv(pa.Table.from_pylist(rows), tmp_path / "log.csv")
    arguments = [
        *("replay", str(tmp_path / "log.csv"), "--engine", "embedded", "--quiet"),
        *(
            "--timestamp",
            "ts",
            "--arrival",
            "arrival",
            "--key",
            "key",
            "--aggregate",
            "elements=collect(value)",
            "--integer-times",
        ),
        *("--window", f"tumbling:{item['assigner']['size']}ms,{item['assigner']['offset']}ms"),
        *("--out-of-orderness", f"{trail - 1}ms", "--allowed-lateness", f"{item['allowed_lateness']}ms"),
        *("--output", str(tmp_path / "out"), "--late-output", str(tmp_path / "late")),
    ]
    assert main(arguments) == 0
    fired = ds.dataset(tmp_path / "out").to_table().to_pylist()
    got = [
        (r["window_start"], r["window_end"], r["elements"], r["watermark"], r["late_firing"]) for r in fired
    ]
    want = [
        (
            e["value"]["start"],
            e["value"]["end"],
            e["value"]["elements"],
            e["value"]["watermark"],
            "timer" not in e,
        )
        for e in scenario["output"]["entries"]
        if e["type"] == "record"
    ]
    assert got == want
    late = [row["value"] for row in ds.dataset(tmp_path / "late").to_table().to_pylist()]
    if item["late_output"]:
        assert late == [e["value"][1] for e in scenario["output"]["entries"] if e["type"] == "side"]
    else:
        assert len(late) == scenario["output"]["late_dropped"]


@pytest.fixture
def pages() -> None:
    """Commands have the library of charts, which takes a second for a page."""
    pytest.importorskip("vl_convert")


@pytest.fixture(autouse=True)
def no_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "pages" not in request.fixturenames:
        monkeypatch.setitem(sys.modules, "vl_convert", None)


@pytest.mark.usefixtures("pages")
def test_the_demo_draws_its_report_and_opens_it_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    arguments = ["demo", "--engine", "embedded", "--quiet", "--output", str(tmp_path / "demo")]
    assert main(arguments) == 0
    page = tmp_path / "demo" / "report.html"
    assert f"report:       {page}\n" in capsys.readouterr().out
    assert "33,798" in page.read_text(encoding="utf-8")
    assert opened == []
    assert main([*arguments, "--open"]) == 0
    assert opened == [page.as_uri()]


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    ("is_terminal", "display", "options", "opens"),
    [
        (True, ":0", [], True),
        (True, ":0", ["--no-open"], False),
        (True, None, [], False),
        (False, ":0", [], False),
    ],
)
def test_the_demo_opens_its_report_where_somebody_sees_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    display: str | None,
    options: list[str],
    opens: bool,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(flights, "run", lambda *_: tmp_path / "report.html")
    monkeypatch.setattr(sys, "platform", "linux")
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    if display is not None:
        monkeypatch.setenv("DISPLAY", display)
    assert main(["demo", "--engine", "embedded", *options]) == 0
    assert bool(opened) is opens


def test_the_demo_writes_results_and_tells_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--engine", "embedded", "--quiet", "--output", str(tmp_path / "demo")]) == 0
    shown = capsys.readouterr().out
    assert "33,798 events from 223 splits" in shown
    assert "your 30 min lose 0.57 %" in shown
    assert str(tmp_path / "demo") in shown
    assert ds.dataset(tmp_path / "demo" / "hourly").to_table().num_rows == 5072


def test_the_demo_goes_without_what_draws_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["demo", "--engine", "embedded", "--quiet", "--open", "--output", str(tmp_path / "demo")]
    assert main(arguments) == 0
    assert "pip install 'flinkcore[report]'" in capsys.readouterr().out


@pytest.mark.usefixtures("pages")
def test_a_replay_draws_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa.csv.write_csv(pa.table({"ts": [1, 12, 2], "k": ["a", "b", "a"]}), tmp_path / "log.csv")
    arguments = ["replay", str(tmp_path / "log.csv"), *COUNTED]
    page = tmp_path / "report.html"
    assert main([*arguments, "--report", str(page)]) == 0
    assert capsys.readouterr().out.endswith(f"report: {page}\n")
    assert "Results over time" in page.read_text(encoding="utf-8")
    missing = tmp_path / "missing" / "report.html"
    assert main([*arguments, "--output", str(tmp_path / "out"), "--report", str(missing)]) == 1
    assert "a report cannot be written to" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_demo_can_be_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replaced = f"The results of an earlier run in {tmp_path / 'demo'} are replaced."
    for earlier in (False, True):
        assert main(["demo", "--engine", "embedded", "--quiet", "--output", str(tmp_path / "demo")]) == 0
        shown = capsys.readouterr().out
        assert "results:" in shown
        assert (replaced in shown) is earlier
    assert ds.dataset(tmp_path / "demo" / "hourly").to_table().num_rows == 5072


@pytest.mark.parametrize("file", ["hourly/part-0.parquet", "late/part-0.parquet", "report.html"])
def test_the_demo_replaces_no_file_of_others(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / file
    mine.parent.mkdir(exist_ok=True)
    pa.parquet.write_table(pa.table({"origin": ["ATL"]}), mine)
    assert main(["demo", "--engine", "embedded", "--quiet", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"flinkcore: {mine} is not of an earlier run: name another directory (--output)\n"
    )
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [mine]


def test_without_an_output_the_results_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pa.csv.write_csv(pa.table({"ts": [1, 12], "k": ["a", "b"]}), tmp_path / "log.csv")
    assert main(["replay", str(tmp_path / "log.csv"), *COUNTED]) == 0
    shown = capsys.readouterr().out
    assert "window_start" in shown
    assert "2 in windows" in shown


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_units_of_the_time_columns_can_be_told(
    unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ts = [1_700_000_000 * factor, 1_700_000_005 * factor]
    arrival = [t + 0.5 for t in ts] if unit == "s" else ts
    pa.csv.write_csv(pa.table({"ts": ts, "arrival": arrival, "k": ["a", "a"]}), tmp_path / "log.csv")
    arguments = ["replay", str(tmp_path / "log.csv"), "--engine", "embedded", "--quiet", "--key", "k"]
    arguments += ["--timestamp", "ts", "--arrival", "arrival", "--window", "tumbling:1s"]
    arguments += ["--aggregate", "n=count()"]
    assert main([*arguments, "--timestamp-unit", unit, "--arrival-unit", unit]) == 0
    shown = capsys.readouterr().out
    assert "2023-11-14 22:13:25" in shown
    assert "look like" not in shown
    if unit in ("us", "ns"):
        assert main(arguments) == 1
        words = {"us": "microseconds", "ns": "nanoseconds"}[unit]
        assert (
            capsys.readouterr().err
            == "flinkcore: "
            + ". ".join(
                f"column {column!r} was read as milliseconds since the epoch, but its values {ts[0]} to {ts[1]} look "
                f"like {words}. Give --{setting}-unit {unit}, or --{setting}-unit ms if they are milliseconds"
                for setting, column in (("timestamp", "ts"), ("arrival", "arrival"))
            )
            + "\n"
        )


JOB = """
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.common import Time

def job(events):
    events = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    return events.key_by("k").window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(n=count())
"""


@pytest.mark.parametrize("command", ["lateness", "why", "replay", "races"])
def test_times_that_cannot_be_milliseconds_end_a_command(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    log = str(log_with(tmp_path, ts=[1_700_000_000]))
    own = {
        "lateness": [log, "--window", "tumbling:1s", "--quiet"],
        "why": [log, "--window", "tumbling:1s", "--key", "k=a", "--quiet"],
        "replay": [
            log,
            "--window",
            "tumbling:1s",
            "--key",
            "k",
            "--aggregate",
            "n=count()",
            "--engine=embedded",
        ],
        "races": [f"{tmp_path / 'job.py'}:job", log],
    }
    assert main([command, *own[command], "--timestamp", "ts"]) in (1, 2)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "flinkcore: column 'ts' was read as milliseconds since the epoch, but its values 1700000000 to 1700000000 look "
        "like seconds. Give --timestamp-unit s, or --timestamp-unit ms if they are milliseconds\n"
    )
    assert main([command, *own[command], "--timestamp", "ts", "--timestamp-unit", "ms"]) == 0
    assert capsys.readouterr().err == ""


def replayed(log: Path | str, *arguments: str) -> int:
    """The exit status of a replay of a log."""
    given = ["replay", str(log), "--engine", "embedded", "--quiet", *arguments]
    for option, value in (
        ("--timestamp", "ts"),
        ("--key", "k"),
        ("--window", "tumbling:1ms"),
        ("--aggregate", "n=count()"),
    ):
        given += (
            [] if option in given or any(each.startswith(f"{option}=") for each in given) else [option, value]
        )
    return main(given)


def log_with(folder: Path, **columns: list[Any]) -> Path:
    pa.csv.write_csv(pa.table({"ts": [1_700_000_000_000], "k": ["a"]} | columns), folder / "log.csv")
    return folder / "log.csv"


def test_integers_in_a_unit_are_times_without_rounding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = log_with(tmp_path, ts=[9_007_199_254_740_993])
    assert replayed(log, "--timestamp-unit", "ms") == 0
    assert "9007199254740993" in capsys.readouterr().out


def test_a_unit_that_is_not_that_of_the_numbers_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(log_with(tmp_path), "--timestamp-unit", "s") == 0
    assert capsys.readouterr().err == (
        "flinkcore: warning: column 'ts', read in seconds, gives times from 55840-11-08T22:13:20.000 to "
        "55840-11-08T22:13:20.000. If they are wrong, give another --timestamp-unit\n"
    )


def test_a_command_warns_of_late_events_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_with(tmp_path, ts=list(range(1_700_000_900_000, 1_700_000_000_000, -50_000)), k=["a"] * 18)
    assert replayed(log) == 0
    told = capsys.readouterr()
    assert told.err.count(" of the events are late and are dropped: ") == 1
    assert "warning" not in told.out


def test_a_command_warns_of_rejected_rows_without_what_only_programs_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(log_with(tmp_path, ts=[1, None], k=["a", "b"]), "--on-bad-row", "drop") == 0
    told = capsys.readouterr()
    assert told.err == (
        "flinkcore: warning: 50 % of the rows are rejected and are dropped: 1 of 2, for null timestamp (1).\n"
    )
    assert "warning" not in told.out


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["lateness"], "usage: flinkcore lateness [-h]"),
        (["lateness", "log.parquet", "--timestamp", "ts", "--nope"], "usage: flinkcore lateness [-h]"),
        (["why", "log.parquet", "--timestamp", "ts", "--key", "k=1"], "usage: flinkcore why [-h]"),
        (["compare", "sink", "replay", "--key", "k", "more"], "usage: flinkcore compare [-h]"),
        (["races", "log.parquet"], "usage: flinkcore races [-h]"),
        (["checkpoint", "show", "path", "more"], "usage: flinkcore checkpoint [-h]"),
        (["demo", "more"], "usage: flinkcore demo [-h]"),
        (["run", "--nope", "program.py"], "usage: flinkcore run [-h]"),
        (["run"], "usage: flinkcore run [-h]"),
    ],
)
def test_arguments_that_are_wrong_show_the_usage_of_the_command(
    arguments: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(usage)
    told = "unrecognized arguments: " if {"--nope", "more"} & {*arguments} else "arguments are required: "
    assert told in shown.splitlines()[-1]
    assert not shown.endswith("arguments\n")  # those of a program are not required


def test_options_of_a_format_are_given_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ts;zip\n1000;01234\n2000;none\n")
    output = tmp_path / "rows"
    assert replayed(log, "--key", "zip") == 1
    advice = "If ';' stands between columns, give --format-option 'delimiter=;'\n"
    assert capsys.readouterr().err.endswith(advice)
    options = ["delimiter=;", "null_values=none,NA"]
    given = [text for option in options for text in ("--format-option", option)]
    given += ["--type", "zip=string"]
    assert replayed(log, "--key", "zip", *given, "--on-bad-row", "drop", "--output", str(output)) == 0
    assert pa.parquet.read_table(output).column("zip").to_pylist() == ["01234"]


def test_older_results_are_replaced_if_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "rows")
    assert replayed(log_with(tmp_path, k=["old"]), "--output", output) == 0
    again = log_with(tmp_path, k=["new"])
    assert replayed(again, "--output", output) == 1
    assert (
        "give another directory, or --mode overwrite, which replaces its Parquet files"
        in capsys.readouterr().err
    )
    assert pa.parquet.read_table(output).column("k").to_pylist() == ["old"]
    assert replayed(again, "--output", output, "--mode", "overwrite") == 0
    assert pa.parquet.read_table(output).column("k").to_pylist() == ["new"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["delimiter"], "--format-option 'delimiter' is none; write NAME=VALUE, such as 'delimiter=;'"),
        (
            ["delimter=;"],
            "--format-option: 'delimter' is not an option of csv, which takes delimiter, null_values",
        ),
        (["delimiter=;", "delimiter=,"], "--format-option 'delimiter=,': delimiter is given twice"),
        (["newlines_in_values=1"], "--format-option 'newlines_in_values=1': write newlines_in_values=true"),
        (["block_bytes=big"], "--format-option 'block_bytes=big': write block_bytes=67108864"),
    ],
)
def test_what_is_no_option_of_a_format_is_refused(
    options: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ts,k\n1000,a\n")
    assert replayed(log, *(text for option in options for text in ("--format-option", option))) == 1
    assert capsys.readouterr().err.startswith(f"flinkcore: {told}")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--type", "zip"], "--type 'zip': write COLUMN=TYPE, such as zip=string"),
        (
            ["--type", "k=string", "--type", "k=int"],
            "--type 'k=int': column 'k' is given twice; leave one out",
        ),
        (["--type", "k=string", "--schema", "ts BIGINT"], "--type and --schema exclude each other"),
        (["--schema", "ts BIGINT, k"], "--schema 'ts BIGINT, k' has its end where a type belongs"),
    ],
)
def test_types_that_cannot_be_given_are_refused(
    options: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ts,k\n1000,a\n")
    assert replayed(log, *options) == 1
    assert capsys.readouterr().err.startswith(f"flinkcore: {told}")


def test_a_schema_has_all_columns_that_a_command_reads(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ts,k\n1000,01\n")
    output = tmp_path / "rows"
    assert replayed(log, "--schema", "ts BIGINT, k STRING", "--output", str(output)) == 0
    assert pa.parquet.read_table(output).column("k").to_pylist() == ["01"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("delimiter=\\t", {"delimiter": "\t"}),
        ("delimiter==", {"delimiter": "="}),
        ("null_values=NA,none", {"null_values": ["NA", "none"]}),
        ("newlines_in_values=True", {"newlines_in_values": True}),
        ("block_bytes=67108864", {"block_bytes": 67_108_864}),
    ],
)
def test_values_of_options_of_a_format(text: str, options: dict[str, Any]) -> None:
    assert format_options_of([text]) == options


@pytest.mark.parametrize(
    "option", ["--output", "--arrival", "--split", "--restore-from", "--timestamp", "--format"]
)
def test_an_option_that_is_empty_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(log_with(tmp_path), option, "") == 1
    assert f"flinkcore: {option} is empty; give it a value, or leave it out" in capsys.readouterr().err


def test_an_empty_input_is_not_the_working_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed("") == 1
    assert "an input is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--out-of-orderness", "--allowed-lateness", "--idleness", "--watermark-interval"]
)
def test_a_negative_duration_is_told_as_one(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(log_with(tmp_path), option, "-4s") == 1
    assert re.search(r"flinkcore: .*-4", capsys.readouterr().err)


def texts_of_the_package() -> list[str]:
    """The literal texts of the package's code, each f-string in one piece, without docstrings."""
    texts = []
    for path in Path(flinkcore.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                pieces = [piece.value if isinstance(piece, ast.Constant) else "" for piece in node.values]
                texts.append("".join(map(str, pieces)))
            elif isinstance(node, ast.Call | ast.Return | ast.Assign | ast.IfExp | ast.Tuple):
                texts += [
                    each.value
                    for each in ast.iter_child_nodes(node)
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ]
    return texts


def test_each_setting_that_the_command_renames_is_in_a_message_of_the_package() -> None:
    texts = [text for text in texts_of_the_package() if " " in text]
    for setting, option in _OPTIONS:
        assert any(re.search(setting, text) for text in texts), f"{setting} for {option}"


@pytest.mark.parametrize(
    ("columns", "arguments", "told"),
    [
        ({"ts": [None]}, [], "let --on-bad-row drop count them$"),
        ({"k": [None]}, [], "give --on-bad-row drop"),
        ({}, ["--split", "nope"], "--split names column 'nope'"),
        ({}, ["--timestamp", "nope"], "--timestamp names column 'nope'"),
        ({}, ["--format", "psv"], "format 'psv' is unknown"),
        ({}, ["--decode", "v=json:a INT"], "--decode names column 'v'"),
        ({}, ["--decode", "k=json:a INT"], "or let --on-bad-row drop count such rows$"),
    ],
)
def test_errors_name_the_options_of_the_command(
    columns: dict[str, list[Any]],
    arguments: list[str],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "log.parquet"
    defaults: dict[str, Any] = {"ts": pa.array([1], pa.int64()), "k": pa.array(["a"])}
    given = {
        name: pa.array(columns[name], value.type) if name in columns else value
        for name, value in defaults.items()
    }
    pa.parquet.write_table(pa.table(given), log)
    assert replayed(log, *arguments) == 1
    shown = capsys.readouterr().err
    assert re.search(told, shown, re.MULTILINE)
    assert not re.search(r"\w=|OutputTag", shown)


@pytest.mark.parametrize("unit", ["s", "us"])
@pytest.mark.parametrize("setting", ["timestamp", "arrival"])
def test_a_unit_of_a_column_of_times_is_refused(
    setting: str, unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = pa.table({"date": pa.array([1, 2], pa.timestamp("ms")), "n": [1, 2], "k": ["a", "a"]})
    pa.parquet.write_table(log, tmp_path / "log.parquet")
    columns = {"timestamp": "n", "arrival": "n", setting: "date"}
    arguments = ["replay", str(tmp_path / "log.parquet"), "--engine", "embedded", "--quiet", "--key", "k"]
    arguments += ["--timestamp", columns["timestamp"], "--arrival", columns["arrival"]]
    arguments += ["--window", "tumbling:1s", "--aggregate", "n=count()", f"--{setting}-unit", unit]
    assert main(arguments) == 1
    assert capsys.readouterr().err == (
        f"flinkcore: --{setting}-unit {unit} is for numbers, but time column 'date' is timestamp[ms], which has a "
        f"unit. Leave --{setting}-unit out\n"
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_error(unbuffered: str, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"ts": [1, 2], "k": ["a", "a"]}), tmp_path / "log.parquet")
    command = [sys.executable, "-m", "flinkcore", "replay", str(tmp_path / "log.parquet"), "--quiet"]
    command += ["--engine", "embedded", "--timestamp", "ts", "--key", "k", "--window", "tumbling:1s"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    ended = subprocess.run(
        [*command, "--aggregate", "n=count()"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        timeout=60,
        check=False,
    )
    os.close(write_end)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_broken_pipe_of_another_kind_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object, **settings: object) -> None:
        raise BrokenPipeError("a socket")

    monkeypatch.setattr("flinkcore.examples.flights.run", fail)
    assert main(["demo", "--engine", "embedded", "--quiet"]) == 1
    assert capsys.readouterr().err == "flinkcore: BrokenPipeError: a socket\n"


def test_an_error_is_one_line_and_a_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "replay",
        str(tmp_path / "nothing.csv"),
        "--engine",
        "embedded",
        "--timestamp",
        "ts",
        "--key",
        "k",
    ]
    assert main([*arguments, "--window", "tumbling:10ms", "--aggregate", "n=count()"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("flinkcore: ")
    assert "nothing.csv" in message


def test_an_output_that_cannot_be_written_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    arguments = ["demo", "--engine", "embedded", "--quiet", "--output", str(tmp_path / "file" / "out")]
    assert main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"flinkcore: results cannot be written to {tmp_path}/file/out/")


@pytest.mark.parametrize(
    "error", [OSError("disk\nfull"), pa.ArrowInvalid("disk\nfull")], ids=["files", "Arrow"]
)
def test_errors_of_files_and_arrow_are_told_in_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object, **settings: object) -> None:
        raise error

    monkeypatch.setattr("flinkcore.examples.flights.run", fail)
    assert main(["demo", "--engine", "embedded", "--quiet"]) == 1
    assert capsys.readouterr().err == f"flinkcore: {type(error).__name__}: disk full\n"


def test_an_interrupt_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flinkcore.columnar.local.embedded_replay.EmbeddedReplay.run", interrupt)
    out = tmp_path / "out"
    assert main(["demo", "--engine", "embedded", "--quiet", "--output", str(out)]) == 130
    assert capsys.readouterr().err == "flinkcore: interrupted; no results were written\n"
    assert list(tmp_path.rglob("*.parquet")) == []
    assert not (out / "hourly").exists()


def test_what_the_gateway_to_spark_logs_of_an_error_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def log(*arguments: object) -> None:
        for module in ("clientserver", "java_gateway", "mine"):
            logging.getLogger().handle(
                logging.makeLogRecord({"module": module, "msg": module, "levelno": 40})
            )

    monkeypatch.setattr("flinkcore.examples.flights.run", log)
    assert main(["demo", "--engine", "embedded", "--quiet"]) == 0
    assert caplog.messages == ["mine"]


def test_a_defect_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **settings: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("flinkcore.examples.flights.run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["demo", "--engine", "embedded", "--quiet"])


def test_a_late_output_without_an_output_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "replay",
        "nowhere.csv",
        "--engine",
        "embedded",
        "--timestamp",
        "ts",
        "--key",
        "k",
        "--window",
    ]
    assert (
        main([*arguments, "tumbling:10ms", "--aggregate", "n=count()", "--late-output", str(tmp_path)]) == 1
    )
    assert "--late-output needs --output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("200ms", 200), ("10s", 10_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("-5s", -5000)],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


def test_windows_and_aggregates_are_read_from_text() -> None:
    assert window_assigner("tumbling:1h,15m") == TumblingEventTimeWindows(3_600_000, 900_000)
    assert window_assigner("sliding:10s,2s") == SlidingEventTimeWindows(10_000, 2_000)
    assert window_assigner("cumulate:1h,10m") == CumulativeEventTimeWindows(3_600_000, 600_000)
    assert window_assigner("session:30m") == EventTimeSessionWindows(1_800_000)
    assert named_aggregate("best=max_by(item, price)") == ("best", Aggregate("max_by", "item", "price"))
    assert named_aggregate("n=count") == ("n", Aggregate("count"))
    assert named_aggregate("p99=approx_percentile(price, 0.99)") == (
        "p99",
        Aggregate("approx_percentile", "price", percentage=0.99),
    )
    assert named_aggregate("total = sum(unit price)") == ("total", Aggregate("sum", "unit price"))


def test_two_aggregates_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="there is a 'n' already"):
        named_aggregates(["n=count()", "n=sum(price)"])


@pytest.mark.parametrize("text", ["", "10", "ten seconds", "10s!", "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a duration"):
        duration_ms(text)


@pytest.mark.parametrize(
    "text", ["tumbling", "tumbling:", "hopping:1s", "session:1s,2s", "sliding:1s", "cumulate:1s"]
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a window"):
        window_assigner(text)


@pytest.mark.parametrize("text", ["count()", "n=", "n=sum(a", "n=sum(a,b,c)"])
def test_what_is_no_aggregate_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"not an aggregate|two at most"):
        named_aggregate(text)


@pytest.mark.parametrize("percentage", ["median", "99", "-0.1"])
def test_what_is_no_percentage_is_refused(percentage: str) -> None:
    with pytest.raises(ConfigurationError, match="takes a percentage from 0 to 1"):
        named_aggregate(f"p=approx_percentile(price, {percentage})")


def test_a_replay_stops_with_a_savepoint_of_flink(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa.csv.write_csv(pa.table({"ts": [100, 2200, 9900], "user": ["ann", "bob", "ann"]}), tmp_path / "log.csv")
    replay = [
        *("replay", str(tmp_path / "log.csv"), "--engine", "embedded", "--quiet", "--timestamp", "ts"),
        *("--key", "user", "--window", "tumbling:10s", "--aggregate", "n=count()", "--integer-times"),
    ]
    savepoint = str(tmp_path / "savepoint")
    assert main([*replay, "--stop-with-savepoint", savepoint, "--uid", "win"]) == 0
    assert f"savepoint: {savepoint}" in capsys.readouterr().out
    assert main(["savepoint", "show", savepoint, "--operator", "win", "--state", "window-contents"]) == 0
    assert "ann in" in capsys.readouterr().out
    assert main([*replay, "--stop-with-savepoint", savepoint]) != 0
    assert "--stop-with-savepoint needs --uid" in capsys.readouterr().err


def test_a_replay_begins_with_the_windows_of_a_flink_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def replay(times: list[int], *arguments: str) -> int:
        table = pa.table({"ts": times, "user": ["ann"] * len(times)})
        pa.csv.write_csv(table, tmp_path / "log.csv")
        return main(
            [
                *(
                    "replay",
                    str(tmp_path / "log.csv"),
                    "--engine",
                    "embedded",
                    "--quiet",
                    "--timestamp",
                    "ts",
                ),
                *("--key", "user", "--window", "tumbling:10s", "--aggregate", "n=count()", "--integer-times"),
                *arguments,
            ]
        )

    savepoint = str(tmp_path / "savepoint")
    assert replay([100, 2200, 4000], "--stop-with-savepoint", savepoint, "--uid", "win") == 0
    for further in (["--uid", "win"], []):
        output = str(tmp_path / f"results{len(further)}")
        assert replay([5000, 12_000], "--restore-from", savepoint, "--output", output, *further) == 0
        counts = pa.parquet.read_table(output).to_pydict()
        assert dict(zip(counts["window_start"], counts["n"], strict=True)) == {0: 4, 10_000: 1}
    capsys.readouterr()
    assert replay([5000], "--uid", "win") != 0
    assert "or a savepoint of Flink as --restore-from" in capsys.readouterr().err


def test_a_replay_goes_on_from_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrivals = [[100, 2200, 9900], [10_000, 12_500, 24_000]]
    for day, at in enumerate(arrivals):
        table = pa.table({"ts": at, "user": ["ann", "bob", "ann"], "part": ["p", "q", "q"]})
        pa.csv.write_csv(table, tmp_path / f"{day}.csv")

    def replay(day: int, *arguments: str) -> int:
        return main(
            [
                *("replay", str(tmp_path / f"{day}.csv"), "--engine", "embedded", "--quiet"),
                *("--timestamp", "ts", "--arrival", "ts", "--split", "part", "--key", "user"),
                *("--window", "tumbling:10s", "--aggregate", "n=count()", "--parallelism", "2", *arguments),
                "--integer-times",
            ]
        )

    checkpoint = str(tmp_path / "checkpoint")
    assert replay(0, "--checkpoint", checkpoint) == 0
    assert f"checkpoint: {checkpoint}" in capsys.readouterr().out
    assert main(["checkpoint", "show", checkpoint]) == 0
    shown = capsys.readouterr().out
    assert "aggregates over windows" in shown
    assert "window: TumblingEventTimeWindows(size_ms=10000" in shown
    assert "operator 'watermarks-1': 1 subtask" in shown
    assert "'q': 2 rows, last arrival 1970-01-01 00:00:09.900Z" in shown
    assert "2 live windows of a key, ending at 1970-01-01 00:00:10.000Z" in shown
    assert replay(1, "--restore-from", checkpoint, "--output", str(tmp_path / "results")) == 0
    rows = ds.dataset(tmp_path / "results").to_table().to_pylist()
    assert sorted((row["user"], row["window_start"], row["n"]) for row in rows) == [
        ("ann", 0, 2),
        ("ann", 10_000, 1),
        ("ann", 20_000, 1),
        ("bob", 0, 1),
        ("bob", 10_000, 1),
    ]
    capsys.readouterr()
    assert replay(1, "--restore-from", str(tmp_path)) == 1
    assert "is not a checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"input": "/nowhere/log.parquet"}, "does not exist"),
        ({"--window": "tumbling"}, "is not a window"),
        ({"--aggregate": "n=count(nothing)"}, "count takes no column|no column 'nothing'"),
        ({"--restore-from": "/nowhere/checkpoint"}, "/nowhere/checkpoint"),
    ],
)
def test_what_is_wrong_with_a_job_is_told_before_spark_starts(
    changed: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pyspark")

    def started(master: str, app_name: str) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("flinkcore.spark.start_session", started)
    pa.csv.write_csv(pa.table({"ts": [1], "key": ["a"]}), tmp_path / "log.csv")
    options = {
        "--timestamp": "ts",
        "--key": "key",
        "--window": "tumbling:1m",
        "--aggregate": "n=count()",
    } | changed
    path = options.pop("input", str(tmp_path / "log.csv"))
    given = (part for option in options.items() for part in option)
    assert main(["replay", path, *given, "--engine", "spark"]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_times_that_python_cannot_hold_are_printed_as_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pa.csv.write_csv(pa.table({"ts": [1_699_999_940_045], "key": ["a"]}), tmp_path / "log.csv")
    arguments = ["--timestamp", "ts", "--timestamp-unit", "s", "--key", "key", "--window", "tumbling:1m"]
    log = str(tmp_path / "log.csv")
    assert main(["replay", log, *arguments, "--aggregate", "n=count()", "--engine", "embedded"]) == 0
    assert re.search(r"^a +16999999400[0-9]+ ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("command", ["compare", "lateness", "races", "replay", "why"])
def test_help_shows_the_defaults_of_options_that_have_one(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    defaults = set(re.findall(r"\(default: (.*?)\)", shown))
    assert defaults
    assert not defaults & {"None", "False", "[]"}
