"""Relations of a random query, and what may follow them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

TYPES = {
    "text": "VARCHAR",
    "long": "BIGINT",
    "int": "INT",
    "double": "DOUBLE",
    "decimal": "DECIMAL(10, 2)",
    "bool": "BOOLEAN",
    "date": "DATE",
    "time": "TIMESTAMP(3)",
}
NUMBERS = ("long", "int", "double", "decimal")
SCALARS = (*NUMBERS, "text", "bool", "date")


@dataclass(frozen=True)
class Relation:
    """A table or view.

    Attributes
    ----------
    name : str
    columns : dict of str to str
        Kind of each column, a key of `TYPES`, without rowtime and windows.
    rowtime : str or None
    windows : str or None
        Window function over which rows have `window_start` and `window_end`; equal ones can be joined.
    updates : bool
        Whether rows change.
    is_open : bool
        Whether Flink leaves open in which order rows of a step come.
    exact : bool
        Whether the changes of each step are known, and not their net effect alone.
    """

    name: str
    columns: dict[str, str]
    rowtime: str | None = None
    windows: str | None = None
    updates: bool = False
    is_open: bool = False
    exact: bool = True

    @property
    def keys(self) -> list[str]:
        return [*self.columns, *(["window_start", "window_end"] if self.windows else [])]

    def of(self, *kinds: str) -> list[str]:
        """Return the columns of some kinds."""
        return [name for name, kind in self.columns.items() if kind in kinds]


class Impossible(Exception):
    """A step does not fit the relations that there are."""


@dataclass
class Draw:
    """A query that is being drawn."""

    random: random.Random
    tables: dict[str, dict[str, Any]]
    relations: list[Relation]
    settings: dict[str, str] = field(default_factory=dict)
    views: list[str] = field(default_factory=list)
    names: int = 0

    def add(self, select: str, relation: Relation) -> None:
        self.views.append(select)
        self.relations.append(replace(relation, name=f"q{len(self.views)}"))

    def name(self, prefix: str) -> str:
        """Return a new name of a column."""
        self.names += 1
        return f"{prefix}{self.names}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def some(self, values: list[str], least: int, most: int) -> list[str]:
        if len(values) < least:
            raise Impossible
        return self.random.sample(values, self.random.randint(least, min(most, len(values))))

    def one(self, values: list[Any]) -> Any:
        if not values:
            raise Impossible
        return self.random.choice(values)

    def relation(
        self,
        *,
        rowtime: bool = False,
        inserts: bool = False,
        ordered: bool = False,
        windowless: bool = False,
    ) -> Relation:
        """Draw a relation, mostly the last one."""
        fitting = [
            each
            for each in self.relations
            if (each.rowtime or not rowtime)
            and not (inserts and each.updates)
            and not (ordered and each.is_open)
            and not (windowless and each.windows)
        ]
        if not fitting:
            raise Impossible
        return fitting[-1] if self.chance(0.8) else self.one(fitting)


def seconds(seconds: int) -> str:
    sign = "-" if seconds < 0 else ""
    if seconds and seconds % 60 == 0:
        return f"INTERVAL '{sign}{abs(seconds) // 60}' MINUTE"
    return f"INTERVAL '{sign}{abs(seconds)}' SECOND"
