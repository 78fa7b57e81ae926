"""Rows on both sides of a log's cut, counted by split where a chunk is read, and checked over all chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import DataError
from flinkcore.log.arrival_cut import ArrivalCut, CutRows, SideOfCut

_BEFORE, _TAKEN, _AFTER = -1, 0, 1

NO_ROWS: Final[Mapping[str, int]] = {
    "first_ms": MAX_TIMESTAMP,
    "greatest_ms": MIN_TIMESTAMP,
    "taken_ms": MIN_TIMESTAMP,
    "before_ms": MIN_TIMESTAMP,
    "before": 0,
    "after": 0,
}
"""Counts of a split without rows: arrival of its first row, the greatest one, those of rows that this run and earlier
ones took, and the numbers of rows before and after the cut."""


class CutCounts:
    """Counts the rows of a chunk on both sides of the cut, batch by batch."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._columns = {name: np.empty(0, np.int64) for name in NO_ROWS}

    @property
    def split_values(self) -> list[Any]:
        """The splits of all rows so far."""
        return list(self._numbers)

    def add(self, rows: CutRows) -> None:
        """Add the rows of the next batch.

        Raises
        ------
        DataError
            If one lies after a row of its split from beyond the cut, and the rows have positions.
        """
        codes, values = rows.splits.codes, rows.splits.values
        numbers = np.array(
            [self._numbers.setdefault(value, len(self._numbers)) for value in values], np.int64
        )
        self._reserve()
        at = np.flatnonzero(rows.is_known & (codes >= 0))
        order = at[np.argsort(codes[at], kind="stable")] if len(values) > 1 else at
        if not len(order):
            return
        arrivals, sides = rows.arrivals_ms[order], rows.sides[order]
        starts = np.flatnonzero(np.append(True, np.diff(codes[order]) != 0))
        splits = numbers[codes[order][starts]]
        if rows.cut.has_positions:
            self._refuse_returns(rows, order, starts, splits)
        columns = self._columns
        is_new = columns["greatest_ms"][splits] == MIN_TIMESTAMP
        columns["first_ms"][splits[is_new]] = arrivals[starts[is_new]]
        for name, side in (("greatest_ms", None), ("taken_ms", _TAKEN), ("before_ms", _BEFORE)):
            of_side = arrivals if side is None else np.where(sides == side, arrivals, MIN_TIMESTAMP)
            columns[name][splits] = np.maximum(columns[name][splits], np.maximum.reduceat(of_side, starts))
        for name, side in (("before", _BEFORE), ("after", _AFTER)):
            columns[name][splits] += np.add.reduceat((sides == side).astype(np.int64), starts)

    def add_unread(self, rows: SideOfCut) -> None:
        """Add the rows of a whole chunk."""
        self._numbers[rows.split] = 0
        name, is_before = ("before", True) if rows.side == _BEFORE else ("after", False)
        of_rows = {"first_ms": rows.least_ms, "greatest_ms": rows.greatest_ms, name: rows.rows}
        of_rows |= {"before_ms": rows.greatest_ms} if is_before else {}
        self._columns = {each: np.array([of_rows.get(each, none)]) for each, none in NO_ROWS.items()}

    def _refuse_returns(self, rows: CutRows, order: Int64s, starts: Int64s, splits: Int64s) -> None:
        arrivals, sides = rows.arrivals_ms[order], rows.sides[order]
        before_ms = np.empty_like(arrivals)
        before_ms[1:] = arrivals[:-1]
        before_ms[starts] = self._columns["greatest_ms"][splits]
        returns = np.flatnonzero(sides < rows.cut.sides(before_ms))
        if len(returns):
            at = int(returns[0])
            row = int(order[at])
            split = rows.splits.values[rows.splits.codes[row]]
            name = rows.chunk.row_name(rows.first_row + row)
            rows.cut.refuse_return(name, split, int(arrivals[at]), int(before_ms[at]), rows.chunk)

    def _reserve(self) -> None:
        for name, none in NO_ROWS.items():
            column = self._columns[name]
            missing = len(self._numbers) - len(column)
            self._columns[name] = np.append(column, np.full(missing, none, np.int64)) if missing else column

    def of(self, split_values: Sequence[Any]) -> dict[str, Int64s]:
        """Return the counts of these splits, of which some may have no rows here; without any rows, no columns."""
        if not self._numbers:
            return {}
        at = np.array([self._numbers.get(value, -1) for value in split_values], np.int64)
        return {name: np.where(at < 0, none, self._columns[name][at]) for name, none in NO_ROWS.items()}


@dataclass
class LogCutCounts:
    """Counts over all chunks of a log.

    Parameters
    ----------
    cut : ArrivalCut or None
    split_values : list
        All splits, in their order.
    """

    cut: ArrivalCut | None
    split_values: list[Any]

    def __post_init__(self) -> None:
        self.columns = {name: np.full(len(self.split_values), none) for name, none in NO_ROWS.items()}

    @property
    def until_ms(self) -> int | None:
        """Return the time of arrival at which the log is cut, or None if it is taken to its end."""
        return None if self.cut is None or self.cut.until_ms == MAX_TIMESTAMP else self.cut.until_ms

    def add(self, of_chunk: Mapping[str, Int64s], splits: Int32s) -> None:
        """Add the counts of the next chunk, with the numbers of its splits; errors as of `CutCounts.add`."""
        if self.cut is None or not of_chunk:
            return
        columns = self.columns
        if self.cut.has_positions:
            first_ms, before_ms = of_chunk["first_ms"], columns["greatest_ms"][splits]
            for at in np.flatnonzero(self.cut.sides(first_ms) < self.cut.sides(before_ms)).tolist():
                split = self.split_values[splits[at]]
                self.cut.refuse_return("a row", split, int(first_ms[at]), int(before_ms[at]), None)
        for name in ("greatest_ms", "taken_ms", "before_ms"):
            columns[name][splits] = np.maximum(columns[name][splits], of_chunk[name])
        for name in ("before", "after"):
            columns[name][splits] += of_chunk[name]

    def check_taken_before(self, rows_before: Int64s, taken_before_ms: Int64s) -> None:
        """Check that the rows before the cut are some that earlier runs took.

        Parameters
        ----------
        rows_before : numpy.ndarray, shape (n_splits,), int64
            Rows of each split that they took.
        taken_before_ms : numpy.ndarray, shape (n_splits,), int64
            The last arrival among these.

        Raises
        ------
        DataError
            If they cannot be.
        """
        if self.cut is None:
            return
        count, last_ms = self.columns["before"], self.columns["before_ms"]
        lost = np.flatnonzero((count > rows_before) | ((count > 0) & (last_ms > taken_before_ms)))
        if not len(lost):
            return
        at = int(lost[0])
        split = self.split_values[at]
        taken = (
            f"took {rows_before[at]:,}, the last of which arrived at {dated(int(taken_before_ms[at]), ' ms')}"
            if rows_before[at]
            else "took none"
        )
        raise DataError(
            f"{'the log' if split is None else f'split {split!r}'} has rows that arrived before the cut of the "
            f"checkpoint at {dated(self.cut.since_ms, ' ms')} and that the run before did not take: {count[at]:,} "
            f"rows, the last of which arrived at {dated(int(last_ms[at]), ' ms')}, where that run {taken}. They came "
            "to the log after it: run that day again with an earlier until=, which all files have passed, or "
            "filter these rows out",
            split=split,
        )
