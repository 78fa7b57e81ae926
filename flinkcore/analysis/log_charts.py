"""Charts of a log and of its results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.durations import shown_duration, shown_share
from flinkcore._internal.show.times import format_timestamp
from flinkcore.analysis.log_summary import (
    LATENESS_MS,
    ArrivalGrid,
    Firings,
    KeyCounts,
    SummarisedLog,
)
from flinkcore.analysis.vega_lite import (
    BLUE,
    GREEN,
    GREY,
    LAST_DATE_MS,
    ORANGE,
    RED,
    TIME_AXIS,
    ZOOM,
    Chart,
    Spec,
    base_spec,
    coloured,
    shown_ms,
    time_axis,
    unit_of,
)
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP

_SPLIT_COLOURS: Final = [
    *("#4a90d9", "#3fa37c", "#9a6fd0", "#c9a227", "#d65a8f", "#4bb3c3", "#8c7a5b", "#7f8c3f", "#b0653a"),
    GREY,
]
_SHOWN_KEYS: Final = 12
_DAY_MS: Final = 86_400_000
_ROUND_MS: Final = (
    *(1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000),
    *(days * _DAY_MS for days in (1, 7, 30, 365, 3_650, 36_500, 365_000)),
)
"""Durations that people know, for the ticks of an axis."""


def charts_of_log(log: SummarisedLog) -> list[Chart]:
    """Charts of the times, the lateness and the keys of a log."""
    charts = [_event_time(log)]
    if log.plan.log.arrival is not None:
        charts.append(_delays(log))
    idle_times = _idle_times(log)
    if idle_times:
        charts.append(_idleness(log, idle_times))
    if len(log.time_plane.holders.clock_ms) and len(log.split_names) > 1:
        charts.append(_holders(log))
    charts += [_arrivals(log), _lateness(log)]
    if log.summary.keys.columns:
        charts.append(_keys(log.summary.keys, "Busiest keys", int(log.summary.events.sum()), "events", BLUE))
    if log.summary.keys.columns and log.summary.late.any():
        late = int(log.summary.late.sum())
        keys = log.summary.late_keys
        charts.append(_keys(keys, "Keys that come late", late, "events behind the watermark", ORANGE))
    return charts


def _clock(log: SummarisedLog) -> Spec:
    recorded = log.plan.log.arrival is not None
    return time_axis("clock", "arrival (UTC)" if recorded else "replay clock, by position (UTC)")


# The stroke shows where all events are at the same height.
_RANGE: Final[Spec] = {
    "type": "rect",
    "color": BLUE,
    "opacity": 0.25,
    "stroke": BLUE,
    "strokeWidth": 0.8,
    "clip": True,
}


def _times(clock_ms: Int64s) -> list[int]:
    return [int(ms) for ms in np.clip(clock_ms, -LAST_DATE_MS, LAST_DATE_MS)]


def _or_none(values: npt.NDArray[Any], is_known: npt.ArrayLike) -> list[Any]:
    known = np.asarray(is_known).tolist()
    return [value if is_there else None for value, is_there in zip(values.tolist(), known, strict=True)]


def _event_time(log: SummarisedLog) -> Chart:
    summary, grid = log.summary, log.grid
    edges, watermark = grid.edges_ms, log.watermark_ms
    has_events = summary.events.any(axis=0)
    # Browsers know no dates beyond.
    dates = partial(np.clip, a_min=-LAST_DATE_MS, a_max=LAST_DATE_MS)
    least, greatest = dates(summary.least_ms.min(axis=0)), dates(summary.greatest_ms.max(axis=0))
    cells = [
        {"clock": clock, "to": to, "least": low, "greatest": high, "watermark": mark, "hint": hint}
        for clock, to, low, high, mark, hint in zip(
            _times(edges[:-1]),
            _times(edges[1:]),
            _or_none(least, has_events),
            _or_none(greatest, has_events),
            _or_none(dates(watermark[1:]), _is_time(watermark[1:])),
            _hints(grid),
            strict=True,
        )
    ]
    for cell in cells:
        cell["events"] = "none"
        if cell["least"] is not None:
            cell["events"] = f"{format_timestamp(cell['least'])} to {format_timestamp(cell['greatest'])}"
        cell["mark"] = "none yet" if cell["watermark"] is None else format_timestamp(cell["watermark"])
    clock = _clock(log)
    drawn_from = _drawn_from(least[has_events], greatest[has_events], dates(watermark[_is_time(watermark)]))
    y = {
        "type": "temporal",
        "title": "event time (UTC)",
        "scale": {"type": "utc", "nice": False}
        | ({} if drawn_from is None else {"domainMin": drawn_from, "clamp": True}),
        "axis": TIME_AXIS,
    }
    newest = np.maximum.accumulate(summary.greatest_ms, axis=1)
    own = _split_lines(log, dates(newest), newest > MIN_TIMESTAMP)
    layers: list[Spec] = [
        {
            "mark": _RANGE,
            "encoding": {
                "x": clock,
                "x2": {"field": "to"},
                "y": {"field": "least", **y},
                "y2": {"field": "greatest"},
            },
        },
        *([_layer_of_splits(log, own, y)] if len(log.split_names) > 1 else []),
        {
            "mark": {"type": "line", "color": ORANGE, "strokeWidth": 2.2, "interpolate": "step-before"},
            "encoding": {"x": time_axis("to", clock["title"]), "y": {"field": "watermark", **y}},
        },
        _hover([("arrival", "hint"), ("event times", "events"), ("watermark", "mark")]),
    ]
    first, last = (format_timestamp(int(ms)) for ms in (least[has_events].min(), greatest[has_events].max()))
    text = (
        f"Event times of {first} to {last} (blue: the range of those that arrive at a time), and the merged watermark "
        "(orange). A watermark that stands still holds all windows back."
    )
    if drawn_from is not None:
        text += f" What lies before {format_timestamp(drawn_from)} is drawn at the edge."
    if len(log.split_names) > 1:
        text += " The lines are the newest event time of each split: click on a name to see it alone."
    return Chart(
        "Event time and watermark", text, base_spec(cells, layer=layers, resolve=_OWN_COLOURS, height=320)
    )


def _drawn_from(least: Int64s, greatest: Int64s, watermark: Int64s) -> int | None:
    """Return where the axis of event time begins, if older events are so far away that they would hide all others."""
    newer = np.concatenate([greatest, watermark])
    first, last = int(newer.min()), int(newer.max())
    span = max(last - first, 1)
    return first - span if first - int(least.min()) > 8 * span else None


_OWN_COLOURS: Final[Spec] = {"scale": {"color": "independent"}}


def _is_time(watermark_ms: Int64s) -> npt.NDArray[np.bool_]:
    return (watermark_ms > MIN_TIMESTAMP) & (watermark_ms < MAX_TIMESTAMP)


def _hints(grid: ArrivalGrid) -> list[str]:
    return [
        f"{format_timestamp(int(start)).removesuffix('.000Z')} + {shown_duration(grid.width_ms)}"
        for start in grid.edges_ms[:-1]
    ]


def _hover(fields: Sequence[tuple[str, str]]) -> Spec:
    """Return the layer that shows the values of the cell under the mouse."""
    return {
        "params": [ZOOM],
        "mark": {"type": "rect", "opacity": 0.001, "color": GREY, "tooltip": True},
        "encoding": {
            "x": time_axis("clock", ""),
            "x2": {"field": "to"},
            "tooltip": [{"field": field, "type": "nominal", "title": title} for title, field in fields],
        },
    }


def _split_lines(
    log: SummarisedLog, values: npt.NDArray[Any], has_events: npt.NDArray[np.bool_], *, unit_ms: int = 1
) -> list[Spec]:
    """Return a point of each split for each cell in which it has events, and one without a value where a line ends."""
    clocks = _times(log.grid.edges_ms[:-1])
    ends = np.zeros_like(has_events)
    ends[:, 1:] = has_events[:, :-1] & ~has_events[:, 1:]
    return [
        {
            "clock": clocks[cell],
            "split": name,
            "value": values[group, cell].item() / unit_ms if has_events[group, cell] else None,
        }
        for group, name in enumerate(log.split_names)
        for cell in np.flatnonzero(has_events[group] | ends[group])
    ]


def _layer_of_splits(log: SummarisedLog, rows: list[Spec], y: Spec) -> Spec:
    return {
        "data": {"values": rows},
        "params": [{"name": "split", "select": {"type": "point", "fields": ["split"]}, "bind": "legend"}],
        "mark": {"type": "line", "strokeWidth": 1.2, "clip": True},
        "encoding": {
            "x": _clock(log),
            "y": {"field": "value", **y},
            "color": {**coloured("split", list(log.split_names), _colours(log)), "sort": None},
            "opacity": {"condition": {"param": "split", "value": 0.9}, "value": 0.06},
        },
    }


def _colours(log: SummarisedLog) -> list[str]:
    names = len(log.split_names)
    own = len(log.shown_splits)
    return [*_SPLIT_COLOURS[:own], *[GREY] * (names - own)]


def _delays(log: SummarisedLog) -> Chart:
    summary, grid = log.summary, log.grid
    has_events = summary.events.any(axis=0)
    least, greatest = summary.least_delay_ms.min(axis=0), summary.greatest_delay_ms.max(axis=0)
    n_events = summary.events.sum(axis=0)
    mean = summary.delays_ms.sum(axis=0) / np.maximum(n_events, 1)
    watermark = log.watermark_ms[1:]
    is_time = _is_time(watermark)
    trails = np.where(is_time, grid.edges_ms[1:] - 1 - np.where(is_time, watermark, 0), 0)
    shown = np.concatenate([greatest[has_events], trails[is_time]])
    typical_ms = _typical(shown, trails[is_time])
    unit, unit_ms = unit_of(typical_ms)
    cells = [
        {
            "clock": clock,
            "to": to,
            "least": low,
            "greatest": high,
            "trails": behind,
            "hint": hint,
            "events": "none"
            if low is None
            else f"{shown_ms(low)} to {shown_ms(high)}, mean {shown_ms(middle)}",
            "mark": "none yet" if behind is None else shown_ms(behind),
        }
        for clock, to, low, high, middle, behind, hint in zip(
            _times(grid.edges_ms[:-1]),
            _times(grid.edges_ms[1:]),
            _or_none(least, has_events),
            _or_none(greatest, has_events),
            mean.tolist(),
            _or_none(trails, is_time),
            _hints(grid),
            strict=True,
        )
    ]
    for cell in cells:
        for name in ("least", "greatest", "trails"):
            cell[name] = None if cell[name] is None else cell[name] / unit_ms
    y = {
        "type": "quantitative",
        "title": f"behind the clock ({unit})",
        "scale": {"zero": True},
        "axis": {"format": "~s" if unit == "ms" else ",~r"},
    }
    if typical_ms and float(np.abs(shown).max()) > 8 * typical_ms:
        y |= _far_scale(np.concatenate([shown, least[has_events]]), typical_ms, unit_ms)
    own = _split_lines(
        log, summary.delays_ms / np.maximum(summary.events, 1), summary.events > 0, unit_ms=unit_ms
    )
    layers: list[Spec] = [
        {
            "mark": _RANGE,
            "encoding": {
                "x": _clock(log),
                "x2": {"field": "to"},
                "y": {"field": "least", **y},
                "y2": {"field": "greatest"},
            },
        },
        *([_layer_of_splits(log, own, y)] if len(log.split_names) > 1 else []),
        {
            "mark": {"type": "line", "color": ORANGE, "strokeWidth": 2.2, "interpolate": "step-before"},
            "encoding": {"x": time_axis("to", ""), "y": {"field": "trails", **y}},
        },
        _hover([("arrival", "hint"), ("events behind by", "events"), ("watermark behind by", "mark")]),
    ]
    typical = float(np.median(trails[is_time])) if is_time.any() else None
    text = "How long after its event time an event arrives (blue: from the least to the greatest delay)"
    text += "" if len(log.split_names) == 1 else ", the mean of each split"
    text += (
        ". There is no watermark before the end of the log."
        if typical is None
        else f", and how far the watermark trails behind the clock (orange): in the median {shown_ms(typical)}. Events "
        "above the orange line are late."
    )
    return Chart(
        "Delay of events and of the watermark", text, base_spec(cells, layer=layers, resolve=_OWN_COLOURS)
    )


def _typical(values: npt.NDArray[Any], usual: npt.NDArray[Any]) -> float:
    """Return the typical size of values, or of usual ones if some values in most cells are far from usual."""
    size, usual_size = np.abs(values), np.abs(usual)
    typical = float(np.quantile(size, 0.9)) if len(size) else 0.0
    least = float(np.quantile(usual_size, 0.9)) if len(usual_size) else 0.0
    return least if least and float(size.max()) > 100 * least else typical


def _far_scale(values_ms: npt.NDArray[Any], typical_ms: float, unit_ms: int) -> Spec:
    """Return a scale that shows usual values although a few are far away; its ticks are durations."""
    first_ms, last_ms = min(int(values_ms.min()), 0), int(values_ms.max())
    ticks = [0, *(sign * ms for ms in _ROUND_MS for sign in (1, -1) if ms >= typical_ms / 4)]
    shown = sorted(ms for ms in ticks if first_ms <= ms <= last_ms)
    labels = {ms: "0" if ms == 0 else f"{'-' * (ms < 0)}{shown_duration(abs(ms))}" for ms in shown}
    return {
        "title": "behind the clock",
        "scale": {"type": "symlog", "constant": max(typical_ms / unit_ms / 4, 1e-6)},
        "axis": {
            "values": [ms / unit_ms for ms in shown],
            "labelExpr": f"{json.dumps(labels)}[round(datum.value * {unit_ms})]",
        },
    }


def _idle_times(log: SummarisedLog) -> list[Spec]:
    """For each split that is shown, how much of each cell it was idle or paused."""
    edges, width_ms = log.grid.edges_ms, log.grid.width_ms
    rows = []
    for split, name in zip(log.shown_splits, log.split_names, strict=False):
        for what, spans in (
            ("idle", log.time_plane.splits.idle_spans(split)),
            ("paused", log.time_plane.paused.of(split)),
        ):
            if not spans:
                continue
            # The total length of spans before each end of a span, and so before each edge.
            lasted = np.cumsum([length for start, end in spans for length in (0, end - start)])
            in_cells = np.diff(np.interp(edges, np.array(spans).ravel(), lasted))
            rows += [
                {
                    "split": name,
                    "what": what,
                    "clock": int(edges[cell]),
                    "to": int(edges[cell + 1]),
                    "share": float(in_cells[cell]) / width_ms,
                    "hint": f"{what} for {shown_ms(float(in_cells[cell]))}",
                    "from": hint,
                }
                for cell, hint in enumerate(_hints(log.grid))
                if in_cells[cell] > 0
            ]
    return rows


def _idleness(log: SummarisedLog, rows: list[Spec]) -> Chart:
    names = list(log.split_names[: len(log.shown_splits)])
    clock = _clock(log)
    y = {"field": "split", "type": "nominal", "title": None, "sort": names, "scale": {"domain": names}}
    colour = coloured("what", ["idle", "paused"], [GREY, RED])
    tooltip = [
        {"field": "split", "type": "nominal", "title": "split"},
        {"field": "from", "type": "nominal", "title": "arrival"},
        {"field": "hint", "type": "nominal", "title": "was"},
    ]
    share = {"field": "share", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0.1, 1]}}
    whole_log = [{"clock": ms} for ms in _times(log.grid.edges_ms[[0, -1]])]
    spec = base_spec(
        rows,
        height=22 * len(names) + 20,
        layer=[
            {
                "mark": {"type": "rect", "height": {"band": 0.6}, "tooltip": True},
                "encoding": {
                    "x": clock,
                    "x2": {"field": "to"},
                    "y": y,
                    "color": colour,
                    "opacity": share | {"legend": None},
                    "tooltip": tooltip,
                },
            },
            {
                "data": {"values": whole_log},
                "mark": {"type": "point", "opacity": 0},
                "encoding": {"x": clock},
            },
        ],
    )
    splits = log.time_plane.splits
    idle = len(np.unique(splits.idle_split))
    paused = len(np.unique(log.time_plane.paused.split))
    parts = [
        f"{n:,} of {len(splits.values):,} splits were {what}"
        for n, what in ((idle, "idle"), (paused, "paused"))
        if n
    ]
    text = (
        f"{'; '.join(parts)} at some time; the busiest splits are shown, the darker the longer within "
        f"{shown_duration(log.grid.width_ms)}. An idle split holds no watermark back."
    )
    return Chart("Idle splits" if not paused else "Idle and paused splits", text, spec)


def _holders(log: SummarisedLog) -> Chart:
    holders, splits = log.time_plane.holders, log.time_plane.splits
    end_ms = max(int(log.grid.edges_ms[-1]), int(holders.clock_ms[-1]))
    lasted = np.diff(np.append(holders.clock_ms, end_ms))
    is_held = holders.split >= 0
    held = np.bincount(holders.split[is_held], lasted[is_held], minlength=len(splits.values))
    order = [int(split) for split in np.argsort(-held, kind="stable")[:_SHOWN_KEYS] if held[split] > 0]
    all_ms = max(1, int(lasted.sum()))
    rows = [
        (str(splits.values[split]), held[split] / all_ms, shown_ms(float(held[split]))) for split in order
    ]
    text = (
        f"Of the splits that are not idle, the one with the least watermark holds the others back: "
        f"{rows[0][0]!r} does so for {shown_share(rows[0][1])} of the time."
        if rows
        else "No split holds the others back."
    )
    return Chart("Who holds the watermark back", text, _bars(rows, "share of the time", "time", GREEN))


def _bars(rows: Sequence[tuple[str, float, str]], title: str, hint: str, colour: str) -> Spec:
    """Horizontal bars of shares, by name, with a text for each."""
    values = [{"name": name, "share": share, "hint": text} for name, share, text in rows]
    y = {"field": "name", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 220}}
    x = {"field": "share", "type": "quantitative", "title": title, "axis": {"format": "~%", "tickCount": 6}}
    tooltip = [
        {"field": "name", "type": "nominal", "title": "name"},
        {"field": "share", "type": "quantitative", "format": ".2%", "title": "share"},
        {"field": "hint", "type": "nominal", "title": hint},
    ]
    return base_spec(
        values,
        height=max(1, len(values)) * 22 + 10,
        layer=[
            {
                "mark": {"type": "bar", "color": colour, "tooltip": True},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4, "color": "currentColor"},
                "encoding": {"x": x, "y": y, "text": {"field": "hint"}},
            },
        ],
    )


def _arrivals(log: SummarisedLog) -> Chart:
    summary, grid = log.summary, log.grid
    events, late = summary.events.sum(axis=0), summary.late.sum(axis=0)
    n_events, n_late = int(events.sum()), int(late.sum())
    text = (
        f"{n_events:,} events, of which {n_late:,} ({shown_share(n_late / n_events)}) are behind the watermark when "
        "they arrive. Only those of windows that are over by then are late for their windows."
    )
    return Chart(
        f"Events per {shown_duration(grid.width_ms)}",
        text,
        _stacked(
            _clock(log),
            grid,
            "events",
            [("ahead of the watermark", events - late, BLUE), ("behind the watermark", late, ORANGE)],
        ),
    )


def _stacked(clock: Spec, grid: ArrivalGrid, title: str, layers: Sequence[tuple[str, Int64s, str]]) -> Spec:
    """Numbers by cell, one layer on the other; each has a name and a colour."""
    rows: list[Spec] = []
    last_ms = int(grid.edges_ms[-1])
    below = np.zeros(grid.cells, np.int64)
    for name, numbers, _ in layers:
        rows += [
            {"clock": start, "to": end, "low": low, "high": low + n, "n": n, "what": name, "hint": hint}
            for start, end, low, n, hint in zip(
                _times(grid.edges_ms[:-1]),
                _times(grid.edges_ms[1:]),
                below.tolist(),
                numbers.tolist(),
                _hints(grid),
                strict=True,
            )
            if n or start == grid.first_ms or end == last_ms  # the chart goes over all of the log
        ]
        below = below + numbers
    names, colours = [name for name, _, _ in layers], [colour for _, _, colour in layers]
    return base_spec(
        rows,
        height=180,
        params=[ZOOM],
        mark={"type": "rect", "tooltip": True, "clip": True},
        encoding={
            "x": clock,
            "x2": {"field": "to"},
            "y": {
                "field": "low",
                "type": "quantitative",
                "title": title,
                "axis": {"format": ",~d", "tickMinStep": 1},
            },
            "y2": {"field": "high"},
            "color": coloured("what", names, colours),
            "tooltip": [
                {"field": "hint", "type": "nominal", "title": "arrival"},
                {"field": "what", "type": "nominal", "title": title},
                {"field": "n", "type": "quantitative", "format": ",", "title": "number"},
            ],
        },
    )


def _bins(numbers: Int64s, *, joins_short: bool) -> list[tuple[str, int]]:
    """Names and numbers of the bins of lateness; those below a second as one, where nobody looks at them."""
    names = [shown_duration(ms) for ms in LATENESS_MS]
    bins = list(zip(["0 ms", *names], [*names, None], numbers.tolist(), strict=True))
    if joins_short:
        short = LATENESS_MS.index(1_000) + 1
        bins = [("0 ms", "1 s", sum(n for _, _, n in bins[:short])), *bins[short:]]
    return [
        (
            f"{end or start} or more"
            if end is None
            else f"{start} to {end}"
            if start != "0 ms"
            else f"less than {end}",
            n,
        )
        for start, end, n in bins
    ]


def _lateness(log: SummarisedLog) -> Chart:
    summary = log.summary
    distances = summary.ahead + summary.behind
    joins_short = int(distances[: LATENESS_MS.index(1_000) + 1].sum()) * 2 < int(distances.sum())
    ahead, behind = (_bins(numbers, joins_short=joins_short) for numbers in (summary.ahead, summary.behind))
    bins = [
        *((f"ahead {name}", n, False) for name, n in reversed(ahead)),
        *((f"behind {name}", n, True) for name, n in behind),
    ]
    filled = [at for at, (_, n, _) in enumerate(bins) if n]
    shown = bins[filled[0] : filled[-1] + 1] if filled else []
    if summary.before_watermark:
        shown = [("before the first watermark", summary.before_watermark, False), *shown]
    total = int(summary.events.sum())
    rows = [
        {"name": name, "n": n, "late": "behind" if late else "ahead", "hint": f"{n:,}", "share": n / total}
        for name, n, late in shown
    ]
    y = {"field": "name", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 260}}
    most = max((n for _, n, _ in shown), default=0)
    powers = [10**power for power in range(19) if 10**power <= 3 * most]
    x = {
        "field": "n",
        "type": "quantitative",
        "title": "events (logarithmic)",
        "scale": {"type": "symlog"},
        "axis": {"values": [0, *powers], "format": ",d"},
    }
    spec = base_spec(
        rows,
        height=20 * len(rows) + 20,
        layer=[
            {
                "mark": {"type": "bar", "tooltip": True},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {
                        "field": "late",
                        "type": "nominal",
                        "scale": {"domain": ["ahead", "behind"], "range": [BLUE, ORANGE]},
                        "legend": None,
                    },
                    "tooltip": [
                        {"field": "name", "type": "nominal", "title": "watermark"},
                        {"field": "n", "type": "quantitative", "format": ",", "title": "events"},
                        {"field": "share", "type": "quantitative", "format": ".3%", "title": "share"},
                    ],
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4, "color": "currentColor"},
                "encoding": {"x": x, "y": y, "text": {"field": "hint"}},
            },
        ],
    )
    late = int(summary.behind.sum())
    text = (
        f"How far events are ahead of the watermark in force, or behind it. {late:,} of {total:,} events are behind. "
        "Lengths of bars are logarithmic: each tick is ten times as many events."
    )
    return Chart("Lateness", text, spec)


def _keys(keys: KeyCounts, title: str, total: int, of_what: str, colour: str) -> Chart:
    top = keys.top(_SHOWN_KEYS)
    rows = [(name, n / total, f"{n:,}") for name, n in top]
    share = sum(n for _, n in top) / total
    which = ", ".join(keys.columns)
    text = f"The {len(top)} keys ({which}) with most {of_what} have {shown_share(share)} of them."
    if keys.missing:
        text += f" There are so many keys that each number may be too low by {keys.missing:,} at most."
    return Chart(title, text, _bars(rows, f"share of the {of_what}", "events", colour))


def chart_of_firings(firings: Firings) -> Chart:
    """Return the chart of firings, in time and late."""
    on_time, late = int(firings.on_time.sum()), int(firings.late.sum()) + firings.without_time
    text = f"{on_time:,} results fire in time, {late:,} behind the end of their window, by a late event"
    if firings.without_time:
        text += ", which are drawn if the results tell when they were emitted (with_emitted_at())"
    text += (
        f"; {firings.at_end:,} more fire at the end of the log, and are not drawn." if firings.at_end else "."
    )
    layers = [("on time", firings.on_time, GREEN), ("fired by late events", firings.late, ORANGE)]
    clock = time_axis("clock", "replay clock (UTC)")
    return Chart("Results over time", text, _stacked(clock, firings.grid, "results", layers))
