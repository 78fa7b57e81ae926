"""Points in time that callers give as a datetime, as text or as a number."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from flinkcore._internal.arrow.time_units import TIME_UNITS, TimeUnit
from flinkcore.errors import ArgumentTypeError, ConfigurationError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FARTHEST_MS: Final = 1 << 61


def instant_ms(instant: Any, setting: str, unit: TimeUnit | None = None) -> int:
    """Return the milliseconds since the epoch of a point in time; fractions are floored.

    Parameters
    ----------
    instant : datetime.datetime, datetime.date, str or int
        Without a zone or offset it is UTC, as timestamps in columns are. A date is its midnight. Text is ISO 8601, or
        an integer.
    setting : str
        Name of the setting in messages.
    unit : {"s", "ms", "us", "ns"}, optional
        Unit of integers; by default ms.

    Raises
    ------
    ArgumentTypeError
        If it is of another type.
    ConfigurationError
        If the text is not a time, or the time is further than 2**61 ms from the epoch.

    Examples
    --------
    >>> instant_ms("2001-01-03T01:00:00+01:00", "until="), instant_ms(978480000, "until=", "s")
    (978480000000, 978480000000)
    """
    if isinstance(instant, str):
        return _of_text(instant, setting, unit)
    if isinstance(instant, datetime):
        moment = instant if instant.tzinfo is not None else instant.replace(tzinfo=timezone.utc)
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(instant, date):
        return (instant - _EPOCH.date()) // timedelta(milliseconds=1)
    if isinstance(instant, bool) or not isinstance(instant, int):
        raise ArgumentTypeError(
            f"{setting} is a point in time, as a datetime, ISO 8601 text or an integer in {unit or 'ms'} since the "
            f"epoch, not {instant!r}"
        )
    found = instant * 1000 // TIME_UNITS[unit or "ms"]
    if abs(found) > _FARTHEST_MS:
        raise ConfigurationError(
            f"{setting} {instant} {unit or 'ms'} is further than 2**61 ms from the epoch: check its unit"
        )
    return found


def _of_text(text: str, setting: str, unit: TimeUnit | None) -> int:
    if text.strip().lstrip("-").isdecimal():
        return instant_ms(int(text), setting, unit)
    try:
        return instant_ms(datetime.fromisoformat(text.strip().replace("Z", "+00:00")), setting)
    except ValueError:
        raise ConfigurationError(
            f"{setting} {text!r} is not a time: write ISO 8601, such as 2001-01-03 or 2001-01-03T12:30:00Z, or an "
            f"integer in {unit or 'ms'} since the epoch"
        ) from None
