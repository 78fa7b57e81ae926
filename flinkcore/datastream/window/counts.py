"""Checks of the numbers of elements that triggers, evictors and count windows are made with."""

from flinkcore.errors import ConfigurationError


def require_count(owner: str, setting: str, count: int, least: int = 1) -> None:
    """Raise ConfigurationError if a number of elements is no int, or below the least possible one."""
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ConfigurationError(
            f"{owner}: the {setting} must be a whole number of at least {least}, not {count!r}"
        )
