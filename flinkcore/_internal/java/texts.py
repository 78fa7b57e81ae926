"""Values as texts, as Java writes them."""

from __future__ import annotations

import datetime
import operator
from decimal import Decimal
from typing import Any

from flinkcore.errors import DataError

# ---- numbers


def integer_text(value: Any, bits: int | None) -> str:
    """Return a whole number of a type of so many bits as text; raise DataError if it is none."""
    try:
        return str(within(operator.index(value), bits))
    except TypeError:
        raise DataError(f"{value!r:.80} is not a whole number") from None


def within(value: int, bits: int | None) -> int:
    """Return a whole number; raise DataError if a type of so many bits, unless None, does not hold it."""
    if bits is not None and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise DataError(f"{value} is beyond {bits} bits")
    return value


def double_text(value: float) -> str:
    """Return a number as ``Double.toString`` does: from 10**-3 to 10**7 plain, beyond with an exponent.

    Notes
    -----
    The text is that of Java 19 and later: earlier versions write some numbers with a digit too many.
    """
    return _number_text(value, repr(value))


def float_text(value: float) -> str:
    """Return a number of 32 bits as ``Float.toString`` does."""
    import numpy as np

    # The text of numpy's own begins an exponent at other numbers, by version.
    return _number_text(value, np.format_float_positional(np.float32(value), trim="0"))


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


def bytes_text(value: bytes | bytearray) -> str:
    """Return an array of bytes as ``Arrays.toString`` does: Java's bytes have a sign."""
    return f"[{', '.join(str((byte ^ 128) - 128) for byte in value)}]"


# ---- dates and times


def local_time_text(value: datetime.time | datetime.datetime) -> str:
    """Return the time of day as ``DateTimeFormatter.ISO_LOCAL_TIME`` does."""
    return f"{value:%H:%M:%S}{_fraction(value.microsecond)}"


def local_timestamp_text(value: datetime.datetime) -> str:
    """Return a moment as ``2020-01-31 03:04:05``, with as many digits of the second as it has."""
    return f"{value.date().isoformat()} {local_time_text(value)}"


def sql_timestamp_text(value: datetime.datetime) -> str:
    """Return a moment as ``java.sql.Timestamp.toString`` does: with one digit of the second at least."""
    return f"{value.date().isoformat()} {value:%H:%M:%S}{_fraction(value.microsecond) or '.0'}"


def _fraction(microsecond: int) -> str:
    return f".{microsecond:06d}".rstrip("0") if microsecond else ""
