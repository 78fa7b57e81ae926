"""Charts of the loss and the delay of each bound of out-of-orderness."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flinkcore._internal.show.durations import shown_share
from flinkcore.analysis.lateness_frontier import LatenessFrontier
from flinkcore.analysis.vega_lite import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Chart,
    Spec,
    base_spec,
    coloured,
    shown_ms,
    unit_of,
)


def charts_of_frontier(frontier: LatenessFrontier) -> list[Chart]:
    """Return charts of the loss and the delay of each bound of out-of-orderness; none if no bound loses events."""
    if not frontier.largest_disorder_ms:
        return []
    rows = frontier.to_arrow().to_pylist()
    kind = {name: rows[0][name] for name in ("window", "allowed_lateness_ms")}
    rows = [row for row in rows if kind.items() <= row.items()]
    lines = [("behind the watermark", "late_for_watermark_share", BLUE)]
    if rows[0]["window"] is not None:
        lines.append(("late for all their windows", "late_share", ORANGE))
        lines.append(("windows incomplete at first", "incomplete_share", GREY))
    least = min((row[name] for row in rows for _, name, _ in lines if row[name]), default=1.0)
    powers = [0.1**power for power in range(12) if 0.1**power >= least / 3]
    y = {
        "type": "quantitative",
        "title": "share (logarithmic)",
        "scale": {"type": "symlog", "constant": powers[-1] / 2},
        "axis": {"values": [*powers, 0], "labelExpr": "format(100 * datum.value, '.3~g') + ' %'"},
    }
    charts = [
        Chart("What each bound loses", frontier.sentence(), _by_bound(frontier, rows, lines, y, shown_share))
    ]
    waits = [
        ("median", "wait_median_ms", GREEN),
        ("99 %", "wait_p99_ms", BLUE),
        ("longest", "wait_max_ms", GREY),
    ]
    waited = [row for row in rows if row["wait_max_ms"] is not None]
    if len(waited) > 1:
        unit, unit_ms = unit_of(max(row["wait_max_ms"] for row in waited) / 2)
        y = {
            "type": "quantitative",
            "title": f"behind the end of the window ({unit})",
            "axis": {"format": ",~r"},
        }
        text = (
            "How long after the end of its window a result fires for the first time, under each bound: whoever waits "
            "longer loses less. Windows that only the end of the log fires are left out."
        )
        spec = _by_bound(frontier, waited, waits, y, shown_ms, unit_ms=unit_ms)
        charts.append(Chart("How long results wait under each bound", text, spec))
    return charts


def _by_bound(
    frontier: LatenessFrontier,
    rows: Sequence[Spec],
    lines: Sequence[tuple[str, str, str]],
    y: Spec,
    words: Callable[[float], str],
    *,
    unit_ms: int = 1,
) -> Spec:
    """Columns of the frontier as lines over the bound, and where the stream's own bound is."""
    unit, bound_unit_ms = unit_of(rows[-1]["bound_ms"] / 2)
    points = [
        {
            "bound": row["bound_ms"] / bound_unit_ms,
            "value": row[column] / unit_ms,
            "what": name,
            "hint": shown_ms(row["bound_ms"]),
            "text": words(row[column]),
        }
        for name, column, _ in lines
        for row in rows
        if row[column] is not None
    ]
    names, colours = [name for name, _, _ in lines], [colour for _, _, colour in lines]
    x = {
        "field": "bound",
        "type": "quantitative",
        "title": f"bound of out-of-orderness ({unit}, spread out towards 0)",
        "scale": {"type": "sqrt", "nice": False},
        "axis": {"format": ",~r"},
    }
    own = [
        {"bound": frontier.own_bound_ms / bound_unit_ms, "text": f"your {shown_ms(frontier.own_bound_ms)}"}
    ]
    return base_spec(
        points,
        height=240,
        layer=[
            {
                "mark": {
                    "type": "line",
                    "strokeWidth": 2,
                    "interpolate": "step-after",
                    "point": {"size": 9},
                    "tooltip": True,
                },
                "encoding": {
                    "x": x,
                    "y": {"field": "value", **y},
                    "color": coloured("what", names, colours),
                    "tooltip": [
                        {"field": "hint", "type": "nominal", "title": "bound"},
                        {"field": "what", "type": "nominal", "title": "of"},
                        {"field": "text", "type": "nominal", "title": "is"},
                    ],
                },
            },
            {
                "data": {"values": own},
                "mark": {"type": "rule", "color": RED, "strokeWidth": 1.5, "strokeDash": [5, 3]},
                "encoding": {"x": x},
            },
            {
                "data": {"values": own},
                "mark": {"type": "text", "color": RED, "align": "left", "dx": 5, "y": 8},
                "encoding": {"x": x, "text": {"field": "text"}},
            },
        ],
    )
