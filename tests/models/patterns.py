"""A model of Flink's NFA for patterns of MATCH_RECOGNIZE: runs are lists of rows and variables, heaps those of Java."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flinkcore.datastream.graph.row_patterns import RowPattern, Skip

Condition = Callable[[list[tuple[int, int]], int], bool]
"""Takes the rows of a run with their variables, and the row that the variable would take."""


class JavaQueue:
    """Java's PriorityQueue by the first row of runs; the start, which has none, comes last."""

    def __init__(self) -> None:
        self.items: list[Run] = []

    def add(self, run: "Run") -> None:
        self.items.append(run)
        at = len(self.items) - 1
        while at and run.first < self.items[(at - 1) // 2].first:
            self.items[at] = self.items[(at - 1) // 2]
            at = (at - 1) // 2
        self.items[at] = run

    def poll(self) -> "Run":
        first, last = self.items[0], self.items.pop()
        if self.items:
            self._sift_down(0, last)
        return first

    def remove_if(self, is_removed: Callable[["Run"], bool]) -> None:
        kept = [run for run in self.items if not is_removed(run)]
        if len(kept) < len(self.items):
            self.items = kept
            for at in reversed(range(len(kept) // 2)):
                self._sift_down(at, self.items[at])

    def _sift_down(self, at: int, run: "Run") -> None:
        while 2 * at + 1 < len(self.items):
            child = 2 * at + 1
            if child + 1 < len(self.items) and self.items[child].first > self.items[child + 1].first:
                child += 1
            if run.first <= self.items[child].first:
                break
            self.items[at] = self.items[child]
            at = child
        self.items[at] = run


@dataclass
class Run:
    """Rows with their variables, and where the run is: before a row of `variable`, of which it has `count`."""

    rows: list[tuple[int, int]] = field(default_factory=list)
    variable: int = 0
    count: int = 0

    @property
    def first(self) -> float:
        return self.rows[0][0] if self.rows else float("inf")


class NoRowToSkipTo(Exception):
    """Flink fails: a match has no row to skip to, or begins with it."""


class PatternModel:
    """The runs of a key; rows are numbered as they come.

    Parameters
    ----------
    pattern : RowPattern
    conditions : list of Condition
        Of each variable.
    """

    def __init__(self, pattern: RowPattern, conditions: list[Condition]) -> None:
        self.pattern, self.conditions = pattern, conditions
        self.runs, self.matches = JavaQueue(), JavaQueue()
        self.runs.add(Run())
        self.times: list[int] = []

    def row(self, time: int) -> list[list[tuple[int, int]]]:
        """Take a row; return the matches that are emitted."""
        emitted = self.advance(time)
        number = len(self.times)
        self.times.append(time)
        runs, ended = JavaQueue(), JavaQueue()
        for run in self.runs.items:
            for variable in self._takers(run, number):
                rows = [*run.rows, (number, variable)]
                is_same = variable == run.variable
                grown = Run(rows, variable, run.count + 1 if is_same else 1)
                if grown.count == self.pattern.variables[variable].most:
                    grown = Run(rows, variable + 1, 0)
                if grown.variable < len(self.pattern.variables):
                    runs.add(grown)
                if self._is_complete(grown, run, number):
                    ended.add(Run(rows))
            if not run.rows:
                runs.add(run)
        return emitted + self._emit(runs, ended)

    def advance(self, now: int) -> list[list[tuple[int, int]]]:
        """Let time pass; return the matches that had waited for runs that end."""
        within = self.pattern.within_ms
        runs = JavaQueue()
        for run in self.runs.items:
            if within is None or not run.rows or now - self.times[run.rows[0][0]] < within:
                runs.add(run)
        return self._emit(runs, JavaQueue())

    def _is_true(self, run: Run, variable: int, number: int) -> bool:
        return self.conditions[variable](run.rows, number)

    def _may_enter(self, run: Run, variable: int, number: int) -> bool:
        """Whether no greedy variable before this one takes the row."""
        return (
            variable == 0
            or not self.pattern.variables[variable - 1].prefers_more
            or not self._is_true(run, variable - 1, number)
        )

    def _takers(self, run: Run, number: int) -> list[int]:
        """Variables that take a row after this run, in Flink's order."""
        found, variable, count = [], run.variable, run.count
        while variable < len(self.pattern.variables):
            known = self.pattern.variables[variable]
            if count == 0 and not self._may_enter(run, variable, number):
                break
            if self._is_true(run, variable, number):
                found.append(variable)
            if count < known.least:
                break
            variable, count = variable + 1, 0
        return found

    def _is_complete(self, grown: Run, before: Run, number: int) -> bool:
        """Whether no variable after a run must take a row; tests are those of the row that it has just taken."""
        variable, count = grown.variable, grown.count
        while variable < len(self.pattern.variables):
            if count == 0 and not self._may_enter(before, variable, number):
                return False
            if count < self.pattern.variables[variable].least:
                return False
            variable, count = variable + 1, 0
        return True

    def _emit(self, runs: JavaQueue, ended: JavaQueue) -> list[list[tuple[int, int]]]:
        for run in ended.items:
            self.matches.add(run)
        emitted = []
        while self.matches.items and (not runs.items or self.matches.items[0].first <= runs.items[0].first):
            match = self.matches.poll()
            last = self._last_skipped(match)
            runs.remove_if(lambda run, last=last: run.first <= last)  # type: ignore[misc]
            self.matches.remove_if(lambda run, last=last: run.first <= last)  # type: ignore[misc]
            emitted.append(match.rows)
        self.runs = runs
        return emitted

    def _last_skipped(self, match: Run) -> int:
        if self.pattern.skip is Skip.PAST_LAST_ROW:
            return match.rows[-1][0]
        if self.pattern.skip is Skip.TO_NEXT_ROW:
            return match.rows[0][0]
        variable = self.pattern.names.index(str(self.pattern.skip_to))
        rows = [number for number, taker in match.rows if taker == variable]
        if not rows:
            raise NoRowToSkipTo("no row")
        to = rows[0] if self.pattern.skip is Skip.TO_FIRST else rows[-1]
        if to == match.rows[0][0]:
            raise NoRowToSkipTo("first row")
        return to - 1


def rows_read(rows: list[tuple[int, int]], n_variables: int) -> list[list[Any]]:
    """Return the rows of a match by variable."""
    return [[number for number, taker in rows if taker == variable] for variable in range(n_variables)]
