"""Moments as people read them."""

from datetime import datetime, timedelta, timezone
from typing import Final

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP

EARLIEST_DATE_MS: Final = 10**11
"""In March of 1973: event logs of today have no lesser dates. What is less counts from 0, or is in seconds."""


def dated(timestamp_ms: int, unit: str = "") -> str:
    """Return milliseconds since the epoch, in a unit that is shown, with their date beside if they look like one.

    Examples
    --------
    >>> dated(978_307_200_000, " ms"), dated(5)
    ('978307200000 ms (2001-01-01 00:00:00.000Z)', '5')
    """
    number = f"{timestamp_ms}{unit}"
    if timestamp_ms < EARLIEST_DATE_MS:
        return number
    shown = format_timestamp(int(timestamp_ms))
    return number if shown == f"{timestamp_ms} ms" else f"{number} ({shown})"


def format_timestamp(timestamp_ms: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC; the ends of the int64 range as words."""
    if timestamp_ms == MIN_TIMESTAMP:
        return "none yet"
    if timestamp_ms == MAX_TIMESTAMP:
        return "the maximum"
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
