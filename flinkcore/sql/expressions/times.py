"""Dates and times from texts and numbers, and as texts by a pattern of Java's ``DateTimeFormatter``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore.sql.expressions.casts import local_time
from flinkcore.sql.expressions.evaluation import (
    Evaluation,
    column,
    function,
    integer_of,
    integers,
    text_of,
    valid,
)
from flinkcore.sql.expressions.time_arithmetic import per_milli
from flinkcore.sql.plan.rex import RexCall
from flinkcore.sql.types.logical_types import INTEGERS, TEXTS, TIMESTAMPS, Root
from flinkcore.sql.types.times import NANOS_OF_DAY, civil, day_of_text, days_of, timestamp_of_text

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
    "MM": ("month", 2),
    "dd": ("day", 2),
    "HH": ("hour", 2),
    "mm": ("minute", 2),
    "ss": ("second", 2),
    **{"S" * digits: ("fraction", digits) for digits in range(1, 10)},
}
_READ: Final = ("yyyy", "MM", "dd", "HH", "mm", "ss", *("S" * digits for digits in range(1, 10)))
_ONLY_WRITTEN: Final = frozenset(_FIELDS[letters] for letters in _FIELDS if letters not in _READ)
_PATTERN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


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
    if parts is None or (is_read and any(part in _ONLY_WRITTEN for part in parts)):
        return f"{call.name} takes patterns of {', '.join(_READ[:6])}, S and text in quotes, not {pattern!r}"
    return None


def _formattable(call: RexCall) -> str | None:
    if call.operands[0].type.root not in TIMESTAMPS:
        return f"DATE_FORMAT of {call.operands[0].type} is not supported: cast it to TIMESTAMP(3)"
    return _known_pattern(call)


@function("DATE_FORMAT", check=_formattable)
def date_format(rows: Evaluation, call: RexCall) -> pa.Array:
    kind = call.operands[0].type
    array = rows(call.operands[0])
    if kind.root is Root.TIMESTAMP_LTZ:
        array = local_time(array, rows.zone)
    parts = pattern_parts(text_of(call.operands[1]) or "") or ()
    values, is_valid = integers(array), valid(array)
    # Moments that the pattern writes alike are formatted once.
    step = _finest(parts) * per_milli(kind) // 1000
    numbers, at = np.unique(values // step if step > 1 else values, return_inverse=True)
    nanos = 10**6 * max(step, 1) // per_milli(kind)
    texts = pa.array([_formatted(number * nanos, parts) for number in numbers.tolist()], pa.string())
    return texts.take(pa.array(at, mask=None if is_valid.all() else ~is_valid))


def _finest(parts: tuple[tuple[str, int], ...]) -> int:
    """Return the finest field of a pattern, in microseconds."""
    names = {name for name, digits in parts if digits}
    for unit, micros in (("fraction", 0), ("second", 10**6), ("minute", 60 * 10**6)):
        if unit in names:
            return micros
    has_hours = names & {"hour", "hour of the half", "half of the day"}
    return 3600 * 10**6 if has_hours else 86_400 * 10**6


def _formatted(nanos: int, parts: tuple[tuple[str, int], ...]) -> str:
    days, within = divmod(nanos, NANOS_OF_DAY)
    year, month, day = civil(days)
    second, fraction = divmod(within, 10**9)
    hour = second // 3600
    names = {
        "weekday": _WEEKDAYS[(days + 3) % 7],
        "month name": _MONTHS[month - 1],
        "half of the day": "AM" if hour < 12 else "PM",
        "fraction": f"{fraction:09d}",
    }
    values = {
        "hour of the half": (hour + 11) % 12 + 1,
        "year": year,
        "short year": year % 100,
        "month": month,
        "day": day,
        "hour": hour,
        "minute": second // 60 % 60,
        "second": second % 60,
    }
    return "".join(
        name if digits == 0 else names[name][:digits] if name in names else f"{values[name]:0{digits}d}"
        for name, digits in parts
    )


def _parsed(text: str, parts: tuple[tuple[str, int], ...]) -> int:
    """Return the nanoseconds since the epoch that a text of a pattern stands for; ValueError if it has another one."""
    pattern = "".join(f"(\\d{{{digits}}})" if digits else re.escape(name) for name, digits in parts)
    match = re.fullmatch(pattern, text, re.ASCII)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed")
    found = dict(zip((name for name, digits in parts if digits), match.groups(), strict=True))
    hour, minute, second = (int(found.get(name, 0)) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"Text '{text}' could not be parsed")
    year, month, day = (
        int(found.get(name, given)) for name, given in (("year", 1970), ("month", 1), ("day", 1))
    )
    last = next(each for each in (31, 30, 29, 28) if _exists(year, month, each))
    if not 1 <= day <= 31:
        raise ValueError(f"Text '{text}' could not be parsed")
    days = days_of(year, month, min(day, last))  # Java's smart resolver takes the last day of the month
    fraction = int(found.get("fraction", "0").ljust(9, "0"))
    return days * NANOS_OF_DAY + (hour * 3600 + minute * 60 + second) * 10**9 + fraction


def _exists(year: int, month: int, day: int) -> bool:
    try:
        days_of(year, month, day)
    except ValueError:
        return month < 1 or month > 12  # then days_of raises for the date itself
    return True


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
        of_text = lambda text: _parsed(text, parts)  # noqa: E731
    per_unit = 10**6 // per_milli(call.type)
    return _times_of(rows, call, lambda text: of_text(text) // per_unit, pa.int64()).view(call.type.arrow)


@function("TO_DATE", check=_known_pattern)
def to_date(rows: Evaluation, call: RexCall) -> pa.Array:
    of_text = day_of_text
    if len(call.operands) > 1:
        parts = pattern_parts(text_of(call.operands[1]) or "") or ()
        of_text = lambda text: _parsed(text, parts) // NANOS_OF_DAY  # noqa: E731
    return _times_of(rows, call, of_text, pa.int32()).view(pa.date32())


def _with_precision(call: RexCall) -> str | None:
    if call.operands[0].type.root in TEXTS:
        return "TO_TIMESTAMP_LTZ of a text is not supported: CAST it to TIMESTAMP_LTZ(3)"
    if call.operands[0].type.root not in INTEGERS:
        return f"TO_TIMESTAMP_LTZ of {call.operands[0].type} is not supported: CAST it to BIGINT"
    precision = integer_of(call.operands[1]) if len(call.operands) == 2 else 3
    return None if precision in (0, 3) else "TO_TIMESTAMP_LTZ takes the precision 0 or 3"


_MOST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""


@function("TO_TIMESTAMP_LTZ", check=_with_precision)
def to_timestamp_ltz(rows: Evaluation, call: RexCall) -> pa.Array:
    array = rows(call.operands[0])
    values, is_valid = integers(array), valid(array)
    if len(call.operands) == 2 and integer_of(call.operands[1]) == 0:
        is_valid &= abs(values) <= _MOST_MS // 1000
        values = values * 1000
    is_valid &= (values >= -62_167_219_200_000) & (values <= _MOST_MS)
    return column(values * per_milli(call.type), is_valid, call.type.arrow)
