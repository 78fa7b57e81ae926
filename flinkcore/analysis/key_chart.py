"""The chart of the events and firings of a key."""

from __future__ import annotations

from typing import Any, Final

from flinkcore.analysis.key_history import KeyHistory
from flinkcore.analysis.key_story import rows_in_ms
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
    time_axis,
)
from flinkcore.common import MAX_TIMESTAMP

_SHOWN_EVENTS: Final = 4_000
_KEY_FATES: Final = (
    *(
        "in window",
        "processed",
        "behind the watermark, but in time",
        "in no window",
        "filtered",
        "rejected",
        "late",
    ),
)
_KEY_COLOURS: Final = (BLUE, BLUE, "#9a6fd0", GREY, GREY, GREY, RED)


def chart_of_key(history: KeyHistory) -> Chart:
    """Return the chart of a key's events by arrival and event time, with the watermark that they met, and firings."""
    events = [each for each in rows_in_ms(history.events) if None not in (each["arrival"], each["timestamp"])]
    firings = [each for each in rows_in_ms(history.firings) if each["arrival"] is not None]
    # Those that are not as usual are drawn in any case, and above the others.
    by_interest = sorted(events, key=lambda each: _KEY_FATES.index(_key_fate(each)))
    points = [
        {
            "clock": clock,
            "time": time,
            "fate": _key_fate(each),
            "hint": ": ".join(filter(None, [f"event {each['event']}", each["fate"], each["reason"]])),
        }
        for each in by_interest[-_SHOWN_EVENTS:]
        for clock, time in [_dates(each["arrival"], each["timestamp"])]
    ]
    bars = []
    for each in firings[:_SHOWN_EVENTS]:
        # A call of a function, and a window without bounds, has no length.
        end = next(each[name] for name in ("window_end", "timer", "arrival") if each[name] is not None)
        start = end if each["window_start"] is None else each["window_start"]
        clock, start, last = _dates(each["arrival"], start, end)
        what = "fires again" if each["late_firing"] else "fires"
        bars.append(
            {"clock": clock, "start": start, "time": last, "fate": what, "hint": f"firing {each['firing']}"}
        )
    met = {
        _dates(each["arrival"], each["watermark"])
        for each in (*events, *firings)
        if each["watermark"] is not None and each["watermark"] < MAX_TIMESTAMP
    }
    line = [{"clock": clock, "time": time} for clock, time in sorted(met)]
    x = time_axis("clock", "arrival (UTC)")
    y = {
        "field": "time",
        "type": "temporal",
        "title": "event time (UTC)",
        "scale": {"type": "utc", "nice": False},
        "axis": TIME_AXIS,
    }
    colours = {**dict(zip(_KEY_FATES, _KEY_COLOURS, strict=True)), "fires": GREEN, "fires again": ORANGE}
    named = [name for name in colours if any(row["fate"] == name for row in (*points, *bars))]
    colour = coloured("fate", named, [colours[name] for name in named])
    tooltip = [{"field": "hint", "type": "nominal", "title": "is"}]
    layers: list[Spec] = [
        {
            "data": {"values": bars},
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.7, "tooltip": True},
            "encoding": {
                "x": x,
                "y": {**y, "field": "start"},
                "y2": {"field": "time"},
                "color": colour,
                "tooltip": tooltip,
            },
        },
        {
            "data": {"values": bars},
            "mark": {"type": "point", "shape": "triangle-up", "filled": True, "size": 45, "opacity": 0.9},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
        },
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": ORANGE, "strokeWidth": 1.6, "interpolate": "step-after"},
            "encoding": {"x": x, "y": y},
        },
        {
            "params": [ZOOM],
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.85},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
        },
    ]
    text = (
        "Each event of the key (points), the watermark that was in force (orange line), and each firing (triangles, "
        "with a bar from the start of the window to its end). What lies below the line was behind the watermark."
    )
    left_out = len(events) - len(points) + len(firings) - len(bars)
    if left_out:
        text += (
            f" {left_out:,} events and firings are not drawn, none of them late as long as others are there."
        )
    return Chart("Events and firings of the key", text, base_spec(points, height=380, layer=layers))


def _key_fate(event: dict[str, Any]) -> str:
    in_time = event["behind_watermark"] and event["fate"] in ("in window", "processed")
    return "behind the watermark, but in time" if in_time else str(event["fate"])


def _dates(*times_ms: int) -> tuple[int, ...]:
    """Times as far as browsers know dates."""
    return tuple(max(-LAST_DATE_MS, min(time_ms, LAST_DATE_MS)) for time_ms in times_ms)
