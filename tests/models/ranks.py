"""Deduplication and highest rows, row by row in Python: what kernels give for events and watermarks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Result = tuple[str, int, int | None, int | None]
"""Kind, number of the row, rank, and number of the event that caused it (None: a watermark)."""


@dataclass
class Deduplication:
    """Flink's functions for the first or last row of a key."""

    keeps_last: bool
    by_time: bool
    changes: bool
    watermark: float = float("-inf")
    kept: dict[Any, tuple[int, int]] = field(default_factory=dict)
    emitted: set[Any] = field(default_factory=set)
    late: int = 0

    @property
    def waits(self) -> bool:
        return self.by_time and not self.keeps_last and not self.changes

    def event(self, key: Any, row: int, timestamp: int, number: int) -> list[Result]:
        if self.waits and timestamp < self.watermark:
            self.late += 1
            return []
        if key in self.emitted:
            return []
        before = self.kept.get(key)
        if before is not None:
            if self.keeps_last:
                replaces = not self.by_time or before[1] <= timestamp
            else:
                replaces = self.by_time and timestamp < before[1]
            if not replaces:
                return []
        self.kept[key] = row, timestamp
        if self.waits or (self.keeps_last and not self.changes):
            return []
        if not self.keeps_last and not self.by_time:
            self.emitted.add(key)
        if before is None:
            return [("+I", row, None, number)]
        return [("-U", before[0], None, number), ("+U", row, None, number)]

    def advance(self, watermark: float) -> list[Result]:
        self.watermark = watermark
        if not self.waits:
            return []
        due = [
            key
            for key, (_, timestamp) in self.kept.items()
            if timestamp <= watermark and key not in self.emitted
        ]
        due.sort(key=lambda key: self.kept[key][1])
        self.emitted.update(due)
        return [("+I", self.kept[key][0], None, None) for key in due]

    def finish(self) -> list[Result]:
        results = self.advance(float("inf"))
        if self.keeps_last and not self.changes:
            results += [("+I", row, None, None) for row, _ in self.kept.values()]
        return results


def ranks(keys: Sequence[Any], rank: str) -> list[int]:
    """Ranks of sort keys in order."""
    found: list[int] = []
    for number, key in enumerate(keys):
        if number and key == keys[number - 1] and rank != "row_number":
            found.append(found[-1])
        elif rank == "dense_rank":
            found.append(found[-1] + 1 if found else 1)
        else:
            found.append(number + 1)
    return found


@dataclass
class Top:
    """The highest rows of each key, or of each window of a key; a sort key is a tuple, the least the highest row.

    Keys may have limits of their own in place of `n`.
    """

    n: int
    skip: int
    rank: str
    latest_first: bool = False
    limits: dict[Any, int] = field(default_factory=dict)
    watermark: float = float("-inf")
    rows: dict[Any, list[tuple[Any, int]]] = field(default_factory=lambda: defaultdict(list))
    late: int = 0

    def event(self, key: Any, row: int, sort_key: Any, end: int | None = None) -> None:
        if end is not None and end - 1 <= self.watermark:
            self.late += 1
            return
        self.rows[key, end].append((sort_key, row))

    def of_list(self, key: Any, end: int | None) -> list[tuple[int, int]]:
        """Rows of a list with their ranks, those that are shown."""
        rows = self.rows[key, end]
        ordered = sorted(reversed(rows) if self.latest_first else rows, key=lambda each: each[0])
        placed = zip(ordered, ranks([sort_key for sort_key, _ in ordered], self.rank), strict=True)
        n = self.limits.get(key, self.n)
        return [(row, rank) for (_, row), rank in placed if self.skip < rank <= n]

    def advance(self, watermark: float) -> list[tuple[int, int]]:
        self.watermark = watermark
        due = sorted(
            (place for place in self.rows if place[1] is not None and place[1] - 1 <= watermark),
            key=lambda place: place[1],
        )
        results = [shown for place in due for shown in self.of_list(*place)]
        for place in due:
            del self.rows[place]
        return results

    def finish(self) -> list[tuple[int, int]]:
        results = self.advance(float("inf"))
        return results + [shown for place in list(self.rows) for shown in self.of_list(*place)]


def materialised(
    changes: Sequence[Result], shown: Callable[[Result], Any] = lambda change: (change[1], change[2])
) -> list[Any]:
    """What changes leave; an AssertionError if one withdraws what is not there."""
    left: list[Any] = []
    for change in changes:
        if change[0] in ("+I", "+U"):
            left.append(shown(change))
        else:
            assert shown(change) in left, f"{change} withdraws what is not there"
            left.remove(shown(change))
    return left
