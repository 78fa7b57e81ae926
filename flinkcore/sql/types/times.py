"""Dates and times of SQL from texts and as texts, as Flink's ``DateTimeUtils`` reads and writes them."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIME: Final = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?")
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?"
)

MS_OF_DAY: Final = 86_400_000
NANOS_OF_DAY: Final = 86_400_000_000_000


def days_of(year: int, month: int, day: int) -> int:
    """Return the days since the epoch of a day in the proleptic Gregorian calendar; ValueError if it does not exist."""
    if 1 <= year <= 9999:
        return date(year, month, day).toordinal() - _EPOCH_ORDINAL
    era = year % 400 + 400  # the calendar repeats every 400 years, which have 146,097 days
    return date(era, month, day).toordinal() - _EPOCH_ORDINAL + (year - era) // 400 * 146_097


def day_of_text(text: str) -> int:
    """Return the days since the epoch of ``2024-02-29``, with spaces around it; ValueError if it is none."""
    match = _DATE.fullmatch(text.strip(" "))
    if match is None:
        raise ValueError(f"'{text}' is not a date")
    if int(match[1]) > 9999:
        raise ValueError(f"'{text}' is not a date")
    return days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))


def millis_of_day(text: str) -> int:
    """Return the milliseconds of the day of ``12:34:56.789``; ValueError if it is none."""
    match = _TIME.fullmatch(text.strip(" "))
    if match is None:
        raise ValueError(f"'{text}' is not a time")
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"'{text}' is not a time")
    return (hour * 3600 + minute * 60 + second) * 1000 + int((match[4] or "0")[:3].ljust(3, "0"))


def timestamp_of_text(text: str) -> int:
    """Return the nanoseconds since the epoch of ``2024-02-29 12:34:56.789``; ValueError if it is none."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed")
    hour, minute, second = (int(match[number] or 0) for number in (4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"Text '{text}' could not be parsed")
    days = days_of(int(match[1]), int(match[2]), int(match[3]))
    nanos = int((match[7] or "0").ljust(9, "0"))
    return days * NANOS_OF_DAY + (hour * 3600 + minute * 60 + second) * 10**9 + nanos


def civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a number of days since the epoch, of any year."""
    ordinal = days + _EPOCH_ORDINAL
    eras, within = divmod(ordinal - 1, 146_097)
    found = date.fromordinal(within + 1)
    return found.year + eras * 400, found.month, found.day


def date_text(days: int) -> str:
    """Return a day as ``2024-02-29``."""
    year, month, day = civil(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def time_text(millis: int, precision: int) -> str:
    """Return a time of day as ``12:34:56``, with digits of the second up to a precision: at least one if it has any.

    Times of days before 1970 may be negative. ``DateTimeUtils.unixTimeToString`` then adds a day.
    """
    second, fraction = divmod(millis if millis >= 0 else millis % MS_OF_DAY, 1000)
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    digits = f"{fraction:03d}"[:precision].rstrip("0") or "0"
    return f"{text}.{digits}" if precision else text


def timestamp_text(nanos: int, precision: int) -> str:
    """Return a moment as ``2024-02-29 12:34:56.789``, with all digits of a precision."""
    days, within = divmod(nanos, NANOS_OF_DAY)
    second, fraction = divmod(within, 10**9)
    text = f"{date_text(days)} {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{text}.{fraction:09d}"[: len(text) + 1 + precision] if precision else text
