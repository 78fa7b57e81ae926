"""Dates and times from texts and numbers, and as texts by a pattern of Java's ``DateTimeFormatter``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from flinkcore.sql.expressions.casts import BLANKS, day_before_blank, instants, local_time
from flinkcore.sql.expressions.evaluation import (
    Evaluation,
    column,
    function,
    integer_of,
    integers,
    numbers,
    text_of,
    valid,
)
from flinkcore.sql.expressions.numeric_casts import cast_number, saturated
from flinkcore.sql.expressions.time_arithmetic import per_milli
from flinkcore.sql.expressions.time_texts import format_text, pattern_of, read_or_fail
from flinkcore.sql.formats.simple_dates import MONTHS, WEEKDAYS, check_read, check_written
from flinkcore.sql.plan.rex import RexCall
from flinkcore.sql.types.logical_types import FLOATS, NUMERIC, TEXTS, TIMESTAMPS, LogicalType, Root
from flinkcore.sql.types.times import MS_OF_DAY, NANOS_OF_DAY, civil, days_of, timestamp_of_text

_FIELDS: Final[dict[str, tuple[str, int]]] = {
    "yyyy": ("year", 4),
    "yy": ("short year", 2),
    "M": ("month", 1),
    "d": ("day", 1),
    "H": ("hour", 1),
    "m": ("minute", 1),
    "s": ("second", 1),
    "E": ("weekday", 3),
    "EEE": ("weekday", 3),
    "EEEE": ("weekday", 9),
    "MMM": ("month name", 3),
    "MMMM": ("month name", 9),
    "a": ("half of the day", 2),
    "hh": ("hour of the half", 2),
    "h": ("hour of the half", 1),
    "KK": ("hour from 0", 2),
    "K": ("hour from 0", 1),
    "kk": ("hour from 1", 2),
    "k": ("hour from 1", 1),
    "D": ("day of the year", 1),
    "DDD": ("day of the year", 3),
    "w": ("week", 1),
    "ww": ("week", 2),
    "e": ("number of the weekday", 1),
    "Q": ("quarter", 1),
    "G": ("era", 2),
    "uuuu": ("year", 4),
    "u": ("year", 1),
    "MM": ("month", 2),
    "dd": ("day", 2),
    "HH": ("hour", 2),
    "mm": ("minute", 2),
    "ss": ("second", 2),
    **{"S" * digits: ("fraction", digits) for digits in range(1, 10)},
}
_READ: Final = (
    *("yyyy", "yy", "M", "MM", "MMM", "MMMM", "d", "dd", "E", "EEE", "EEEE", "a", "h", "hh"),
    *("H", "HH", "m", "mm", "s", "ss", *("S" * digits for digits in range(1, 10))),
)
_ONLY_WRITTEN: Final = frozenset(_FIELDS[letters] for letters in _FIELDS if letters not in _READ) - {
    ("year", 4)
}
_PATTERN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


@lru_cache(maxsize=256)
def pattern_parts(pattern: str) -> tuple[tuple[str, int], ...] | None:
    """Return the fields of a pattern with their digits, and texts with 0 digits; None if it has other letters."""
    parts: list[tuple[str, int]] = []
    at = 0
    for match in _PATTERN.finditer(pattern):
        if match.start() != at:
            return None
        at = match.end()
        if match[0] in _FIELDS:
            parts.append(_FIELDS[match[0]])
        elif match[2] is not None or match[0] in "[]{}#":
            return None
        else:
            quoted = match[1]
            parts.append((match[0] if quoted is None else quoted.replace("''", "'") or "'", 0))
    return tuple(parts) if at == len(pattern) else None


def _known_pattern(call: RexCall) -> str | None:
    pattern = text_of(call.operands[1]) if len(call.operands) > 1 else ""
    if pattern is None:
        return f"{call.name} takes a constant pattern"
    parts = pattern_parts(pattern) if len(call.operands) > 1 else ()
    is_read = call.name != "DATE_FORMAT"
    if parts is None or (is_read and not _is_readable(parts)):
        return f"{call.name} does not take the pattern {pattern!r}"
    return None


def _is_readable(parts: tuple[tuple[str, int], ...]) -> bool:
    """Return whether texts of a pattern are read, and each of its fields in one way only."""
    names = {name for name, digits in parts if digits}
    if any(part in _ONLY_WRITTEN for part in parts) or ("hour of the half" in names) != (
        "half of the day" in names
    ):
        return False
    pairs = pairwise(parts)
    return not any(1 in (one, other) for (_, one), (_, other) in pairs if one and other)


def _formattable(call: RexCall) -> str | None:
    if call.operands[0].type.root in TEXTS:
        return pattern_of(call.operands[1], check_written)
    if call.operands[0].type.root not in TIMESTAMPS:
        return f"DATE_FORMAT of {call.operands[0].type} is not supported: cast it to TIMESTAMP(3)"
    return _known_pattern(call)


@function("DATE_FORMAT", check=_formattable)
def date_format(rows: Evaluation, call: RexCall) -> pa.Array:
    kind = call.operands[0].type
    if kind.root in TEXTS:
        return format_text(rows, call)
    array = rows(call.operands[0])
    if kind.root is Root.TIMESTAMP_LTZ:
        array = local_time(array, rows.zone)
    parts = pattern_parts(text_of(call.operands[1]) or "") or ()
    values, is_valid = integers(array), valid(array)
    # Moments that the pattern writes alike are formatted once; most of them follow each other.
    step = _finest(parts) * per_milli(kind) // 1000
    moments = values // step if step > 1 else values
    nanos = 10**6 * max(step, 1) // per_milli(kind)
    if len(moments) and is_valid.all() and moments.min() == moments.max():
        return pa.repeat(pa.scalar(_formatted(int(moments[0]) * nanos, parts)), len(moments))
    begins = np.ones(len(moments), np.bool_)
    np.not_equal(moments[1:], moments[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    distinct, of_starts = np.unique(moments[starts], return_inverse=True)
    at = np.repeat(of_starts, np.diff(starts, append=len(moments)))
    texts = pa.array([_formatted(number * nanos, parts) for number in distinct.tolist()], pa.string())
    return texts.take(pa.array(at, mask=None if is_valid.all() else ~is_valid))


def _finest(parts: tuple[tuple[str, int], ...]) -> int:
    """Return the finest field of a pattern, in microseconds."""
    names = {name for name, digits in parts if digits}
    for unit, micros in (("fraction", 0), ("second", 10**6), ("minute", 60 * 10**6)):
        if unit in names:
            return micros
    has_hours = names & {"hour", "hour of the half", "hour from 0", "hour from 1", "half of the day"}
    return 3600 * 10**6 if has_hours else 86_400 * 10**6


def _formatted(nanos: int, parts: tuple[tuple[str, int], ...]) -> str:
    days, within = divmod(nanos, NANOS_OF_DAY)
    year, month, day = civil(days)
    second, fraction = divmod(within, 10**9)
    hour = second // 3600
    names = {
        "weekday": WEEKDAYS[(days + 3) % 7],
        "month name": MONTHS[month - 1],
        "half of the day": "AM" if hour < 12 else "PM",
        "fraction": f"{fraction:09d}",
        "era": "AD" if year > 0 else "BC",
    }
    first = days_of(year, 1, 1)
    values = {
        "hour of the half": (hour + 11) % 12 + 1,
        "year": year,
        "short year": year % 100,
        "month": month,
        "day": day,
        "hour": hour,
        "minute": second // 60 % 60,
        "second": second % 60,
        "hour from 0": hour % 12,
        "hour from 1": hour or 24,
        "day of the year": days - first + 1,
        "week": _week(days, year),
        "number of the weekday": (days + 4) % 7 + 1,
        "quarter": (month + 2) // 3,
    }
    return "".join(
        name if digits == 0 else names[name][:digits] if name in names else f"{values[name]:0{digits}d}"
        for name, digits in parts
    )


def _week(days: int, year: int) -> int:
    """Return the week of the year: weeks begin on Sundays, and the first one is that of 1 January."""
    following = days_of(year + 1, 1, 1)
    first = days_of(year, 1, 1)
    return 1 if days >= following - (following + 4) % 7 else (days - first + (first + 4) % 7) // 7 + 1


@lru_cache(maxsize=256)
def _reader(parts: tuple[tuple[str, int], ...]) -> re.Pattern[str]:
    """Return the regular expression of texts of a pattern, with a group for each of its fields."""
    found: list[str] = []
    for name, digits in parts:
        names = {"month name": MONTHS, "weekday": WEEKDAYS, "half of the day": ("AM", "PM")}.get(name, ())
        if names and digits:
            found.append(f"({'|'.join(each if digits > 3 else each[:3] for each in names)})")
        elif not digits:
            found.append(re.escape(name))
        else:
            found.append(r"(\d{1,19})" if digits == 1 and name != "fraction" else f"(\\d{{{digits}}})")
    return re.compile("".join(found), re.ASCII)


def _parsed(text: str, parts: tuple[tuple[str, int], ...]) -> int:
    """Return the nanoseconds since the epoch that a text of a pattern stands for; ValueError if it has another one."""
    match = _reader(parts).fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed")
    found = dict(zip((name for name, digits in parts if digits), match.groups(), strict=True))
    half = int(found.get("hour of the half", 12))
    hour, minute, second = (int(found.get(name, 0)) for name in ("hour", "minute", "second"))
    if "half of the day" in found:
        hour = half % 12 + 12 * (found["half of the day"] == "PM")
    if hour > 23 or minute > 59 or second > 59 or not 1 <= half <= 12:
        raise ValueError(f"Text '{text}' could not be parsed")
    year, month, day = (
        int(found.get(name, given)) for name, given in (("year", 1970), ("month", 1), ("day", 1))
    )
    year = 2000 + int(found["short year"]) if "short year" in found else year
    if "month name" in found:
        month = 1 + [name[:3] for name in MONTHS].index(found["month name"][:3])
    last = next(each for each in (31, 30, 29, 28) if _exists(year, month, each))
    if not 1 <= day <= 31:
        raise ValueError(f"Text '{text}' could not be parsed")
    days = days_of(year, month, min(day, last))  # Java's smart resolver takes the last day of the month
    if "weekday" in found and not WEEKDAYS[(days + 3) % 7].startswith(found["weekday"]):
        raise ValueError(f"Text '{text}' could not be parsed: it is another day of the week")
    fraction = int(found.get("fraction", "0").ljust(9, "0"))
    return days * NANOS_OF_DAY + (hour * 3600 + minute * 60 + second) * 10**9 + fraction


def _exists(year: int, month: int, day: int) -> bool:
    try:
        days_of(year, month, day)
    except ValueError:
        return month < 1 or month > 12  # then days_of raises for the date itself
    return True


_LENIENT: Final = re.compile(
    r"(\d{4})-([+-]?\d{1,2})-([+-]?\d{1,2})(?: ([+-]?\d+):([+-]?\d+):([+-]?\d+)(?:\.(\d{1,9}))?)?", re.ASCII
)


def _of_pattern(text: str, parts: tuple[tuple[str, int], ...]) -> int:
    """Return the nanoseconds since the epoch of a text of a pattern, or of a date or time in the form of JDBC.

    Flink reads a text that is not of the pattern by ``java.sql.Timestamp.valueOf`` or ``Date.valueOf``.
    """
    try:
        return _parsed(text, parts)
    except ValueError:
        match = _LENIENT.fullmatch(text.strip(BLANKS))
        if match is None:
            raise
    year, month, day, hour, minute, second = (int(match[number] or 0) for number in range(1, 7))
    if not (1 <= month <= 12 and 1 <= day <= 31):
        raise ValueError(f"Text '{text}' could not be parsed")
    seconds = ((days_of(year, month, 1) + day - 1) * 24 + hour) * 3600 + minute * 60 + second
    return seconds * 10**9 + int((match[7] or "0").ljust(9, "0"))


def _times_of(rows: Evaluation, call: RexCall, of_text: Callable[[str], int], kind: Any) -> pa.Array:
    found: list[int | None] = []
    for text in rows(call.operands[0]).to_pylist():
        try:
            found.append(None if text is None else of_text(text))
        except ValueError:
            found.append(None)
    return pa.array(found, kind)


@function("TO_TIMESTAMP", check=_known_pattern)
def to_timestamp(rows: Evaluation, call: RexCall) -> pa.Array:
    of_text = timestamp_of_text
    if len(call.operands) > 1:
        parts = pattern_parts(text_of(call.operands[1]) or "") or ()
        of_text = lambda text: _of_pattern(text, parts)  # noqa: E731
    per_unit = 10**6 // per_milli(call.type)
    return _times_of(rows, call, lambda text: of_text(text) // per_unit, pa.int64()).view(call.type.arrow)


def _date_pattern(call: RexCall) -> str | None:
    return pattern_of(call.operands[1], check_read) if len(call.operands) > 1 else None


_NO_DAY: Final = (-(2**63 // MS_OF_DAY) + 2**31) % 2**32 - 2**31
"""The day that Flink returns for a text which is not of the pattern."""


@function("TO_DATE", check=_date_pattern)
def to_date(rows: Evaluation, call: RexCall) -> pa.Array:
    if len(call.operands) == 1:
        return _times_of(rows, call, day_before_blank, pa.int32()).view(pa.date32())
    pattern = text_of(call.operands[1]) or ""

    def of_row(text: str) -> int:
        try:
            millis = read_or_fail(text, pattern, "UTC")
        except ValueError:
            return _NO_DAY
        days = millis // MS_OF_DAY if millis >= 0 else -(-millis // MS_OF_DAY)
        return (days + 2**31) % 2**32 - 2**31

    days = [None if each is None else of_row(each) for each in rows(call.operands[0]).to_pylist()]
    return pa.array(days, pa.int32()).view(pa.date32())


def _instant(call: RexCall) -> str | None:
    kind = call.operands[0].type
    if kind.root in TEXTS:
        zone = text_of(call.operands[2]) if len(call.operands) == 3 else "UTC"
        try:
            ZoneInfo(zone or "")
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return f"TO_TIMESTAMP_LTZ does not know the zone {zone!r}"
        return _known_pattern(call)
    if kind.root not in NUMERIC:
        return f"TO_TIMESTAMP_LTZ of {kind} is not supported: CAST it to BIGINT"
    precision = integer_of(call.operands[1]) if len(call.operands) == 2 else 3
    return None if precision in (0, 3) else "TO_TIMESTAMP_LTZ takes the precision 0 or 3"


_MOST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""


@function("TO_TIMESTAMP_LTZ", check=_instant)
def to_timestamp_ltz(rows: Evaluation, call: RexCall) -> pa.Array:
    kind = call.operands[0].type
    if kind.root in TEXTS:
        return _instants_of_texts(rows, call)
    array = rows(call.operands[0])
    is_valid = valid(array)
    per_value = 1000 if len(call.operands) == 2 and integer_of(call.operands[1]) == 0 else 1
    if kind.root in FLOATS:
        floats = numbers(array).astype(np.float64)
        is_valid &= (floats >= -62_167_219_200_000 / per_value) & (floats <= _MOST_MS / per_value)
        values = saturated(np.where(is_valid, floats, 0.0) * (10**6 * per_value), 64) // 10**6
    else:
        values = integers(cast_number(array, kind, LogicalType(Root.BIGINT)))
        is_valid &= (values >= -_MOST_MS // per_value) & (values <= _MOST_MS // per_value)
        values = values * per_value
        is_valid &= (values >= -62_167_219_200_000) & (values <= _MOST_MS)
    return column(values * per_milli(call.type), is_valid, call.type.arrow)


def _instants_of_texts(rows: Evaluation, call: RexCall) -> pa.Array:
    zone = text_of(call.operands[2]) if len(call.operands) == 3 else "UTC"
    parts = pattern_parts(text_of(call.operands[1]) or "") if len(call.operands) > 1 else None
    found: list[int | None] = []
    for row, text in enumerate(rows(call.operands[0]).to_pylist()):
        try:
            found.append(
                None
                if text is None
                else timestamp_of_text(text)
                if parts is None
                else _of_pattern(text, parts)
            )
        except ValueError as error:
            if parts is None:
                rows.fail(row, str(error))
            found.append(None)
    per_unit = 10**6 // per_milli(call.type)
    local = pa.array([None if each is None else each // per_unit for each in found], pa.int64())
    return instants(local.view(pa.timestamp(call.type.unit)), zone or "UTC")
