"""Texts as values, as Java reads them."""

from __future__ import annotations

import binascii
import datetime
import re
import struct
from base64 import b64decode
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from flinkcore._internal.java.texts import within
from flinkcore.errors import DataError

_NO_SPACE: Final = "".join(map(chr, range(0x21)))
"""Characters that ``String.trim`` removes."""

_DOUBLE: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_NOT_PLAIN: Final = re.compile(r"[^0-9+\-.eE]")
_HEX_DOUBLE: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
)
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_MOST_DAYS: Final = 31
_SPACES: Final = "".join(map(chr, range(ord(" ") + 1)))
_BASE64_GROUP: Final = re.compile(r"[\0- ]*([^\0- ]{4})")
_SQL_TIME: Final = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})")
_LOCAL_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{0,9}))?)?")
_TIMESTAMP: Final = re.compile(rf"{_DATE.pattern} +{_SQL_TIME.pattern}(?:\.([0-9]{{1,9}}))?")


def trimmed(text: str) -> str:
    """Return a text without spaces and control characters at its ends: Java's ``String.trim``."""
    return text.strip(_NO_SPACE)


# ---- numbers


def integer_of(text: str, bits: int | None) -> int:
    """Return the whole number of a text, as ``Long.parseLong`` and its kin.

    Parameters
    ----------
    text : str
        Digits with or without a sign, and spaces around them.
    bits : int or None
        Size of the type, or None without a limit.

    Raises
    ------
    DataError
        If the text is not a whole number, or beyond the type.
    """
    digits = trimmed(text)
    if not (digits.isdecimal() or (digits[:1] in ("+", "-") and digits[1:].isdecimal())):
        raise DataError(f"{text!r:.80} is not a whole number")
    try:
        value = int(digits)
    except ValueError:  # thousands of digits, which Python refuses
        raise DataError(f"{text!r:.80}... has too many digits") from None
    return within(value, bits)


def integers_of(texts: Sequence[str], bits: int | None) -> list[int]:
    """Return the whole numbers of texts; raise ValueError if one of them is not of the plain form that Python reads."""
    digits = "".join(texts)
    if not digits.isascii() or "_" in digits:
        raise DataError("not all are plain numbers")
    numbers = list(map(int, texts))
    if numbers:
        within(min(numbers), bits)
        within(max(numbers), bits)
    return numbers


def double_of(text: str) -> float:
    """Return the number of a text, as ``Double.parseDouble``; raise DataError if it is none."""
    number = trimmed(text)
    if _DOUBLE.fullmatch(number):
        return float(number.rstrip("fFdD")) if number[-1] in "fFdD" else float(number)
    if _HEX_DOUBLE.fullmatch(number):
        try:
            return float.fromhex(number.rstrip("fFdD") if number[-1] in "fFdD" else number)
        except OverflowError:
            return float("-inf" if number.startswith("-") else "inf")
    raise DataError(f"{text!r:.80} is not a number")


def doubles_of(texts: Sequence[str]) -> list[float]:
    """Return the numbers of texts; raise ValueError if one of them is not of the plain form that Python reads."""
    if _NOT_PLAIN.search("".join(texts)):
        raise DataError("not all are plain numbers")
    return list(map(float, texts))


def float_of(text: str) -> float:
    """Return the number of a text rounded to 32 bits, as ``Float.parseFloat``; raise DataError if it is none."""
    return float(struct.unpack("f", struct.pack("f", double_of(text)))[0])


def decimal_of(text: str) -> Decimal:
    """Return the decimal of a text, as ``new BigDecimal(text)``; raise DataError if it is none."""
    if not _DECIMAL.fullmatch(text):
        raise DataError(f"{text!r:.80} is not a decimal")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise DataError(f"{text!r:.80} has too large an exponent") from None


def boolean_of(text: str) -> bool:
    """Return whether a text is "true" in any case, as ``Boolean.parseBoolean``."""
    return text == "true" or (text != "false" and trimmed(text).lower() == "true")


# ---- dates and times


def date_of(text: str) -> datetime.date:
    """Return the day of a text such as "2020-1-31", as ``java.sql.Date.valueOf``; raise DataError if it is none.

    A day that the month lacks is one of the next month: the 30th of February is the first or second of March.
    """
    found = _DATE.fullmatch(text)
    try:
        if found:
            year, month, day = map(int, found.groups())
            if 1 <= day <= _MOST_DAYS:
                return datetime.date(year, month, 1) + datetime.timedelta(days=day - 1)
    except (OverflowError, ValueError):
        pass
    raise DataError(f"{text!r:.80} is not a date such as '2020-01-31'")


def sql_time_of(text: str) -> datetime.time:
    """Return the time of a text such as "3:04:05", as ``java.sql.Time.valueOf``; raise DataError if it is none."""
    found = _SQL_TIME.fullmatch(text)
    try:
        if found:
            return clock_time_of(found)
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is not a time such as '03:04:05'")


def local_time_of(text: str) -> datetime.time:
    """Return the time of a text such as "03:04:05.678", as ``LocalTime.parse``, to the microsecond.

    Raises
    ------
    DataError
        If it is none.
    """
    found = _LOCAL_TIME.fullmatch(text)
    try:
        if found:
            hour, minute, second, fraction = found.groups(default="0")
            return datetime.time(int(hour), int(minute), int(second), microseconds_of(fraction))
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is not a time such as '03:04:05'")


def timestamp_of(text: str) -> datetime.datetime:
    """Return the moment of a text such as "2020-01-31 03:04:05.678", as ``java.sql.Timestamp.valueOf``.

    It has microseconds, where Java's has nanoseconds.

    Raises
    ------
    DataError
        If it is none.
    """
    found = _TIMESTAMP.fullmatch(trimmed(text))
    try:
        if found:
            return moment_of(found)
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is not a timestamp such as '2020-01-31 03:04:05'")


def moment_of(found: re.Match[str]) -> datetime.datetime:
    """Return the moment whose year, month, day, hour, minute, second and digits after it a pattern has found.

    Raises
    ------
    ValueError
        If there is no such moment.
    """
    *parts, fraction = found.groups(default="0")
    year, month, day, hour, minute, second = map(int, parts)
    return datetime.datetime(year, month, day, hour, minute, second, microseconds_of(fraction))


def clock_time_of(found: re.Match[str]) -> datetime.time:
    """Return the time whose hour, minute and second a pattern has found; raise ValueError if it does not exist."""
    hour, minute, second = map(int, found.groups())
    return datetime.time(hour, minute, second)


def microseconds_of(fraction: str) -> int:
    """Return the microseconds of the digits after a second's point; further digits are dropped."""
    return int(fraction[:6].ljust(6, "0"))


# ---- bytes


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text in base 64, as Jackson reads it; raise DataError if it is none.

    Spaces and control characters may be between groups of four characters.
    """
    try:
        return b64decode(_BASE64_GROUP.sub(r"\1", text).rstrip(_SPACES), validate=True)
    except (binascii.Error, ValueError):
        raise DataError(f"{text!r:.80} is not in base 64") from None
