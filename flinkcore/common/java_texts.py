"""Values as texts, as Java writes and reads them."""

from __future__ import annotations

import datetime
import operator
import re
import struct
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from flinkcore.common.time import Instant
from flinkcore.errors import DataError

_NO_SPACE: Final = "".join(map(chr, range(0x21)))
"""What ``String.trim`` removes."""

_DOUBLE: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_NOT_PLAIN: Final = re.compile(r"[^0-9+\-.eE]")
_HEX_DOUBLE: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
)
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
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
        Size of the type; None: there is no limit.

    Raises
    ------
    DataError
        If the text is no whole number, or beyond the type.
    """
    digits = trimmed(text)
    if not (digits.isdecimal() or (digits[:1] in ("+", "-") and digits[1:].isdecimal())):
        raise DataError(f"{text!r:.80} is no whole number")
    try:
        value = int(digits)
    except ValueError:  # thousands of digits, which Python refuses
        raise DataError(f"{text!r:.80}... has too many digits") from None
    return _within(value, bits)


def integers_of(texts: Sequence[str], bits: int | None) -> list[int]:
    """Return the whole numbers of texts; raise ValueError if one of them is not of the plain form that Python reads."""
    digits = "".join(texts)
    if not digits.isascii() or "_" in digits:
        raise DataError("not all are plain numbers")
    numbers = list(map(int, texts))
    if numbers:
        _within(min(numbers), bits)
        _within(max(numbers), bits)
    return numbers


def integer_text(value: Any, bits: int | None) -> str:
    """Return a whole number of a type of so many bits as text; raise DataError if it is none."""
    try:
        return str(_within(operator.index(value), bits))
    except TypeError:
        raise DataError(f"{value!r:.80} is no whole number") from None


def _within(value: int, bits: int | None) -> int:
    if bits is not None and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise DataError(f"{value} is beyond {bits} bits")
    return value


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
    raise DataError(f"{text!r:.80} is no number")


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
        raise DataError(f"{text!r:.80} is no decimal")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise DataError(f"{text!r:.80} has too large an exponent") from None


def boolean_of(text: str) -> bool:
    """Return whether a text is "true" in any case, as ``Boolean.parseBoolean``."""
    return text == "true" or (text != "false" and trimmed(text).lower() == "true")


def double_text(value: float) -> str:
    """Return a number as ``Double.toString`` does: from 10**-3 to 10**7 plain, beyond with an exponent.

    Notes
    -----
    That of Java 19 and later: earlier ones write some numbers with a digit too many.
    """
    return _number_text(value, repr(value))


def float_text(value: float) -> str:
    """Return a number of 32 bits as ``Float.toString`` does."""
    import numpy as np

    return _number_text(value, str(np.float32(value)))


def _number_text(value: float, shortest: str) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return shortest
    digits, exponent = f"{Decimal(shortest):e}".lower().split("e")
    if len(digits.lstrip("-").rstrip("0.")) == 1:  # of numbers with two digits Java takes the nearest one
        digits, exponent = f"{value:.1e}".split("e")
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent)}"


# ---- dates and times


def date_of(text: str) -> datetime.date:
    """Return the day of a text such as "2020-1-31", as ``java.sql.Date.valueOf``; raise DataError if it is none."""
    found = _DATE.fullmatch(text)
    try:
        if found:
            return datetime.date(*map(int, found.groups()))
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is no date such as '2020-01-31'")


def sql_time_of(text: str) -> datetime.time:
    """Return the time of a text such as "3:04:05", as ``java.sql.Time.valueOf``; raise DataError if it is none."""
    found = _SQL_TIME.fullmatch(text)
    try:
        if found:
            hour, minute, second = map(int, found.groups())
            return datetime.time(hour, minute, second)
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is no time such as '03:04:05'")


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
            return datetime.time(int(hour), int(minute), int(second), _microseconds(fraction))
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is no time such as '03:04:05'")


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
            *parts, fraction = found.groups(default="0")
            year, month, day, hour, minute, second = map(int, parts)
            return datetime.datetime(year, month, day, hour, minute, second, _microseconds(fraction))
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is no timestamp such as '2020-01-31 03:04:05'")


def _microseconds(fraction: str) -> int:
    return int(fraction[:6].ljust(6, "0"))


def local_time_text(value: datetime.time | datetime.datetime) -> str:
    """Return the time of day as ``DateTimeFormatter.ISO_LOCAL_TIME`` does."""
    return f"{value:%H:%M:%S}{_fraction(value.microsecond)}"


def local_timestamp_text(value: datetime.datetime) -> str:
    """Return a moment as ``2020-01-31 03:04:05``, with as many digits of the second as it has."""
    return f"{value.date().isoformat()} {local_time_text(value)}"


def sql_timestamp_text(value: datetime.datetime) -> str:
    """Return a moment as ``java.sql.Timestamp.toString`` does: with one digit of the second at least."""
    return f"{value.date().isoformat()} {value:%H:%M:%S}{_fraction(value.microsecond) or '.0'}"


def instant_text(value: Instant) -> str:
    """Return a moment as ``java.time.Instant.toString`` does: with 0, 3, 6 or 9 digits of the second.

    One before the year 1 or after 9999 is given in seconds since the epoch.
    """
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
    except OverflowError:
        return str(value)
    digits = f"{value.nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{moment.isoformat()}{f'.{digits}' if digits else ''}Z"


def _fraction(microsecond: int) -> str:
    return f".{microsecond:06d}".rstrip("0") if microsecond else ""
