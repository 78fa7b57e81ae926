"""Small models of joins of Flink SQL, a row and a watermark at a time: no sorted lists, no pages of candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

END = 2**63 - 1
SIDES = ("left", "right")

Result = tuple[str, int | None, int | None]
"""The kind of change, and the numbers of the left and the right row; None for nulls."""


@dataclass
class Row:
    """A row of one side that waits.

    Attributes
    ----------
    number, key : int
    time : int
        Its timestamp, or in a window join the end of a window.
    can_match : bool
    matched : bool
        Whether it has had a match.
    """

    number: int
    key: int
    time: int
    can_match: bool = True
    matched: bool = False


@dataclass
class JoinModel(ABC):
    """A join of two inputs.

    Parameters
    ----------
    how : str
    meets : callable
        Condition on the numbers of a left and a right row.
    """

    how: str
    meets: Callable[[int, int], bool]
    watermark: int = field(default=-(2**63), init=False)
    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []), init=False)
    results: list[Result] = field(default_factory=list, init=False)

    def is_outer(self, side: int) -> bool:
        return self.how in ("full", SIDES[side])

    def matches(self, side: int, row: Row, other: Row) -> bool:
        pair = (row, other) if side == 0 else (other, row)
        return (
            row.key == other.key
            and row.can_match
            and other.can_match
            and self.meets(*(each.number for each in pair))
        )

    def emit_pair(self, side: int, row: Row, other: Row) -> None:
        left, right = (row, other) if side == 0 else (other, row)
        self.results.append(("+I", left.number, right.number))

    def emit_alone(self, side: int, row: Row, kind: str = "+I") -> None:
        self.results.append((kind, row.number, None) if side == 0 else (kind, None, row.number))

    def taken(self) -> list[Result]:
        """Return the results since the last call."""
        results = list(self.results)
        self.results.clear()
        return results

    @abstractmethod
    def process(self, side: int, row: Row) -> None: ...

    def advance(self, watermark: int) -> None:
        self.watermark = watermark


@dataclass
class IntervalJoinModel(JoinModel):
    """Right rows whose time is from `lower` to `upper` after that of the left row."""

    lower: int = 0
    upper: int = 0
    timers: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}), init=False)

    def reach(self, side: int) -> int:
        return -self.lower if side else self.upper

    @property
    def now(self) -> int:
        return max(0, self.watermark)

    def expired(self, side: int) -> int:
        if self.now == END:
            return END
        return self.now - self.reach(side) - 1

    def expire(self, side: int, key: int) -> None:
        for row in [row for row in self.rows[side] if row.key == key and row.time <= self.expired(side)]:
            if self.is_outer(side) and not row.matched:
                self.emit_alone(side, row)
            self.rows[side].remove(row)

    def process(self, side: int, row: Row) -> None:
        other = 1 - side
        lowest, highest = row.time - self.reach(other), row.time + self.reach(side)
        if (self.expired(other) if self.now > 0 else 0) < highest:
            for each in self.rows[other]:
                if lowest <= each.time <= highest and self.matches(side, row, each):
                    self.emit_pair(side, row, each)
                    row.matched = each.matched = True
            self.expire(other, row.key)
        if self.now < highest:
            if row.can_match or self.is_outer(side):
                self.rows[side].append(row)
                self.timers[side].setdefault(row.key, row.time + self.reach(side) + 1)
        elif self.is_outer(side) and not row.matched:
            self.emit_alone(side, row)

    def advance(self, watermark: int) -> None:
        super().advance(watermark)
        for side in (0, 1):
            for key, due in sorted(self.timers[side].items()):
                if due <= watermark:
                    self.expire(side, key)
                    del self.timers[side][key]
                    left = [row.time for row in self.rows[side] if row.key == key]
                    if left:
                        self.timers[side][key] = min(left) + self.reach(side) + 1


@dataclass
class WindowJoinModel(JoinModel):
    """Rows of the same window; the time of a row is the end of its window."""

    def process(self, side: int, row: Row) -> None:
        if row.time - 1 > self.watermark:
            self.rows[side].append(row)

    def advance(self, watermark: int) -> None:
        super().advance(watermark)
        due = sorted({(row.time, row.key) for rows in self.rows for row in rows if row.time - 1 <= watermark})
        for window in due:
            left, right = (
                [row for row in self.rows[side] if (row.time, row.key) == window] for side in (0, 1)
            )
            self.fire(left, right)
            for side in (0, 1):
                self.rows[side][:] = [row for row in self.rows[side] if (row.time, row.key) != window]

    def fire(self, left: list[Row], right: list[Row]) -> None:
        for row in left:
            matches = [other for other in right if self.matches(0, row, other)]
            for other in matches:
                other.matched = True
                if self.how not in ("semi", "anti"):
                    self.emit_pair(0, row, other)
            if self.how == "semi" if matches else self.how == "anti" or self.is_outer(0):
                self.emit_alone(0, row)
        for row in right:
            if self.is_outer(1) and not row.matched:
                self.emit_alone(1, row)


@dataclass
class RegularJoinModel(JoinModel):
    """All rows of a key; with changes, or final."""

    changes: bool = True

    def process(self, side: int, row: Row) -> None:
        others = [other for other in self.rows[1 - side] if self.matches(side, row, other)]
        alone = self.how in ("semi", "anti")
        for other in others:
            first = not other.matched
            other.matched = True
            if first and alone and side == 1 and self.how == "semi":
                self.emit_alone(0, other)
            elif first and self.changes and (self.is_outer(1 - side) or (self.how == "anti" and side == 1)):
                self.emit_alone(1 - side, other, "-D")
            if not alone:
                self.emit_pair(side, row, other)
        row.matched = bool(others)
        if self.how == "semi" and side == 0 and others:
            self.emit_alone(0, row)
        if not others and self.changes and (self.is_outer(side) or (self.how == "anti" and side == 0)):
            self.emit_alone(side, row)
        self.rows[side].append(row)

    def advance(self, watermark: int) -> None:
        super().advance(watermark)
        if watermark == END and not self.changes:
            for side in (0, 1):
                for row in self.rows[side]:
                    if not row.matched and (self.is_outer(side) or (self.how == "anti" and side == 0)):
                        self.emit_alone(side, row)


@dataclass
class TemporalJoinModel(JoinModel):
    """Left rows with the latest right row of the key that is not after them."""

    timers: dict[int, int] = field(default_factory=dict, init=False)

    def process(self, side: int, row: Row) -> None:
        if not row.can_match and (side == 1 or self.how == "inner"):
            return
        if side == 1:
            self.rows[1][:] = [each for each in self.rows[1] if (each.key, each.time) != (row.key, row.time)]
        self.rows[side].append(row)
        self.timers[row.key] = min(self.timers.get(row.key, END), row.time)

    def advance(self, watermark: int) -> None:
        super().advance(watermark)
        for key, due in sorted(self.timers.items()):
            if due <= watermark:
                del self.timers[key]
                self.come_out(key)

    def come_out(self, key: int) -> None:
        for row in [row for row in self.rows[0] if row.key == key and row.time <= self.watermark]:
            self.rows[0].remove(row)
            versions = [each for each in self.rows[1] if each.key == key and each.time <= row.time]
            version = max(versions, key=lambda each: each.time, default=None)
            if version is not None and self.matches(0, row, version):
                self.emit_pair(0, row, version)
            elif self.how == "left":
                self.emit_alone(0, row)
        reached = [each.time for each in self.rows[1] if each.key == key and each.time <= self.watermark]
        self.rows[1][:] = [
            each for each in self.rows[1] if each.key != key or each.time >= max(reached, default=each.time)
        ]
        waiting = [row.time for row in self.rows[0] if row.key == key]
        if waiting:
            self.timers[key] = min(waiting)
