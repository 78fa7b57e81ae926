"""Joins, highest rows and values of changes, an event at a time over plain lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Result = tuple[str, int | None, int | None]
"""The kind of change, and the numbers of the left and the right row, None for nulls; or a row's number and its rank."""


@dataclass
class Row:
    """A row that has come: its number, and what it is."""

    number: int
    content: int


@dataclass
class ChangingJoinModel:
    """A regular join; `meets` compares the contents of a left and a right row."""

    how: str
    meets: Callable[[int, int], bool]
    rows: dict[tuple[int, int], list[Row]] = field(default_factory=dict)
    """By side and key."""

    def of(self, side: int, key: int) -> list[Row]:
        return self.rows.setdefault((side, key), [])

    def matches(self, side: int, key: int, content: int) -> list[Row]:
        if key == 0:  # a null
            return []
        return [
            row
            for row in self.of(1 - side, key)
            if self.meets(*((content, row.content) if side == 0 else (row.content, content)))
        ]

    def is_outer(self, side: int) -> bool:
        return self.how in ("full", ("left", "right")[side])

    def event(self, side: int, key: int, kind: str, row: Row) -> list[Result]:
        own, comes = self.of(side, key), kind in ("+I", "+U")
        same = [each for each in own if each.content == row.content]
        if not comes and not same and key != 0:
            return []
        found = self.matches(side, key, row.content)
        results: list[Result] = []

        def alone(of: int, number: int, kind: str) -> None:
            results.append((kind, number, None) if of == 0 else (kind, None, number))

        counts = {
            id(each): len(self.matches(1 - side, key, each.content)) for each in found
        }  # before this event
        if self.how in ("semi", "anti"):
            if side == 0:
                if bool(found) == (self.how == "semi"):
                    alone(0, row.number, kind)
            else:
                for each in found:
                    if counts[id(each)] == (0 if comes else 1):
                        is_semi = self.how == "semi"
                        alone(0, each.number, kind if is_semi else "-D" if comes else "+I")
        else:
            any_outer = self.is_outer(0) or self.is_outer(1)
            of_pair = kind
            if (comes and any_outer) or self.is_outer(side):
                of_pair = "+I" if comes else "-D"
            for each in found:
                if comes and self.is_outer(1 - side) and counts[id(each)] == 0:
                    alone(1 - side, each.number, "-D")
                left, right = (row, each) if side == 0 else (each, row)
                results.append((of_pair, left.number, right.number))
                if not comes and self.is_outer(1 - side) and counts[id(each)] == 1:
                    alone(1 - side, each.number, "+I")
            if not found and self.is_outer(side):
                alone(side, row.number, "+I" if comes else "-D")
        if comes:
            own.append(row)
        elif same:
            own.remove(same[0])
        return results

    def final(self, key: int) -> list[Result]:
        """Return what the rows of a key that are left give."""
        results: list[Result] = []
        for row in self.of(0, key):
            found = self.matches(0, key, row.content)
            if self.how in ("semi", "anti"):
                if bool(found) == (self.how == "semi"):
                    results.append(("+I", row.number, None))
                continue
            results += [("+I", row.number, each.number) for each in found]
            if not found and self.is_outer(0):
                results.append(("+I", row.number, None))
        for row in self.of(1, key):
            if self.is_outer(1) and not self.matches(1, key, row.content):
                results.append(("+I", None, row.number))
        return results


@dataclass
class ChangingTopModel:
    """The highest rows of a key: the difference between the rows that are shown before and after each event.

    Keys may have limits of their own in place of `n`.
    """

    n: int
    skip: int
    ranks_shown: bool
    limits: dict[int, int] = field(default_factory=dict)
    rows: dict[int, list[tuple[Any, Row]]] = field(default_factory=dict)

    def ordered(self, key: int) -> list[Row]:
        return [row for _, row in sorted(self.rows.setdefault(key, []), key=lambda each: each[0])]

    def event(self, key: int, kind: str, sort_key: Any, row: Row) -> list[Result]:
        n = self.limits.get(key, self.n)
        before = self.ordered(key)[:n]
        own = self.rows[key]
        if kind in ("+I", "+U"):
            own.append((sort_key, row))
        else:
            same = [place for place, (_, each) in enumerate(own) if each.content == row.content]
            if not same:
                return []
            del own[same[0]]
        after = self.ordered(key)[:n]
        results: list[Result] = []
        if not self.ranks_shown and not self.skip:
            kept = {each.number for each in before} & {each.number for each in after}
            results += [("-D", each.number, None) for each in before if each.number not in kept]
            return results + [("+I", each.number, None) for each in after if each.number not in kept]
        for place in range(self.skip, max(len(before), len(after))):
            old, new = (rows[place] if place < len(rows) else None for rows in (before, after))
            if old is new:
                continue
            kinds = ("-D", "+I") if old is None or new is None else ("-U", "+U")
            results += [
                (kind, each.number, place + 1 if self.ranks_shown else None)
                for kind, each in zip(kinds, (old, new), strict=True)
                if each is not None
            ]
        return results


@dataclass
class KeptValuesModel:
    """The values of keys, each of which begins anew when as many rows were withdrawn as came."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    def event(self, key: int, kind: str, row: Row) -> list[int]:
        """Return the numbers of the values of the key after an event; without rows they are forgotten then."""
        own = self.rows.setdefault(key, [])
        count = self.counts.get(key, 0)
        if kind in ("+I", "+U"):
            own.append(row)
            count += 1
        elif count:
            count -= 1
            same = [each for each in own if each.content == row.content]
            if same:
                own.remove(same[0])
        self.counts[key] = count
        found = [each.number for each in own]
        if not count:
            own.clear()
        return found
