"""Lengths of time, and points in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import ArgumentTypeError, ConfigurationError


@dataclass(frozen=True, order=True, repr=False)
class Instant:
    """A point in time, to the nanosecond.

    Parameters
    ----------
    seconds : int
        Since the epoch; may be negative.
    nanos : int
        Beyond the seconds, from 0 to 999,999,999.

    Notes
    -----
    Follows ``pyflink.common.Instant``.

    Examples
    --------
    >>> Instant.of_epoch_milli(-1)
    Instant<-1, 999000000>
    """

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Return the whole milliseconds since the epoch, rounded towards the past."""
        return self.seconds * 1000 + self.nanos // 1_000_000

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Return the instant of a number of milliseconds since the epoch."""
        seconds, milliseconds = divmod(epoch_milli, 1000)
        return Instant(seconds, milliseconds * 1_000_000)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


__all__ = ["Duration", "Instant", "Interval", "Time", "bound_ms", "interval_ms", "timeout_ms"]

_MILLISECOND = timedelta(milliseconds=1)


def _whole_number(value: int, setting: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(f"{setting} takes an integer, not {value!r}; use a finer unit for fractions")
    return value


def _milliseconds(value: int, setting: str) -> int:
    if not MIN_TIMESTAMP <= _whole_number(value, setting) <= MAX_TIMESTAMP:
        raise ConfigurationError(f"{setting}: {value} ms do not fit in 64 bits")
    return value


@dataclass(frozen=True, order=True, init=False)
class Duration:
    """A length of time, to the nanosecond. Every setting takes a :class:`Time` instead.

    Parameters
    ----------
    nanos : int
        Length in nanoseconds, by keyword; may be negative.

    Raises
    ------
    ArgumentTypeError
        If a number comes without a name, such as ``Duration(30)``: it has no unit.

    Notes
    -----
    Follows ``pyflink.common.Duration`` (``java.time.Duration``), whose constructor takes no number. Where Flink counts
    in milliseconds, fractions are truncated, as ``java.time.Duration.toMillis`` does.

    Examples
    --------
    >>> Duration.of_minutes(2).to_millis()
    120000
    """

    nanos: int

    def __init__(self, *without_unit: Any, nanos: int | None = None) -> None:
        if without_unit or nanos is None:
            shown = ", ".join(map(repr, without_unit))
            raise ArgumentTypeError(
                f"Duration({shown}) has no unit: write Duration.of_seconds({shown or 10}), of_minutes, of_hours, "
                "of_days, of_millis or of_nanos"
            )
        object.__setattr__(self, "nanos", nanos)

    @staticmethod
    def of_days(days: int) -> Duration:
        """Return a duration of so many days of 24 hours."""
        return Duration(nanos=_whole_number(days, "Duration.of_days") * 86_400_000_000_000)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Return a duration of so many hours."""
        return Duration(nanos=_whole_number(hours, "Duration.of_hours") * 3_600_000_000_000)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Return a duration of so many minutes."""
        return Duration(nanos=_whole_number(minutes, "Duration.of_minutes") * 60_000_000_000)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Return a duration of so many seconds."""
        return Duration(nanos=_whole_number(seconds, "Duration.of_seconds") * 1_000_000_000)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Return a duration of so many milliseconds."""
        return Duration(nanos=_whole_number(millis, "Duration.of_millis") * 1_000_000)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Return a duration of so many nanoseconds."""
        return Duration(nanos=_whole_number(nanos, "Duration.of_nanos"))

    def to_millis(self) -> int:
        """Return the whole milliseconds of this duration, rounded towards zero."""
        millis = abs(self.nanos) // 1_000_000
        return millis if self.nanos >= 0 else -millis


@dataclass(frozen=True, order=True)
class Time:
    """A length of time in milliseconds. Every setting takes a :class:`Duration` instead.

    Parameters
    ----------
    size_ms : int
        Length in milliseconds; may be negative (an offset). Read it with :meth:`to_milliseconds`.

    Notes
    -----
    Follows ``pyflink.common.Time``. Deliberate difference: every setting accepts a ``Time``, a :class:`Duration`, a
    ``datetime.timedelta`` and a whole number of milliseconds.

    Examples
    --------
    >>> Time.hours(1).to_milliseconds()
    3600000
    """

    size_ms: int

    @staticmethod
    def days(days: int) -> Time:
        """Return a time of so many days of 24 hours."""
        return Time(_whole_number(days, "Time.days") * 86_400_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """Return a time of so many hours."""
        return Time(_whole_number(hours, "Time.hours") * 3_600_000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Return a time of so many minutes."""
        return Time(_whole_number(minutes, "Time.minutes") * 60_000)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Return a time of so many seconds."""
        return Time(_whole_number(seconds, "Time.seconds") * 1000)

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Return a time of so many milliseconds."""
        return Time(_whole_number(milliseconds, "Time.milliseconds"))

    def to_milliseconds(self) -> int:
        """Return this length in milliseconds."""
        return self.size_ms

    def __str__(self) -> str:
        return f"{self.size_ms} ms"


Interval: TypeAlias = Time | Duration | timedelta | int
"""A length of time, as every setting takes it; a whole number is milliseconds."""


def interval_ms(interval: Interval, setting: str) -> int:
    """Return the length of an interval in milliseconds; fractions are cut off towards zero.

    Parameters
    ----------
    interval : Time, Duration, datetime.timedelta or int
        A whole number is milliseconds, as in PyFlink where it takes one.
    setting : str
        Name of the setting in error messages.

    Raises
    ------
    ConfigurationError
        If it is anything else, or does not fit in 64 bits of milliseconds.
    """
    if isinstance(interval, Time):
        return _milliseconds(interval.to_milliseconds(), setting)
    if isinstance(interval, Duration):
        return _milliseconds(interval.to_millis(), setting)
    if isinstance(interval, timedelta):
        return interval // _MILLISECOND if interval >= timedelta() else -(-interval // _MILLISECOND)
    if isinstance(interval, int) and not isinstance(interval, bool):
        return _milliseconds(interval, setting)
    raise ArgumentTypeError(
        f"{setting} takes a length of time, such as Time.seconds(10), Duration.of_seconds(10) or "
        f"datetime.timedelta(seconds=10), or a whole number of milliseconds, not {interval!r}"
    )


def bound_ms(bound: Interval, setting: str) -> int:
    """Return a bound in milliseconds, which may be 0 but not negative (ConfigurationError)."""
    milliseconds = interval_ms(bound, setting)
    if milliseconds < 0:
        raise ConfigurationError(f"{setting} cannot be negative, it is {milliseconds} ms")
    return milliseconds


def timeout_ms(timeout: Interval, setting: str) -> int:
    """Return a timeout or period in milliseconds, at least 1 (ConfigurationError)."""
    milliseconds = interval_ms(timeout, setting)
    if milliseconds <= 0:
        raise ConfigurationError(f"{setting} must be at least 1 ms, it is {milliseconds} ms")
    return milliseconds
