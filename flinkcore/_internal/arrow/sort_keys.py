"""Sort keys of rows: columns, each ascending or descending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from flinkcore.errors import ConfigurationError

Position: TypeAlias = str | Sequence[str | tuple[str, Literal["ascending", "descending"]]]
"""Values of `position=`: names of columns, with or without a direction."""

_DIRECTIONS: Final = {"ascending": False, "descending": True}


@dataclass(frozen=True)
class SortKey:
    """A column by which rows are ordered; null is less than any value, and NaN greater.

    Attributes
    ----------
    column : str
    is_descending : bool
    """

    column: str
    is_descending: bool = False

    def __str__(self) -> str:
        return f"{self.column} descending" if self.is_descending else self.column


def sort_keys(position: Any) -> tuple[SortKey, ...]:
    """Return the columns that `position=` names, of which the first counts most.

    Parameters
    ----------
    position : str or sequence of str and (str, "ascending" or "descending")
        As `pyarrow.Table.sort_by` takes them.

    Raises
    ------
    ConfigurationError
        If it is something else, or names no column, or one twice.
    """
    given = position if isinstance(position, list | tuple) else [position]
    keys = tuple(map(_sort_key, given))
    if not keys:
        raise ConfigurationError("position= names no column. Leave it out, or name what orders the rows")
    names = [key.column for key in keys]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"position= names column {name!r} twice")
    return keys


def _sort_key(given: Any) -> SortKey:
    if isinstance(given, str) and given:
        return SortKey(given)
    if isinstance(given, tuple) and len(given) == 2:
        name, direction = given
        if isinstance(name, str) and name and direction in _DIRECTIONS:
            return SortKey(name, _DIRECTIONS[direction])
    raise ConfigurationError(
        f'position= takes names of columns, such as "offset" or [("offset", "descending")], not {given!r}'
    )
