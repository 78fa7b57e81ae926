"""Counts of rows that are read, or come from an operator, by what becomes of them before the next operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ReadCounts:
    """Counts of rows before an operator.

    Attributes
    ----------
    read
        All rows.
    filtered
        Rows that filters take out.
    rejected
        Rows refused because of a fault, by reason.
    waiting
        Events of paused splits that wait for another log.
    """

    read: int = 0
    filtered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    waiting: int = 0

    @property
    def passed_on(self) -> int:
        """Number of rows that come to the operator."""
        return self.read - self.filtered - self.rejected.total() - self.waiting

    def add(self, other: ReadCounts) -> None:
        """Add the counts of further rows."""
        self.read += other.read
        self.filtered += other.filtered
        self.rejected.update(other.rejected)
        self.waiting += other.waiting

    def to_content(self) -> dict[str, Any]:
        """Return the counts as values for JSON."""
        return dict(vars(self))

    @classmethod
    def of_content(cls, content: dict[str, Any]) -> ReadCounts:
        """Return the counts that `to_content` gave."""
        return cls(**content | {"rejected": Counter(content["rejected"])})
