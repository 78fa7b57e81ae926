"""Parts that charts share, as specifications of Vega-Lite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from flinkcore._internal.show.durations import shown_duration

Spec: TypeAlias = dict[str, Any]

VEGA_LITE: Final = "6.4"
"""The version that specifications are written for."""

BLUE, ORANGE, GREEN, RED, GREY = "#4a90d9", "#e8853d", "#3fa37c", "#d65a5a", "#8a93a0"
LAST_DATE_MS: Final = 8_640_000_000_000_000
"""The last time that is a date in browsers."""

_UNITS: Final = (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1_000))

TIME_AXIS: Final[Spec] = {
    "labelOverlap": "greedy",
    "labelSeparation": 8,
    "format": {
        "year": "%Y",
        "quarter": "%b %Y",
        "month": "%b %Y",
        "week": "%b %d",
        "date": "%b %d",
        "day": "%b %d",
        "hours": "%H:%M",
        "minutes": "%H:%M",
        "seconds": "%H:%M:%S",
        "milliseconds": "%S.%L s",
    },
}

ZOOM: Final[Spec] = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}


@dataclass(frozen=True)
class Chart:
    """A chart of the page.

    Attributes
    ----------
    title
        Title of the chart.
    text
        Description of what it shows, as a sentence.
    spec
        Specification of Vega-Lite.
    """

    title: str
    text: str
    spec: Spec


def base_spec(rows: Iterable[Spec], *, height: int = 260, **rest: Any) -> Spec:
    """Return a specification of rows, without marks."""
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE.partition('.')[0]}.json",
        "width": "container",
        "height": height,
        "data": {"values": list(rows)},
        **rest,
    }


def time_axis(field: str, title: str, **rest: Any) -> Spec:
    """Return the encoding of a field of times; labels are days where a day begins, else times."""
    return {
        "field": field,
        "type": "temporal",
        "title": title,
        "scale": {"type": "utc", "nice": False},
        "axis": TIME_AXIS,
        **rest,
    }


def unit_of(greatest_ms: float) -> tuple[str, int]:
    """Return the unit in which people read durations up to this one, and its ms."""
    return next(((name, ms) for name, ms in _UNITS if greatest_ms >= 2 * ms), ("ms", 1))


def shown_ms(ms: float) -> str:
    """Return a duration as people read it."""
    return shown_duration(round(ms), 2)


def coloured(field: str, names: list[str], colours: list[str]) -> dict[str, Any]:
    """Return the encoding of the colours of a field's values."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": colours},
    }
