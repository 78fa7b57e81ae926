"""Checks and texts of the lengths of time that windows are made with."""

from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.errors import ConfigurationError


def require_above_zero(windows: str, setting: str, milliseconds: int) -> None:
    """Raise ConfigurationError if a length is not above zero."""
    if milliseconds <= 0:
        raise ConfigurationError(f"{windows}: the {setting} must be above zero, it is {milliseconds} ms")


def require_offset_below(windows: str, setting: str, milliseconds: int, offset_ms: int) -> None:
    """Raise ConfigurationError if an offset, either way, is not smaller than a length."""
    if abs(offset_ms) >= milliseconds:
        raise ConfigurationError(
            f"{windows} must satisfy abs(offset) < {setting}, but the {setting} is {milliseconds} ms and the offset "
            f"{offset_ms} ms"
        )


def offset_or_zero(offset: Time | Duration | None) -> int:
    """Return an offset in milliseconds; None is none."""
    return 0 if offset is None else interval_ms(offset, "window offset")


def shift(offset_ms: int) -> str:
    """Return what an offset adds to the text of windows."""
    return f" shifted by {offset_ms} ms" if offset_ms else ""
