"""Units of time columns whose values are numbers."""

from typing import Any, Final, Literal, TypeAlias

from flinkcore._internal.show.times import EARLIEST_DATE_MS
from flinkcore.errors import ConfigurationError

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]

TIME_UNITS: Final[dict[TimeUnit, int]] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units of numbers since the epoch, with how many of them a second has."""

UNIT_NAMES: Final[dict[TimeUnit, str]] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}

_LATEST_DATE_MS: Final = 7_258_118_400_000
"""The year 2200: event logs of today have no later dates."""


def looks_dated(number: int, unit: TimeUnit) -> bool:
    """Return whether a number since the epoch, in a unit, lies between March 1973 and the year 2200.

    The units exclude each other: a number that looks dated in one of them does not in any other.

    Examples
    --------
    >>> looks_dated(1_001_894_400, "s"), looks_dated(1_001_894_400, "ms")
    (True, False)
    """
    return EARLIEST_DATE_MS * TIME_UNITS[unit] <= 1000 * number < _LATEST_DATE_MS * TIME_UNITS[unit]


def check_time_unit(unit: Any, setting: str) -> None:
    """Raise a ConfigurationError if the value of a setting is neither a unit nor None."""
    if unit is not None and not (isinstance(unit, str) and unit in TIME_UNITS):
        raise ConfigurationError(f"{setting} is one of {', '.join(map(repr, TIME_UNITS))}, not {unit!r}")
