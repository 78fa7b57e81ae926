"""Checks of the numbers of elements that triggers, evictors and count windows are made with."""

from typing import Final

from flinkcore.errors import ConfigurationError

MAX_COUNT: Final = 2**63 - 1


def require_count(owner: str, setting: str, count: int, least: int = 1) -> None:
    """Raise ConfigurationError if a number of elements is no int of 64 bits, or below the least possible one."""
    if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= MAX_COUNT:
        raise ConfigurationError(
            f"{owner}: the {setting} must be a whole number of at least {least}, not {count!r}; it has 64 bits"
        )
