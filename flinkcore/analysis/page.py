"""The page of a report: its counts, and charts of its logs and results, in one file that needs no network."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape
from os import PathLike
from pathlib import Path
from typing import Final

import flinkcore
from flinkcore._internal.io.free_room import directory_remedy
from flinkcore._internal.python.extras import library
from flinkcore._internal.show.html import html_lines, html_table
from flinkcore._internal.show.times import format_timestamp
from flinkcore.analysis.frontier_charts import charts_of_frontier
from flinkcore.analysis.key_chart import chart_of_key
from flinkcore.analysis.key_history import KeyHistory
from flinkcore.analysis.key_story import told
from flinkcore.analysis.lateness import lateness_of
from flinkcore.analysis.lateness_frontier import LatenessFrontier
from flinkcore.analysis.log_charts import chart_of_firings, charts_of_log
from flinkcore.analysis.log_summary import ArrivalGrid, Firings, summarised_log
from flinkcore.analysis.vega_lite import VEGA_LITE, Chart
from flinkcore.columnar.planned_job import PlannedJob
from flinkcore.columnar.results.report import ReplayReport, ReportSource
from flinkcore.errors import ConfigurationError, DataError, SourceError, in_words
from flinkcore.log.sources.log_sources import LogFiles, TableSource
from flinkcore.time_plane.job_time import JobTime

_NO_NETWORK: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data: blob:"
)
"""Policy of the page: it loads nothing from elsewhere. Vega compiles its expressions, which counts as eval."""

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5b6675; --line: #d9dee5; --paper: #fff; --card: #f5f7fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ef; --soft: #9aa6b5; --line: #333c49; --paper: #14181f; --card: #1c222c; }
}
body { margin: 0 auto; max-width: 1080px; padding: 24px; color: var(--ink); background: var(--paper);
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; } h2 { font-size: 18px; margin: 32px 0 4px; }
h3 { font-size: 16px; margin: 28px 0 4px; }
p { margin: 4px 0 8px; color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: 10px; margin: 16px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.card b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; } .card span { color: var(--soft); }
table { border-collapse: collapse; margin: 8px 0; font-variant-numeric: tabular-nums; }
td, th { border-bottom: 1px solid var(--line); padding: 3px 12px 3px 0; }
tr:last-child td { border-bottom: 0; } ul { padding-left: 20px; } li { margin: 2px 0; }
.warning { border-left: 4px solid #e8853d; padding: 2px 12px; background: var(--card); }
pre { overflow-x: auto; }
.chart { width: 100%; min-height: 60px; } figure { margin: 0; }
footer { margin-top: 32px; color: var(--soft); font-size: 13px; }
"""

_SCRIPT: Final = """
const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
const ink = {labelColor: "currentColor", titleColor: "currentColor"};
const config = {
  background: null, font: "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", view: {stroke: null},
  axis: {...ink, gridColor: "currentColor", gridOpacity: 0.12, domainColor: "currentColor", domainOpacity: 0.4,
    tickColor: "currentColor", tickOpacity: 0.4, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal"},
  legend: {...ink, labelFontSize: 12, orient: "top", columns: 9, labelLimit: 220, symbolStrokeWidth: 3},
};
const options = {renderer: "svg", config, tooltip: {theme: dark ? "dark" : "light"},
  actions: {export: true, source: false, compiled: false, editor: false}};
const drawn = [...document.querySelectorAll("script.spec")].map((script) =>
  vegaEmbed(script.previousElementSibling, JSON.parse(script.textContent), options));
Promise.all(drawn).then(() => document.documentElement.setAttribute("data-drawn", drawn.length));
"""


def check_page(path: str | PathLike[str]) -> None:
    """Raise what `write_page` would raise of a missing library or folder, before there is a report."""
    library("vl_convert", "report", "a report with charts")
    folder = Path(path).absolute().parent
    if not folder.is_dir() or Path(path).is_dir():
        raise ConfigurationError(
            f"a report cannot be written to {path}: it is a file in a folder that is there already"
        )


def write_page(report: ReplayReport, path: str | PathLike[str], title: str | None = None) -> None:
    """Write a report as a page; parameters as of `ReplayReport.to_html`."""
    vl_convert = library("vl_convert", "report", "to_html()")
    source = report._source
    if source is None:
        raise ConfigurationError(
            "this report cannot be drawn, as nothing is known of its logs: take to_html() of the report that a result "
            "gives, in the process that has run the job"
        )
    planned: PlannedJob = source.planned()
    names = [_log_name(log.log.source) for log in planned.plan.logs]
    title = f"Replay of {', '.join(names)}" if title is None else title
    sections = [_head(report, title), _counts(report)]
    sections += [*_log_sections(planned, names), *_frontier(planned), *_results(planned, source)]
    _write(path, _page(title, sections, vl_convert.javascript_bundle(_SCRIPT, VEGA_LITE)))


def write_key_page(history: KeyHistory, path: str | PathLike[str], title: str | None = None) -> None:
    """Write the history of a key as a page; parameters as of `KeyHistory.to_html`."""
    vl_convert = library("vl_convert", "report", "to_html()")
    head, *story = told(history)
    title = f"Why: {head}" if title is None else title
    sections = [f"<h1>{escape(title)}</h1>"]
    if history.events.num_rows:
        sections.append(_figure(chart_of_key(history)))
    sections.append(f"<h2>What happened</h2>{html_lines(chr(10).join(story))}")
    _write(path, _page(title, sections, vl_convert.javascript_bundle(_SCRIPT, VEGA_LITE)))


def write_lateness_page(
    frontier: LatenessFrontier, path: str | PathLike[str], title: str | None = None
) -> None:
    """Write the frontier of a log as a page; parameters as of `LatenessFrontier.to_html`."""
    vl_convert = library("vl_convert", "report", "to_html()")
    title = "Which bound of out-of-orderness?" if title is None else title
    sections = [f"<h1>{escape(title)}</h1>", *map(_figure, charts_of_frontier(frontier))]
    sections.append(f"<h2>In figures</h2>{html_lines(str(frontier))}")
    if frontier.events and len(frontier.splits.values) > 1:
        sections.append(f"<h2>By split</h2>{html_lines(frontier.shown_splits())}")
    _write(path, _page(title, sections, vl_convert.javascript_bundle(_SCRIPT, VEGA_LITE)))


def _write(path: str | PathLike[str], page: str) -> None:
    """Write a page; an earlier one stays until the new one is whole, where its directory can be written."""
    content = page.encode(errors="backslashreplace")
    try:
        target = Path(path)
        is_other = target.exists() and not target.is_file()  # such as a pipe
        if is_other or str(target).startswith(("/dev/", "/proc/")):
            target.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(target)), content)
    except OSError as error:
        remedy = directory_remedy(Path(path).parent, error)
        raise SourceError(
            f"the report cannot be written to {path}: {in_words(error)}; give {remedy}", file=str(path)
        ) from error


def _replace(target: Path, content: bytes) -> None:
    unfinished = target.with_name(f".flinkcore-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        file = unfinished.open("xb")
    except PermissionError:
        target.write_bytes(content)
        return
    try:
        with file:
            file.write(content)
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _page(title: str, sections: Sequence[str], script: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NO_NETWORK}">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(sections)
        + f"\n<footer>flinkcore {flinkcore.__version__}. Drag a chart to move it, turn the wheel with Shift to "
        "zoom, double-click to go back.</footer>\n"
        "<noscript><p>The charts need JavaScript, which is within this file.</p></noscript>\n"
        f'<script type="module">{_inline(script)}</script></body></html>\n'
    )


def _log_name(source: object) -> str:
    if isinstance(source, LogFiles) and source.table_name is not None:
        return source.table_name
    if isinstance(source, LogFiles) and source.files:
        first, more = source.files[0].name.rsplit("/", 1)[-1], len(source.files) - 1
        return f"{first} and {more:,} more files" if more else first
    return "a table in memory" if isinstance(source, TableSource) else str(source)


def _inline(script: str) -> str:
    """Return a script without what would end it within a page."""
    return script.replace("</script", "<\\/script")


def _head(report: ReplayReport, title: str) -> str:
    last = report.by_operator[-1]
    cards = [
        (f"{report.events_read:,}", "events"),
        (f"{report.splits:,}", "splits" if report.splits != 1 else "split"),
        (f"{last.on_time_firings + last.late_firings or last.results:,}", "results"),
        (f"{sum(each.late for each in report.by_operator):,}", "late events"),
    ]
    if report.min_timestamp_ms is not None and report.max_timestamp_ms is not None:
        cards.append((_short(report.min_timestamp_ms), "first event time"))
        cards.append((_short(report.max_timestamp_ms), "last event time"))
    shown = "".join(
        f'<div class="card"><b>{escape(n)}</b><span>{escape(what)}</span></div>' for n, what in cards
    )
    warnings = "".join(f'\n<p class="warning">{escape(warning)}</p>' for warning in report.warnings)
    return f'<h1>{escape(title)}</h1>{warnings}\n<div class="cards">{shown}</div>'


def _short(timestamp_ms: int) -> str:
    return format_timestamp(timestamp_ms).removesuffix("Z").removesuffix(".000")


def _counts(report: ReplayReport) -> str:
    parts = []
    for number, each in enumerate(report.by_operator, start=1):
        name = "What became of the events" if number == 1 else f"What became of the rows of operator {number}"
        rows = [(f"{count:,}", fate) for count, fate in each.fates()]
        rows.append((f"{sum(count for count, _ in each.fates()):,}", "in all, as many as were read"))
        parts.append(f"<h2>{name}</h2>{html_table([], rows, [True, False])}")
        parts += [f"<p>{escape(line)}</p>" for line in each._result_lines()]
    return "\n".join(parts)


def _log_sections(planned: PlannedJob, names: Sequence[str]) -> Iterator[str]:
    for number, name in enumerate(names):
        if len(names) > 1:
            yield f"<h2>Log {number}: {escape(name)}</h2>"
        log = summarised_log(planned, number)
        if log is None:
            yield "<p>No event of the log comes to an operator.</p>"
        else:
            yield from map(_figure, charts_of_log(log))


def _frontier(planned: PlannedJob) -> Iterator[str]:
    """Yield the section on other bounds, for a job of one log whose strategy has a bound."""
    if len(planned.plan.logs) > 1 or not planned.time_planes[0].events:
        return
    strategy = planned.plan.logs[0].strategy
    if strategy.out_of_orderness_ms is None:
        return
    try:
        frontier = lateness_of(planned)
    except (ConfigurationError, DataError) as error:
        yield f"<h3>What each bound loses</h3><p>{escape(str(error))}</p>"
    else:
        yield from map(_figure, charts_of_frontier(frontier))


def _results(planned: PlannedJob, source: ReportSource) -> Iterator[str]:
    operator, emitted_at = planned.plan.operator, planned.plan.stages[-1].emitted_at
    if not operator.gives_firings:
        return
    if planned.plan.stages[-1].after:
        yield "<h3>Results over time</h3><p>They are drawn if no step follows the windows.</p>"
        return
    if operator.fires_by_count and emitted_at is None:
        yield (
            "<h3>Results over time</h3><p>Those of counts are drawn if they tell when they were emitted "
            "(with_emitted_at()).</p>"
        )
        return
    job_time = JobTime(planned.plan.streams, planned.time_planes, planned.checkpoints.cuts)
    ranges = [each.splits.arrival_range for each in planned.time_planes if each.events]
    if not ranges:
        return
    last_arrival_ms = max(last for _, last in ranges)
    grid = ArrivalGrid.over(min(first for first, _ in ranges), last_arrival_ms)
    firings = Firings(grid, job_time.replay_times()[-1].timeline, last_arrival_ms, emitted_at)
    rows = source.results(firings.columns)
    if rows is None:
        yield (
            "<h3>Results over time</h3><p>They are drawn if the result still has them, after to_arrow(), or has "
            "written them by write_parquet().</p>"
        )
        return
    for batch in rows:
        firings.add(batch)
    yield _figure(chart_of_firings(firings))


def _figure(chart: Chart) -> str:
    spec = json.dumps(chart.spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        f"<figure><h3>{escape(chart.title)}</h3><p>{escape(chart.text)}</p>"
        f'<div class="chart"></div><script type="application/json" class="spec">{spec}</script></figure>'
    )
