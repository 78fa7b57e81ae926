"""Checks of the lengths and counts that windows, triggers and evictors are made with."""

from typing import Final

from flinkcore.common.time import Interval, interval_ms
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.errors import ConfigurationError

MAX_COUNT: Final = 2**63 - 1


def require_count(owner: str, setting: str, count: int, least: int = 1) -> None:
    """Raise ConfigurationError unless a number of elements is an int of 64 bits and at least `least`."""
    if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= MAX_COUNT:
        raise ConfigurationError(
            f"{owner}: the {setting} must be a whole number of at least {least}, not {count!r}; it has 64 bits"
        )


def require_milliseconds(owner: str, setting: str, milliseconds: object) -> None:
    """Raise ConfigurationError unless a length is a whole number of ms, of 64 bits."""
    if as_timestamp(milliseconds) is None:
        raise ConfigurationError(
            f"{owner}: the {setting} must be a whole number of milliseconds and not beyond 64 bits, it is "
            f"{milliseconds!r}"
        )


def require_above_zero(windows: str, setting: str, milliseconds: int) -> None:
    """Raise ConfigurationError unless a length is a whole number of ms above zero."""
    require_milliseconds(windows, setting, milliseconds)
    if milliseconds <= 0:
        raise ConfigurationError(f"{windows}: the {setting} must be above zero, it is {milliseconds} ms")


def require_offset_below(windows: str, setting: str, milliseconds: int, offset_ms: int) -> None:
    """Raise ConfigurationError unless an offset is a whole number of ms, its absolute value smaller than a length."""
    require_milliseconds(windows, "offset", offset_ms)
    if abs(offset_ms) >= milliseconds:
        raise ConfigurationError(
            f"{windows} must satisfy abs(offset) < {setting}, but the {setting} is {milliseconds} ms and the offset "
            f"{offset_ms} ms"
        )


def offset_or_zero(offset: Interval | None) -> int:
    """Return an offset in ms; 0 for None."""
    return 0 if offset is None else interval_ms(offset, "window offset")


def shift(offset_ms: int) -> str:
    """Return what an offset adds to the text of windows."""
    return f" shifted by {offset_ms} ms" if offset_ms else ""
