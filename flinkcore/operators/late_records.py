"""Counters of records that operators drop as late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

K = TypeVar("K")


class LateRecords(NamedTuple):
    """The late records of an operator that went to no side output, and all of its records.

    Attributes
    ----------
    dropped : int
        Number of late records that were dropped.
    records : int
        Number of records that came to the operator.
    missed_ms : int
        By how much lower watermarks would have lost none of them.
    """

    dropped: int = 0
    records: int = 0
    missed_ms: int = 0

    def plus(self, other: LateRecords) -> LateRecords:
        """Return the late records of both subtasks."""
        return LateRecords(
            self.dropped + other.dropped,
            self.records + other.records,
            max(self.missed_ms, other.missed_ms),
        )


def late_records_by_operator(subtasks: Iterable[tuple[K, LateRecords]]) -> dict[K, LateRecords]:
    """Return the late records of each operator.

    Parameters
    ----------
    subtasks : iterable of (object, LateRecords)
        Operator and late records of each subtask.
    """
    found: dict[K, LateRecords] = {}
    for operator, late in subtasks:
        found[operator] = found.get(operator, LateRecords()).plus(late)
    return found
