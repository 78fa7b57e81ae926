"""Results, streams, reports, timelines and checkpoints as they are shown in a terminal and in a notebook."""

import sys
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from equipment.checkpoints import two_subtasks, write_checkpoint
from equipment.timelines import timeline_of

from flinkcore._internal.show.tables import html_of_table, shown_table, shown_value
from flinkcore.checkpoint import Checkpoint
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.columnar.results.result import TakenBatches
from flinkcore.common import OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.errors import ConfigurationError

LATE = OutputTag("late")
LOG = pa.table({"ts": [1, 12, 25, 3], "arrival": [1, 500, 900, 1300], "key": ["a", "<b>", "a", "a"]})


class Cells(HTMLParser):
    """The texts of the cells of tables, head first."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[str] = []
        self.in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag in ("th", "td"):
            self.cells.append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("th", "td")

    def handle_data(self, data: str) -> None:
        if self.in_cell:
            self.cells[-1] += data


def counts(log: pa.Table = LOG) -> DataStream:
    return (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log(log, timestamp="ts", arrival="arrival")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .side_output_late_data(LATE)
        .aggregate(n=count(), total=sum_("ts"))
    )


def test_a_result_that_has_not_run_shows_its_columns_and_does_not_run() -> None:
    result = counts(pa.table({"ts": [None], "arrival": [1], "key": ["a"]}, LOG.schema)).execute()
    assert repr(result).startswith("EmbeddedResult[key: string, window_start: timestamp[ms, tz=UTC], ")
    shown = Cells(result._repr_html_())
    assert shown.cells[0] == "keystring"
    assert "td" not in shown.tags


def test_a_result_shows_its_first_rows_once_they_are_kept() -> None:
    result = counts().execute()
    kept = result.to_arrow()
    assert repr(result).endswith(f", {kept.num_rows} rows")
    shown = Cells(result._repr_html_())
    assert shown.cells.count("<b>") == 1
    assert shown.tags.count("td") == kept.num_rows * kept.num_columns
    assert f"<small>{kept.num_rows} rows of {kept.num_columns} columns</small>" in result._repr_html_()


def test_a_side_output_is_shown_as_the_results_are() -> None:
    late = counts().execute().get_side_output(LATE)
    assert repr(late) == "SideOutput[ts: int64, arrival: int64, key: string]"
    assert late.to_pandas().to_dict("list") == {"ts": [3], "arrival": [1300], "key": ["a"]}
    assert Cells(late._repr_html_()).cells[-3:] == ["3", "1300", "a"]


def test_rows_are_frames_of_pandas_and_polars() -> None:
    result = counts().execute()
    kept = result.to_arrow()
    assert isinstance(result.to_pandas(), pd.DataFrame)
    assert isinstance(result.to_polars(), pl.DataFrame)
    assert result.to_pandas()["n"].tolist() == result.to_polars()["n"].to_list() == kept["n"].to_pylist()
    assert counts().to_pandas().equals(result.to_pandas())
    assert counts().to_polars().equals(result.to_polars())


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_frame_without_its_library_is_refused_before_the_job_runs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    result = counts().execute()
    with pytest.raises(ConfigurationError, match=rf"to_{name}\(\).*pip install 'flinkcore\[{name}\]'"):
        getattr(result, f"to_{name}")()
    assert "rows" not in repr(result)


def test_show_prints_the_first_rows(capsys: pytest.CaptureFixture[str]) -> None:
    counts().show(2)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["key", "window_start", "window_end"]
    start, end = ["1970-01-01", "00:00:00+00:00"], ["1970-01-01", "00:00:00.010000+00:00"]
    assert lines[0].split() == ["a", *start, *end, "1", "1", "False", "11"]
    assert lines[2:] == ["… more rows"]


def test_show_of_kept_rows_tells_how_many_more_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    result = counts().execute()
    rows = result.to_arrow().num_rows
    result.show(1)
    assert capsys.readouterr().out.splitlines()[-1] == f"… {rows - 1} more rows"
    result.show()
    assert len(capsys.readouterr().out.splitlines()) == rows + 1


def test_show_ends_the_replay_when_it_has_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[TakenBatches] = []
    close = TakenBatches.close
    monkeypatch.setattr(TakenBatches, "close", lambda batches: (closed.append(batches), close(batches)))
    result = counts().execute()
    result.show(0)
    assert len(closed) == 1
    assert list(closed[0]) == []
    assert "rows" not in repr(result)


@pytest.mark.parametrize("rows", [-1, True, "all", 1.5])
def test_show_takes_a_number_of_rows(rows: Any) -> None:
    with pytest.raises(ConfigurationError, match="takes a number of rows"):
        counts().execute().show(rows)


def test_values_are_shown_on_one_line_each() -> None:
    table = pa.table(
        {"text": ["two\nlines", None, "x" * 100], "time": pa.array([2**62, 0, 1], pa.timestamp("ms"))}
    )
    lines = shown_table(table, 3).splitlines()
    assert len(lines) == 4
    assert lines[1].split() == [r"two\nlines", str(2**62)]
    assert lines[2].split()[0] == "null"
    assert lines[3].split()[0] == "x" * 79 + "…"


FAR = pa.timestamp("us")
VALUES_THAT_PYTHON_HAS_NOT = {
    "2147483647": pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
    str(2**62): pa.array([2**62], pa.duration("s")),
    str(2**60): pa.array([2**60], pa.timestamp("ms", "UTC")),
    f"{{'x': {2**62}, 'y': 'a'}}": pa.array(
        [{"x": 2**62, "y": "a"}], pa.struct({"x": FAR, "y": pa.string()})
    ),
    f"[{2**62}, None]": pa.array([[2**62, None]], pa.list_(FAR)),
    f"[[{2**62}]]": pa.array([[[2**62]]], pa.large_list(pa.list_(FAR, 1))),
    f"[{{'key': 'a', 'value': {2**62}}}]": pa.array([[("a", 2**62)]], pa.map_(pa.string(), FAR)),
    str(2**62 + 1): pa.array([2**62 + 1], FAR).dictionary_encode(),
    "1970-01-01 00:00:00.000001+00:00": pa.array([1], pa.timestamp("us", "Nowhere/City")),
    r"b'\xff'": pa.array([b"\xff"]).view(pa.string()),
    r"['a', b'\xff']": pa.array([[b"a", b"\xff"]], pa.list_(pa.binary())).view(pa.list_(pa.string())),
}


@pytest.mark.parametrize("expected", VALUES_THAT_PYTHON_HAS_NOT)
def test_values_that_python_has_not_are_shown_all_the_same(expected: str) -> None:
    table = pa.table({"c": VALUES_THAT_PYTHON_HAS_NOT[expected]})
    assert shown_table(table, 5).splitlines()[1].strip() == expected
    assert escape(expected) in html_of_table(table, 5)


def test_a_long_list_of_far_times_is_cut() -> None:
    [_, line] = shown_table(pa.table({"c": pa.array([[2**62] * 10_000], pa.list_(FAR))}), 5).splitlines()
    assert len(line) == 80
    assert line.startswith(f"[{2**62}, {2**62}, ")
    assert line.endswith("…")


def test_a_value_of_which_nothing_can_be_read_is_shown_by_its_type() -> None:
    class Unreadable:
        is_valid = True
        type = "secret"

        def as_py(self) -> None:
            raise RuntimeError

    assert shown_value(Unreadable()) == "<secret>"


def test_numbers_are_aligned_on_the_right() -> None:
    assert shown_table(pa.table({"n": [1, 200], "k": ["a", "b"]}), 5).splitlines() == [
        "  n  k",
        "  1  a",
        "200  b",
    ]


def test_html_of_a_table_escapes_names_and_values() -> None:
    html = html_of_table(pa.table({"<script>": ["</td><img src=x onerror=alert(1)>"]}), 5)
    assert Cells(html).tags == ["table", "thead", "tr", "th", "br", "small", "tbody", "tr", "td"]


def test_a_stream_shows_its_steps() -> None:
    stream = counts()
    assert repr(stream).startswith("LogStream(tumbling windows of 10 ms")
    assert "[columnar] key by key" in stream._repr_html_()
    assert all(line.strip() in stream.explain() for line in stream._repr_html_()[5:-6].splitlines()[1:3])
    keyed = stream.key_by("key")
    assert repr(keyed) == "KeyedLogStream(key by key)"
    assert repr(keyed.window(TumblingEventTimeWindows.of(Time.seconds(1)))).startswith(
        "WindowedLogStream(KeyedLogStream("
    )
    assert repr(stream.connect(stream)).startswith("ConnectedLogStreams(LogStream(")


def test_a_report_shows_counts_that_add_up() -> None:
    result = counts().execute()
    report = result.report
    assert repr(report) == str(report)
    assert sum(number for number, _ in report.fates()) == report.events_read == 4
    assert Cells(report._repr_html_()).cells[:6] == [
        "3",
        "in windows",
        "75 %",
        "1",
        "late for all their windows",
        "25 %",
    ]


def test_a_report_escapes_what_it_quotes() -> None:
    report = ReplayReport(warnings=["<script>alert(1)</script>"])
    report.rejected["null <key>"] = 2
    shown = Cells(report._repr_html_())
    assert "script" not in shown.tags
    assert "rejected: null <key>" in shown.cells


def test_a_timeline_shows_its_ends_and_not_all_its_steps() -> None:
    clock = np.arange(1000, dtype=np.int64) * 200
    timeline = timeline_of(clock, clock - 5000, ends=True)
    assert repr(timeline) == (
        "Timeline(1,000 steps, watermark 1969-12-31 23:59:55.000Z to 1970-01-01 00:03:14.800Z, "
        "on the replay clock at 1970-01-01 00:00:00.000Z to 1970-01-01 00:03:19.800Z)"
    )
    assert Cells(timeline._repr_html_()).cells == [
        "step",
        "replay clock",
        "watermark",
        *("first", "1970-01-01 00:00:00.000Z", "1969-12-31 23:59:55.000Z"),
        *("last", "1970-01-01 00:03:19.800Z", "1970-01-01 00:03:14.800Z"),
    ]
    assert timeline._repr_html_().endswith("<small>1,000 steps before the end of the log</small>")
    empty = timeline_of([], [], ends=True)
    assert repr(empty) == "Timeline(no watermark before the end of the log)"
    assert repr(empty) in empty._repr_html_()


def test_a_checkpoint_shows_its_operators_and_tables(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"<op>": two_subtasks({0: 1, 1: 2}, {5: 3})})
    checkpoint = Checkpoint.open(tmp_path)
    assert repr(checkpoint).endswith(f"{checkpoint.max_parallelism} key groups, operators: '<op>')")
    cells = Cells(checkpoint._repr_html_()).cells
    at = cells.index("keyed state 'v'")
    assert cells[at - 1 : at + 3] == ["<op>", "keyed state 'v'", "2", "3"]
