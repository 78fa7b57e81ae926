"""`flinkcore races` replays a function of a program under other histories of a log."""

from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore.cli import main
from flinkcore.testing.machine_clock import UNSEEN

PROGRAM = """
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream.aggregates import count, first
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.common import Time


def windows(events):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    keyed = events.assign_timestamps_and_watermarks(strategy).key_by("key")
    return keyed.window(TumblingEventTimeWindows.of(Time.seconds(1)))


def counts(events):
    return windows(events).aggregate(n=count())


def firsts(events):
    return windows(events).aggregate(first=first("value"))
"""


@pytest.fixture
def log(tmp_path: Path) -> list[str]:
    (tmp_path / "raced.py").write_text(PROGRAM)
    rows = {"ts": [0, 5, 9], "arrival": [10, 10, 20], "key": ["k"] * 3, "value": [1, 2, 3]}
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    return [
        str(tmp_path / "raced.py"),
        str(tmp_path / "log.parquet"),
        "--timestamp",
        "ts",
        "--arrival",
        "arrival",
    ]


def test_a_job_without_a_race_says_so(log: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = log
    assert main(["races", f"{program}:counts", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no race: the results are the same in 8 other histories",
        "",
        "tried: again, clock, parallelism (2), restart, ties, ticks (2)",
        f"not tried: clock: {UNSEEN}",
        "not tried: delay: the log has one split, and a delay of all events is none",
    ]


def test_histories_that_are_not_possible_are_told(log: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    program, path, *_ = log
    without = [f"{program}:counts", path, "--timestamp", "ts"]
    assert main(["races", *without]) == 0
    assert "not tried: restart: the log has no arrivals; name their column" in capsys.readouterr().out
    assert main(["races", *without, "--history", "restart"]) == 2
    assert "not possible: restart (the log has no arrivals" in capsys.readouterr().err


def test_a_race_is_told_with_the_smallest_log(log: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = log
    assert main(["races", f"{program}:firsts", *arguments, "--history", "ties"]) == 1
    assert capsys.readouterr().out.splitlines()[:6] == [
        "ties: events of a split that arrive together come the other way round (a race)",
        "  first in the results of tumbling windows of 1000 ms, allowed lateness 0 ms, late rows counted and dropped: "
        "first = first(value)",
        "  key = 'k'",
        *(
            f"    {what}{{'key': 'k', 'window_start': '1970-01-01 00:00:00.000', "
            f"'window_end': '1970-01-01 00:00:01.000', 'first': {first}, 'late_firing': False}}"
            for what, first in (("expected  ", 1), ("found     ", 2))
        ),
        "  the smallest log that shows it (2 rows):",
    ]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("raced.py", "'raced.py' is not a function; write PROGRAM:FUNCTION"),
        ("nowhere.py:counts", "there is no program nowhere.py"),
        ("no.module:counts", "there is no module 'no.module'"),
    ],
)
def test_a_function_that_there_is_not_is_refused(
    job: str, message: str, log: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["races", job, *log[1:]]) == 2
    assert message in capsys.readouterr().err


def test_histories_are_checked_before_the_program_is_read(
    log: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["races", "nowhere.py:counts", *log[1:], "--history", "tides"]) == 2
    assert "--history tides: there are again, clock" in capsys.readouterr().err


def test_the_options_of_logs_are_those_of_other_commands(
    log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, path, *_ = log
    for number in (1, 2):
        (tmp_path / f"{number}.data").write_bytes(Path(path).read_bytes())
    options = ["--format", "parquet", "--timestamp", "ts", "--timestamp-unit", "s", "--arrival", "arrival"]
    files = [str(tmp_path / "1.data"), str(tmp_path / "2.data")]
    arguments = ["races", f"{program}:firsts", *files, *options, "--arrival-unit", "s", "--split-per-file"]
    assert main([*arguments, "--history", "delay"]) == 0
    assert "tried: delay (4)" in capsys.readouterr().out
    assert main([*arguments, "--split", "key"]) == 2
    assert "--split and --split-per-file exclude each other" in capsys.readouterr().err
    assert main(["races", f"{program}:firsts", path, "--timestamp", "tss"]) == 2
    assert "--timestamp names column 'tss', which the log does not have" in capsys.readouterr().err


def test_an_offset_may_order_the_rows(
    log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, path, *columns = log
    rows = pa.table(
        {"ts": [9, 0, 5], "arrival": [20, 10, 10], "key": ["k"] * 3, "value": [3, 1, 2], "day": [2, 1, 1]}
    )
    pq.write_table(rows, path)
    arguments = ["races", f"{program}:firsts", path, *columns, "--history", "ties"]
    # value=2 is first, and would not be if rows came as they lie.
    assert main([*arguments, "--position", "day", "--position", "value:desc"]) == 1
    assert "\n     5       10  k        2    1\n     0       10  k        1    1\n" in capsys.readouterr().out
    assert main([*arguments, "--position", "offset"]) == 2
    assert "--position names column 'offset', which the log does not have" in capsys.readouterr().err
    assert main([*arguments, "--position", ""]) == 2
    assert "--position is empty" in capsys.readouterr().err


@pytest.fixture
def of_sql(tmp_path: Path) -> list[str]:
    plan = files("flinkcore.examples.sql") / "spent_by_minute.json"
    start = datetime(2026, 1, 5, 9)
    rows = {
        "user": ["bob", "ada"],
        "price": pa.array([125, 300], pa.int32()).cast(pa.decimal128(12, 0)),
        "ts": pa.array([start + timedelta(seconds=70), start], pa.timestamp("ms")),
        "arrival": pa.array([start + timedelta(seconds=71)] * 2, pa.timestamp("ms")),
    }
    pq.write_table(pa.table(rows), tmp_path / "clicks.parquet")
    return [str(plan), str(tmp_path / "clicks.parquet"), "--timestamp", "ts", "--arrival", "arrival"]


def test_a_plan_of_sql_has_its_races(of_sql: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["races", *of_sql, "--table", "clicks", "--history", "ties", "--history", "parallelism"]
    assert main(arguments) == 1
    found = capsys.readouterr().out
    assert "tried: parallelism (2), ties" in found
    assert "found     {'user': 'ada'" in found
    assert (
        main([*arguments, "--final", "--sink", "spent_by_minute", "--set", "table.local-time-zone=UTC"]) == 1
    )


def test_a_plan_of_sql_needs_the_name_of_a_table(
    of_sql: list[str], log: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["races", *of_sql]) == 2
    assert "Name the table that the log replaces: --table clicks" in capsys.readouterr().err
    program, *arguments = log
    assert main(["races", f"{program}:counts", *arguments, "--table", "clicks"]) == 2
    assert "--table is for jobs of Flink SQL" in capsys.readouterr().err
