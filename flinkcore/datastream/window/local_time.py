"""Local time of a zone: rules that say when its days begin, and calendars of its days, weeks and months."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.window_calendar import WindowCalendar
from flinkcore.errors import ArgumentTypeError, ConfigurationError

_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1)


def _day_number(year: int) -> int:
    return date(year, 1, 1).toordinal() - _EPOCH.toordinal()


_FIRST_RULE: Final = _day_number(1800)
"""No zone changed its clock before: the first changes in the data are of the 1830s."""

_FIRST_REPEATED: Final = _day_number(2200)
"""From then on zones follow the rules of the far future. Data list changes one by one up to 2087 (Morocco)."""

_REPETITION: Final = 146_097
"""Days in 400 years, after which dates and weekdays repeat, and so do the rules of the far future."""

_AFTER_RULES: Final = _FIRST_REPEATED + _REPETITION + 7

LOWEST_MS: Final = _day_number(2) * _DAY_MS
HIGHEST_MS: Final = _day_number(9999) * _DAY_MS - 1


_OFFSET: Final = re.compile(
    r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?", re.IGNORECASE
)
_NO_REGIONS: Final = ("etc/", "systemv/", "posix/", "right/")

LocalPeriod: TypeAlias = Literal["day", "week", "month"]
"""Unit of local time that windows have."""


def zone_named(zone: str | ZoneInfo, call: str) -> ZoneInfo:
    """Return a time zone.

    Parameters
    ----------
    zone : str or zoneinfo.ZoneInfo
        IANA name, such as ``"Europe/Berlin"``, or the zone itself.
    call : str
        Name of the call in error messages.

    Raises
    ------
    ArgumentTypeError
        If it is anything else, such as a fixed offset.
    ConfigurationError
        If there is no such zone, or Python finds no time zone data.
    """
    if isinstance(zone, ZoneInfo):
        if zone.key is None:
            raise ConfigurationError(
                f"{call}: {zone!r} has no name. Read it by ZoneInfo.from_file(file, key='Europe/Berlin')"
            )
        return zone
    if not isinstance(zone, str):
        raise ArgumentTypeError(
            f"{call} takes the name of a time zone, such as 'Europe/Berlin', or a zoneinfo.ZoneInfo, not {zone!r}. For "
            "days of a fixed offset from UTC, take TumblingEventTimeWindows.of(Time.days(1), offset): "
            "Time.hours(-2) for UTC+02:00"
        )
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = {name.casefold(): name for name in available_timezones()}
    if not known:
        raise ConfigurationError(
            f"{call}: Python has no time zone data on this machine. Install it where the job is started, by "
            "pip install tzdata; workers need none"
        )
    offset = _OFFSET.fullmatch(zone.strip())
    if offset is not None:
        hours, minutes = int(offset["hours"]), int(offset["minutes"] or 0)
        length = f"hours({{}}{hours})" if not minutes else f"minutes({{}}{60 * hours + minutes})"
        raise ConfigurationError(
            f"{call}: {zone!r} is an offset from UTC, and not a time zone, whose clock may change. For days of this "
            "offset, take TumblingEventTimeWindows.of(Time.days(1), "
            f"Time.{length.format('-' if offset['sign'] == '+' else '')})"
        )
    regions = [name for name in known if "/" in name and not name.startswith(_NO_REGIONS)]
    place = zone.casefold().replace(" ", "_")
    cities = sorted(name for name in regions if name.rpartition("/")[2] == place)
    close = [place] if place in known else cities or get_close_matches(place, regions, 3, 0.75)
    names = " or ".join(repr(known[name]) for name in close[:3]) or "'Europe/Berlin'"
    raise ConfigurationError(f"{call}: there is no time zone {zone!r}. Take an IANA name, such as {names}")


@lru_cache(maxsize=32)
def local_rules(zone: ZoneInfo, start: time) -> bytes:
    """Return when the days of a time zone begin.

    A day begins when the clock first shows its start or a later time of it. Where the clock skips the start, the day
    begins as the clock is set forward; where the clock shows it twice, the first time. ``LocalDate.atStartOfDay`` of
    Java has the same rule. A day that the zone skips, as Samoa did in 2011, begins with the next one.

    Parameters
    ----------
    zone : zoneinfo.ZoneInfo
    start : datetime.time
        Local time at which days begin.

    Returns
    -------
    bytes
        Pairs of int32, ascending: a day since the epoch, and by how many ms this day, and each one before that of the
        next pair, begins before 00:00 UTC of its date.
    """
    since_midnight = datetime.combine(_EPOCH, start) - _EPOCH

    def starts() -> Iterator[datetime]:
        for day in range(_FIRST_RULE, _AFTER_RULES):
            yield datetime.fromordinal(_EPOCH.toordinal() + day) + since_midnight

    runs: list[tuple[int, int]] = []
    day, offset_before = _FIRST_RULE, None
    for offset, days in groupby(map(zone.utcoffset, starts())):
        assert offset is not None
        if offset_before is not None and offset > offset_before:
            # The clock was set forward on the day before, maybe over its start.
            local = datetime.fromordinal(_EPOCH.toordinal() + day - 1) + since_midnight
            runs.append((day - 1, _first_shown(zone, local)))
        runs.append((day, (offset - since_midnight) // _MILLISECOND))
        day, offset_before = day + sum(1 for _ in days), offset
    return np.array(runs, np.int32).tobytes()


def _first_shown(zone: ZoneInfo, local: datetime) -> int:
    """Return by how many ms the clock shows a local time, or a later one, before 00:00 UTC of its date."""

    def shown(utc: datetime) -> datetime:
        return zone.fromutc(utc.replace(tzinfo=zone)).replace(tzinfo=None)

    offsets = [zone.utcoffset(local.replace(fold=fold)) for fold in (0, 1)]
    earliest, latest = sorted(local - offset for offset in offsets if offset is not None)
    # Within a gap, clocks jump over the local time somewhere between the instants that the two offsets give.
    steps = range((latest - earliest) // _MILLISECOND)
    first = bisect_left(steps, True, key=lambda step: shown(earliest + step * _MILLISECOND) >= local)
    midnight = datetime.combine(local, time())
    return (midnight - earliest) // _MILLISECOND - first


@lru_cache(maxsize=32)
def local_calendar(rules: bytes, period: LocalPeriod, first_weekday: int) -> WindowCalendar:
    """Return the windows of a period of local time, for timestamps of the years 2 to 9998.

    Parameters
    ----------
    rules : bytes
        As `local_rules` returns them.
    period : LocalPeriod
    first_weekday : int
        Day on which weeks begin, from 0 (Monday) to 6.
    """
    first_days, shifts_ms = np.frombuffer(rules, np.int32).reshape(-1, 2).T.astype(np.int64)
    days = _days(period, first_weekday)
    runs = np.maximum(np.searchsorted(first_days, days, "right") - 1, 0)
    bounds = days * _DAY_MS - shifts_ms[runs]
    at = int(np.searchsorted(days, _FIRST_REPEATED))
    repeated_from = int(bounds[at])
    bounds = np.maximum.accumulate(bounds[: int(np.searchsorted(days, days[at] + _REPETITION)) + 1])
    bounds = bounds[np.append(True, bounds[1:] != bounds[:-1])]  # days that the zone skips have no window
    widths = np.diff(bounds)
    is_first = np.append(True, widths[1:] != widths[:-1]) | (bounds[:-1] == repeated_from)
    starts, widths = bounds[:-1][is_first], widths[is_first]
    # From there on the last 400 years repeat.
    repeated = starts >= repeated_from
    times = -(-(HIGHEST_MS - repeated_from) // (_REPETITION * _DAY_MS))
    moves = np.arange(1, times)[:, None] * (_REPETITION * _DAY_MS)
    return WindowCalendar(
        np.concatenate([starts, (starts[repeated] + moves).ravel()]),
        np.concatenate([widths, np.tile(widths[repeated], times - 1)]),
        LOWEST_MS,
        HIGHEST_MS,
    )


def _days(period: LocalPeriod, first_weekday: int) -> Int64s:
    """Return the days since the epoch, from the year 1 until the rules end, with which periods begin."""
    first: Any = _day_number(1)
    if period == "month":
        months = np.arange("0001-01", "2601-02", dtype="datetime64[M]")
        return months.astype("datetime64[D]").astype(np.int64)
    if period == "day":
        return np.arange(first, _AFTER_RULES)
    first += (first_weekday - date(1, 1, 1).weekday()) % 7
    return np.arange(first, _AFTER_RULES, 7)


def day_hours(calendar: WindowCalendar) -> tuple[float, float]:
    """Return how many hours the shortest and the longest days of a calendar have, from 1970 to 2038."""
    starts, ends = calendar.bounds(np.arange(0, 2**41, _HOUR_MS))
    return float((ends - starts).min()) / _HOUR_MS, float((ends - starts).max()) / _HOUR_MS
