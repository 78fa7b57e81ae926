"""Dates as ``java.text.SimpleDateFormat`` reads and writes them: fields out of range move on to the next one.

Days before 15 October 1582 are those of the Julian calendar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.types.times import MS_OF_DAY, civil, days_of

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_GREGORIAN: Final = -141_427
"""The first day of the Gregorian calendar, 15 October 1582."""

_FIELD: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
_READ: Final = frozenset("yMdHhKkmsSaEZzX")
_WRITTEN: Final = frozenset("yMdHhKkmsSaEDwuG")


@dataclass(frozen=True)
class DateField:
    """A field of a pattern.

    Attributes
    ----------
    letter : str
        Its letter, or nothing for a text.
    count : int
        Number of times that the letter is repeated.
    text : str
        The text, if it is one.
    """

    letter: str
    count: int
    text: str = ""


@lru_cache(maxsize=256)
def date_fields(pattern: str) -> tuple[DateField, ...]:
    """Return the fields of a pattern.

    Raises
    ------
    UnsupportedOperationError
        If a quote is not closed.
    """
    fields: list[DateField] = []
    at = 0
    for match in _FIELD.finditer(pattern):
        if match.start() != at:
            break
        at = match.end()
        if match[2] is not None:
            fields.append(DateField(match[2], len(match[0])))
        else:
            quoted = match[1]
            fields.append(DateField("", 0, match[0] if quoted is None else quoted.replace("''", "'") or "'"))
    if at != len(pattern):
        raise UnsupportedOperationError(f"the pattern {pattern!r} has a quote that is not closed")
    return tuple(fields)


def check_read(pattern: str) -> str | None:
    """Return why texts of a pattern are not read, or None."""
    letters = [field for field in date_fields(pattern) if field.letter]
    for field in letters:
        if field.letter not in _READ:
            return f"the field {field.letter * field.count} of the pattern {pattern!r} is not supported"
        if field.letter == "y" and field.count == 2:
            return f"years of two digits, as in the pattern {pattern!r}, depend on the clock"
    names = {field.letter for field in letters}
    if "E" in names and "d" not in names:
        return f"a day of the week without a date, as in the pattern {pattern!r}, is not supported"
    return None


def check_written(pattern: str) -> str | None:
    """Return why times are not written in a pattern, or None."""
    for field in date_fields(pattern):
        if field.letter and field.letter not in _WRITTEN:
            return f"the field {field.letter * field.count} of the pattern {pattern!r} is not supported"
    return None


# ---- calendars and zones


def _days(year: int, month: int, day: int) -> int:
    """Return the days since the epoch of a date, whose month and day may be out of range."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    days = days_of(year, month, 1) + day - 1
    if days >= _GREGORIAN and (year, month) != (1582, 10):
        return days
    shifted = year + 4800 - (month <= 2)
    of_year = (153 * ((month + 9) % 12) + 2) // 5
    julian = of_year + 365 * shifted + shifted // 4 - 32_083 + day - 2_440_588
    if (year, month) == (1582, 10):
        return days if day >= 15 else julian
    return julian


def _date(days: int) -> tuple[int, int, int]:
    """Return year, month and day, in the Julian calendar before 15 October 1582."""
    if days >= _GREGORIAN:
        return civil(days)
    c = days + 2_440_588 + 32_082
    d = (4 * c + 3) // 1461
    e = c - 1461 * d // 4
    m = (5 * e + 2) // 153
    return d - 4800 + m // 10, m + 3 - 12 * (m // 10), e - (153 * m + 2) // 5 + 1


_SHORT: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
_CUSTOM: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")
_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_OFFSET: Final = -2_208_988_800
"""Seconds of 1900, before which zones of Java have their standard offset alone."""


@lru_cache(maxsize=256)
def java_zone(name: str) -> ZoneInfo | timezone:
    """Return the zone of ``TimeZone.getTimeZone``, which is GMT for a name that it does not know."""
    match = _CUSTOM.fullmatch(name)
    if match is not None and int(match[2]) < 24 and int(match[3] or 0) < 60:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return timezone(offset if match[1] == "+" else -offset)
    try:
        return ZoneInfo(_SHORT.get(name, name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return timezone.utc


def _offset_at(zone: ZoneInfo | timezone, local_seconds: int, fold: int) -> int:
    """Return the offset in seconds of a local time."""
    if local_seconds < _FIRST_OFFSET:
        local_seconds = _standard_moment(zone)
    local = (_EPOCH + _known_time(local_seconds)).replace(tzinfo=zone, fold=fold)
    offset = local.utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


@lru_cache(maxsize=256)
def _standard_moment(zone: ZoneInfo | timezone) -> int:
    """Return a local time of the last years at which a zone has its standard offset."""
    for month in (1, 7):
        local = datetime(2024, month, 1, tzinfo=zone)
        if not local.dst():
            return int((local.replace(tzinfo=None) - _EPOCH).total_seconds())
    return int((datetime(2024, 1, 1) - _EPOCH).total_seconds())


def _instant(local_ms: int, zone: ZoneInfo | timezone) -> int:
    """Return the instant of a local time: in a gap by the offset before it, of a doubled hour the second one."""
    seconds = local_ms // 1000
    before, after = _offset_at(zone, seconds, 0), _offset_at(zone, seconds, 1)
    # In a gap fold=0 has the offset before it; of a doubled hour fold=1 has the one after it.
    return local_ms - (after if before > after else before) * 1000


def _local(instant_ms: int, zone: ZoneInfo | timezone) -> int:
    """Return the local time of an instant, in milliseconds."""
    seconds = instant_ms // 1000
    if seconds < _FIRST_OFFSET:
        return instant_ms + _offset_at(zone, _standard_moment(zone), 0) * 1000
    moment = (_EPOCH + _known_time(seconds)).replace(tzinfo=timezone.utc)
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return instant_ms + int(offset.total_seconds()) * 1000


def _known_time(seconds: int) -> timedelta:
    """Return a time since the epoch that ``datetime`` has: the calendar repeats every 400 years."""
    days, within = divmod(seconds, 86_400)
    if days > _LAST_DAY:
        days -= (days - _LAST_DAY + 146_096) // 146_097 * 146_097
    return timedelta(days=days, seconds=within)


_LAST_DAY: Final = 2_932_896 - 366
"""The last days that ``datetime`` has are in the year 9999."""


# ---- reading


def read_date(text: str, pattern: str, zone: str) -> int:
    """Return the milliseconds since the epoch of a text; text after it is ignored.

    Raises
    ------
    ValueError
        If the text is not of the pattern.
    """
    fields = date_fields(pattern)
    values: dict[str, int] = {}
    at = 0
    for number, field in enumerate(fields):
        if not field.letter:
            if not text.startswith(field.text, at):
                raise ValueError(f"{text!r} is not of the pattern {pattern!r}")
            at += len(field.text)
            continue
        begin = at
        while at < len(text) and text[at] in " \t":
            at += 1
        if at == len(text):
            raise ValueError(f"{text!r} is not of the pattern {pattern!r}")
        if field.letter in "aEzZX" or (field.letter == "M" and field.count > 2):
            at = _read_name(text, at, field, values)
            continue
        follows = number + 1 < len(fields) and fields[number + 1].letter != ""
        end = len(text)
        if follows:
            end = begin + field.count
            if end > len(text):
                raise ValueError(f"{text!r} is not of the pattern {pattern!r}")
        match = re.compile(r"-?\d+", re.ASCII).match(text, at, end)
        if match is None:
            raise ValueError(f"{text!r} is not of the pattern {pattern!r}")
        values[field.letter] = _java_int(int(match[0]))
        at = match.end()
    hour = values.get("H", values.get("k", 0) % 24 if "k" in values else 0)
    half = values.get("h", values.get("K"))
    if half is not None:
        hour = (half % 12 if half == 12 and "h" in values else half) + 12 * values.get("a", 0)
    elif "a" in values and "H" not in values and "k" not in values:
        hour = 12 * values["a"]
    days = _days(values.get("y", 1970), values.get("M", 1), values.get("d", 1))
    seconds = (hour * 60 + values.get("m", 0)) * 60 + values.get("s", 0)
    local = days * MS_OF_DAY + seconds * 1000 + values.get("S", 0)
    millis = local - values["offset"] * 1000 if "offset" in values else _instant(local, java_zone(zone))
    return (millis + 2**63) % 2**64 - 2**63  # a long wraps


def _java_int(number: int) -> int:
    """Return a number as ``Number.intValue`` of a long, which wraps, or of a larger double, which saturates."""
    if -(2**63) <= number < 2**63:
        return (number + 2**31) % 2**32 - 2**31
    return 2**31 - 1 if number > 0 else -(2**31)


_OFFSET: Final = re.compile(r"(?:GMT)?([+-])(\d{1,2}):?(\d{2})|(GMT|UTC|Z)", re.ASCII)


def _read_name(text: str, at: int, field: DateField, values: dict[str, int]) -> int:
    """Read a name of a month, day or half of the day, or an offset; return where it ends."""
    if field.letter in "zZX":
        match = _OFFSET.match(text, at)
        if match is None:
            if re.compile(r"[A-Z]{3,}").match(text, at):
                raise UnsupportedOperationError(f"the name of the zone in {text!r} is not supported")
            raise ValueError(f"{text!r} has no offset")
        sign = -1 if match[1] == "-" else 1
        values["offset"] = 0 if match[4] else sign * (int(match[2]) * 60 + int(match[3])) * 60
        return match.end()
    names = {"a": ("AM", "PM"), "E": WEEKDAYS, "M": MONTHS}[field.letter]
    lower = text[at:].lower()
    for words in (names, [name[:3] for name in names]):
        for number, name in enumerate(words):
            if lower.startswith(name.lower()):
                values[field.letter] = number + (field.letter == "M")
                return at + len(name)
    raise ValueError(f"{text!r} has no name at {text[at:]!r}")


# ---- writing


def write_date(millis: int, pattern: str, zone: str) -> str:
    """Return an instant as text of a pattern."""
    days, within = divmod(_local(millis, java_zone(zone)), MS_OF_DAY)
    year, month, day = _date(days)
    shown = year if year > 0 else 1 - year
    hour = within // 3_600_000
    first = _days(year, 1, 1)
    numbers = {
        "M": month,
        "d": day,
        "D": days - first + 1,
        "w": _week(days, year, first),
        "u": (days + 3) % 7 + 1,
        "H": hour,
        "k": hour or 24,
        "K": hour % 12,
        "h": hour % 12 or 12,
        "m": within // 60_000 % 60,
        "s": within // 1000 % 60,
        "S": within % 1000,
    }
    parts: list[str] = []
    for field in date_fields(pattern):
        letter, count = field.letter, field.count
        if not letter:
            parts.append(field.text)
        elif letter == "y":
            parts.append(f"{shown % 100:02d}" if count == 2 else f"{shown:0{count}d}")
        elif letter == "M" and count > 2:
            parts.append(MONTHS[month - 1] if count > 3 else MONTHS[month - 1][:3])
        elif letter == "E":
            name = WEEKDAYS[(days + 3) % 7]
            parts.append(name if count > 3 else name[:3])
        elif letter == "a":
            parts.append("AM" if hour < 12 else "PM")
        elif letter == "G":
            parts.append("AD" if year > 0 else "BC")
        else:
            parts.append(f"{numbers[letter]:0{count}d}")
    return "".join(parts)


def _week(days: int, year: int, first: int) -> int:
    """Return the week of the year: weeks begin on Sundays, and the first one is that of 1 January."""
    following = _days(year + 1, 1, 1)
    if days >= following - (following + 4) % 7:
        return 1
    return (days - first + (first + 4) % 7) // 7 + 1
