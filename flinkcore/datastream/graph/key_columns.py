"""The columns that make up a key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeyColumns:
    """Columns that make up the key of a row.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; empty if rows have no key.
    nulls : bool
        Whether null is a key like others in a single column, as in Flink SQL. If not, rows with it are refused, as in
        Flink's DataStream API. Each of several columns may be null in any case.
    """

    names: tuple[str, ...] = ()
    nulls: bool = False

    @property
    def never_null(self) -> str | None:
        """The column of the key if it cannot be null, or None if it or a part of it can be."""
        return self.names[0] if len(self.names) == 1 and not self.nulls else None
