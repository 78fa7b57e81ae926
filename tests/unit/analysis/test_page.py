"""The page of a report: its counts, its charts, and what it says where there is nothing to draw."""

import json
import os
import pickle
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from html import escape, unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.full_disks import most_bytes_of_a_file

from flinkcore.analysis.vega_lite import VEGA_LITE
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.functions import KeyedProcessFunction
from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.examples.flights import hourly_flights

vl_convert = pytest.importorskip("vl_convert")

LOG = pa.table(
    {
        "ts": [n * 1000 - 7000 * (n % 9 == 0) for n in range(300)],
        "arrival": [n * 1000 for n in range(300)],
        "key": [f"<k{n % 7}>" for n in range(300)],
        "source": [n % 2 for n in range(300)],
    }
)


@pytest.fixture(autouse=True)
def short_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries are the same in each page, and take a second."""
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet, version: snippet)


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def events(
    log: Any = LOG,
    strategy: WatermarkStrategy | None = None,
    env: StreamExecutionEnvironment | None = None,
    **options: Any,
) -> DataStream:
    env = env or environment()
    settings = {"timestamp": "ts", "arrival": "arrival", "split": "source", "integer_times": True} | options
    strategy = strategy or WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    return env.from_event_log(log, **settings).assign_timestamps_and_watermarks(strategy)


def windows(stream: DataStream) -> DataStream:
    keyed = stream.key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(10)))
    return keyed.allowed_lateness(5000).aggregate(n=count())


class Passing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value


def page_of(stream: DataStream, path: Path, title: str | None = None) -> str:
    result = stream.execute()
    result.to_arrow()
    result.report.to_html(path / "page.html", title)
    return (path / "page.html").read_text(encoding="utf-8")


def charts(page: str) -> dict[str, dict[str, Any]]:
    found = re.findall(r"<figure><h3>(.*?)</h3>.*?class=\"spec\">(.*?)</script>", page)
    return {unescape(title): json.loads(spec) for title, spec in found}


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["data"]["values"]
    return found


def test_a_page_has_the_figures_of_the_report(tmp_path: Path) -> None:
    result = windows(events()).execute()
    rows = result.to_arrow()
    report = result.report
    report.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>Replay of a table in memory</h1>" in page
    assert re.search(r">300</td><td[^>]*>in all, as many as were read<", page)
    for number, fate in report.fates():
        assert re.search(rf">{number:,}</td><td[^>]*>{fate}<", page)
    drawn = charts(page)
    assert list(drawn) == [
        *("Event time and watermark", "Delay of events and of the watermark", "Who holds the watermark back"),
        *("Events per 2 s", "Lateness", "Busiest keys", "Keys that come late", "What each bound loses"),
        *("How long results wait under each bound", "Results over time"),
    ]
    cells = values(drawn["Events per 2 s"])
    assert sum(cell["n"] for cell in cells) == 300
    late = sum(cell["n"] for cell in cells if cell["what"] == "behind the watermark")
    assert sum(row["n"] for row in values(drawn["Lateness"])) == 300
    assert sum(row["n"] for row in values(drawn["Lateness"]) if row["late"] == "behind") == late > 10
    assert sum(row["share"] for row in values(drawn["Busiest keys"])) == pytest.approx(1)
    fired = values(drawn["Results over time"])
    assert not [cell for cell in fired if cell["what"] == "fired by late events" and cell["n"]]
    assert (
        f"{report.late_firings} behind the end of their window, by a late event, which are drawn if" in page
    )
    on_time = sum(cell["n"] for cell in fired if cell["what"] == "on time")
    at_end = rows["watermark"].to_pylist().count(2**63 - 1)
    assert on_time == report.on_time_firings - at_end
    assert f"{at_end} more fire at the end of the log" in page


def test_the_frontier_is_drawn_with_the_own_bound(tmp_path: Path) -> None:
    keyed = events().key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(10)))
    report = keyed.aggregate(n=count()).execute().report
    report.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    spec = charts(page)["What each bound loses"]
    [own] = spec["layer"][1]["data"]["values"]
    assert own == {"bound": 2, "text": "your 2 s"}
    at_own = {row["what"]: row["value"] for row in values(spec) if row["bound"] == own["bound"]}
    assert at_own["late for all their windows"] == report.late / report.events_read > 0
    assert at_own["behind the watermark"] == sum(
        row["share"] for row in values(charts(page)["Lateness"]) if row["late"] == "behind"
    )
    assert values(spec)[-1]["value"] == 0
    assert f"<p>{keyed.aggregate(n=count()).lateness().sentence()}</p>" in page


def test_the_page_of_lateness_draws_the_frontier_and_tells_its_figures(tmp_path: Path) -> None:
    frontier = events().lateness([TumblingEventTimeWindows.of(Time.seconds(10))])
    frontier.to_html(tmp_path / "lateness.html", "Bounds & waits")
    page = (tmp_path / "lateness.html").read_text(encoding="utf-8")
    assert "<h1>Bounds &amp; waits</h1>" in page
    assert set(charts(page)) == {"What each bound loses", "How long results wait under each bound"}
    for line in (*str(frontier).splitlines(), *frontier.shown_splits().splitlines()):
        assert escape(line) in page
    events(LOG.slice(0, 0)).lateness().to_html(tmp_path / "lateness.html")
    assert charts((tmp_path / "lateness.html").read_text(encoding="utf-8")) == {}


def test_every_chart_is_vega_lite(tmp_path: Path) -> None:
    idle = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    logs = {
        "idle": events(LOG.slice(0, 200), idle.with_idleness(Duration.of_millis(300))),
        "by position": events(arrival=None, split=None),
        "one event": events(LOG.slice(0, 1)),
        "far apart": events(
            pa.table({"ts": [0, 10**12], "arrival": [5, 10**12], "key": ["a", "a"], "source": [1, 1]})
        ),
        "no watermark": events(strategy=WatermarkStrategy.no_watermarks()),
        "aligned": events(strategy=idle.with_watermark_alignment("group", Duration.of_seconds(1))),
        "in order": events(LOG.set_column(0, "ts", LOG["arrival"])),
    }
    drawn = {}
    for name, stream in logs.items():
        for title, spec in charts(page_of(windows(stream), tmp_path)).items():
            drawn[name, title] = spec
            assert spec["$schema"].endswith("/v6.json")
            assert vl_convert.vegalite_to_vega(spec | {"width": 900}, vl_version="6.4")["marks"]
    assert ("idle", "Idle splits") in drawn
    assert ("by position", "Delay of events and of the watermark") not in drawn
    assert all((name, "Lateness") in drawn for name in logs)
    frontiers = {name for name, title in drawn if title == "What each bound loses"}
    assert frontiers == {"idle", "aligned"}


def short_windows(stream: DataStream) -> DataStream:
    keyed = stream.key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(5)))
    return keyed.allowed_lateness(1000).aggregate(n=count())


def test_the_page_of_a_key_draws_its_events_and_firings_and_tells_its_story(tmp_path: Path) -> None:
    history = short_windows(events()).why("<k0>")
    history.to_html(tmp_path / "why.html")
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "Why: key = &#x27;&lt;k0&gt;&#x27;" in page
    ((title, spec),) = charts(page).items()
    vl_convert.vegalite_to_vega(spec, vl_version=VEGA_LITE)
    assert title == "Events and firings of the key"
    drawn = [(each["clock"], each["time"]) for each in values(spec)]
    happened = history.events.select(["arrival", "timestamp"]).to_pydict()
    assert sorted(drawn) == sorted(zip(*happened.values(), strict=True))
    behind = history.events.column("behind_watermark").to_pylist()
    fates = Counter(each["fate"] for each in values(spec))
    assert fates["behind the watermark, but in time"] + fates["late"] == sum(behind) > fates["late"] > 0
    bars = values(spec["layer"][0])
    fired = history.firings.select(["arrival", "window_start", "window_end"]).to_pydict()
    assert sorted((each["clock"], each["start"], each["time"]) for each in bars) == sorted(
        zip(*fired.values(), strict=True)
    )
    late_firings = sum(history.firings.column("late_firing").to_pylist())
    assert Counter(each["fate"] for each in bars)["fires again"] == late_firings > 0
    assert all(each["time"] < each["clock"] for each in values(spec["layer"][2]))
    for line in str(history).splitlines()[1:]:
        assert escape(line) in page


def test_the_page_of_a_function_and_of_a_key_without_events_can_be_had(tmp_path: Path) -> None:
    function = events().key_by("key").process(Passing(), LOG.schema)
    function.why("<k1>").to_html(tmp_path / "why.html", "Title & all")
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "<h1>Title &amp; all</h1>" in page
    assert len(values(charts(page)["Events and firings of the key"]["layer"][0])) == 43
    short_windows(events()).why("nobody").to_html(tmp_path / "why.html")
    assert charts((tmp_path / "why.html").read_text(encoding="utf-8")) == {}


def test_of_many_events_of_a_key_the_late_ones_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flinkcore.analysis.key_chart._SHOWN_EVENTS", 5)
    history = short_windows(events()).why("<k0>")
    history.to_html(tmp_path / "why.html")
    spec = charts((tmp_path / "why.html").read_text(encoding="utf-8"))["Events and firings of the key"]
    late = history.events.column("fate").to_pylist().count("late")
    fates = [each["fate"] for each in values(spec)]
    assert len(fates) == 5
    assert fates.count("late") == min(late, 5)


def test_flights_are_drawn_with_bounded_numbers_of_points(tmp_path: Path) -> None:
    result = hourly_flights(environment()).execute()
    result.to_arrow()
    result.report.to_html(tmp_path / "page.html")
    drawn = charts((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert max(len(values(spec)) for spec in drawn.values()) <= 9 * 240
    cells = [cell for cell in values(drawn["Idle splits"]) if cell["split"] == "ORD"]
    idle_ms = sum(cell["share"] * (cell["to"] - cell["clock"]) for cell in cells)
    assert idle_ms == pytest.approx(sum(end - start for start, end in result.report.idle_spans("ORD")))
    assert max(cell["share"] for cell in cells) == 1
    lines = drawn["Event time and watermark"]["layer"][1]["data"]["values"]
    assert len(lines) <= 9 * 240
    assert {row["split"] for row in lines} >= {"ORD", "215 other splits"}


def test_names_and_keys_cannot_be_markup(tmp_path: Path) -> None:
    log = LOG.append_column("k", pa.array(["</script><script>alert(1)</script>"] * 300))
    keyed = events(log).key_by("k").window(TumblingEventTimeWindows.of(Time.seconds(10))).aggregate(n=count())
    page = page_of(keyed, tmp_path, "<b>title</b>")
    assert "<h1>&lt;b&gt;title&lt;/b&gt;</h1>" in page
    assert "<script>alert" not in page
    assert charts(page)["Busiest keys"]["data"]["values"][0]["name"].startswith("</script>")


def test_a_log_of_which_filters_leave_nothing_has_no_charts(tmp_path: Path) -> None:
    page = page_of(windows(events().filter(pc.field("key") == "nobody")), tmp_path)
    assert "No event of the log comes to an operator." in page
    assert "300</td>" in page


def test_times_beyond_the_dates_of_browsers_are_drawn_at_their_ends(tmp_path: Path) -> None:
    far = pa.table({"ts": [0, 2**61], "arrival": [0, 1000], "key": ["a", "a"], "source": [1, 1]})
    drawn = charts(page_of(windows(events(far)), tmp_path))
    times = [cell["greatest"] for cell in values(drawn["Event time and watermark"])]
    assert max(time for time in times if time is not None) == 8_640_000_000_000_000


def scale_of(spec: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = spec["layer"][0]["encoding"]["y"]["scale"]
    return found


def test_times_that_are_far_away_do_not_hide_the_others(tmp_path: Path) -> None:
    start_ms = 1_700_000_000_000
    clock = [start_ms + 100 * n for n in range(3_000)]
    log = pa.table(
        {
            "ts": [0 if n % 20 == 4 else ms + 86_400_000 * (n % 2) for n, ms in enumerate(clock)],
            "arrival": clock,
            "key": ["a"] * 3_000,
            "source": [n % 2 for n in range(3_000)],
        }
    )
    drawn = charts(page_of(windows(events(log)), tmp_path))
    span_ms = 86_400_000 + 299_000
    first_ms = scale_of(drawn["Event time and watermark"])["domainMin"]
    assert start_ms - 2 * span_ms < first_ms < start_ms
    delays = drawn["Delay of events and of the watermark"]
    assert scale_of(delays)["type"] == "symlog"
    axis = delays["layer"][0]["encoding"]["y"]["axis"]
    assert [label in axis["labelExpr"] for label in ('"-6 h"', '"0"', '"10 s"', '"3,650 days"')] == [True] * 4
    assert '"36,500 days"' not in axis["labelExpr"]
    assert "domainMin" not in scale_of(
        charts(page_of(windows(events()), tmp_path))["Event time and watermark"]
    )


def test_results_of_functions_are_counted_and_not_drawn(tmp_path: Path) -> None:
    schema = pa.schema([("ts", pa.int64()), ("key", pa.string())])
    stream = events().select("ts", "key").key_by("key").process(Passing(), schema)
    page = page_of(stream, tmp_path)
    assert "Results over time" not in page
    assert "processed" in page


def test_written_results_are_drawn_from_their_files(tmp_path: Path) -> None:
    result = windows(events()).with_emitted_at("known").execute()
    report = result.write_parquet(tmp_path / "out")
    del result
    report.to_html(tmp_path / "page.html")
    fired = values(charts((tmp_path / "page.html").read_text(encoding="utf-8"))["Results over time"])
    assert (
        sum(cell["n"] for cell in fired if cell["what"] == "fired by late events") == report.late_firings > 0
    )


def test_results_of_counts_are_drawn_if_they_tell_when_they_were_emitted(tmp_path: Path) -> None:
    def tens() -> DataStream:
        return events().key_by("key").count_window(10).aggregate(n=count())

    page = page_of(tens(), tmp_path)
    assert "Results over time" not in charts(page)
    assert "Those of counts are drawn if" in page
    fired = values(charts(page_of(tens().with_emitted_at(), tmp_path))["Results over time"])
    assert sum(cell["n"] for cell in fired) == tens().to_arrow().num_rows


def test_results_that_nobody_has_any_more_are_not_drawn(tmp_path: Path) -> None:
    result = windows(events()).execute()
    list(result.to_batches())
    result.report.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Results over time" not in charts(page)
    assert "They are drawn if the result still has them" in page


def test_each_log_of_a_job_is_drawn(tmp_path: Path) -> None:
    env = environment()
    page = page_of(windows(events(env=env).union(events(LOG.slice(0, 0), env=env))), tmp_path)
    assert "<h2>Log 0: a table in memory</h2>" in page
    assert "<p>No event of the log comes to an operator.</p>" in page
    assert sum(cell["n"] for cell in values(charts(page)["Events per 2 s"])) == 300


def test_a_job_that_goes_on_draws_its_own_log(tmp_path: Path) -> None:
    windows(events(LOG.slice(0, 150))).execute(stop_with_checkpoint=tmp_path / "state").to_arrow()
    result = windows(events(LOG.slice(150))).execute(
        restore_from=tmp_path / "state", stop_with_checkpoint=tmp_path / "state"
    )
    result.to_arrow()
    result.report.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sum(cell["n"] for cell in values(charts(page)["Events per 1 s"])) == 150
    # Other bounds would have given the checkpoint other watermarks.
    assert "What each bound loses" not in charts(page)
    assert (
        "<h3>What each bound loses</h3><p>The loss of a bound is known only for a log from its beginning"
        in page
    )


def test_a_report_that_travelled_has_counts_and_no_page(tmp_path: Path) -> None:
    report = pickle.loads(pickle.dumps(windows(events()).execute().report))
    assert report.events_read == 300
    with pytest.raises(ConfigurationError, match="of the report that a result gives"):
        report.to_html(tmp_path / "page.html")


def test_a_page_without_its_library_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = windows(events()).execute().report
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'flinkcore\[report\]'"):
        report.to_html(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written_is_an_error_of_its_path(tmp_path: Path) -> None:
    report = windows(events()).execute().report
    with pytest.raises(SourceError, match=r"cannot be written to .*missing/page\.html"):
        report.to_html(tmp_path / "missing" / "page.html")


def test_an_earlier_page_stays_where_the_disk_is_full(tmp_path: Path) -> None:
    report = windows(events()).execute().report
    page = tmp_path / "page.html"
    page.write_text("earlier")
    with most_bytes_of_a_file(4096), pytest.raises(SourceError, match=r"page\.html: .*more room"):
        report.to_html(page)
    assert page.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [page]
    page.chmod(0o600)
    link = tmp_path / "link.html"
    link.symlink_to(page)
    report.to_html(link)
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink()


def test_a_page_may_go_to_a_pipe(tmp_path: Path) -> None:
    report = windows(events()).execute().report
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text)
        report.to_html(pipe)
        assert read.result().startswith("<!DOCTYPE html>")
