"""Patterns of rows as MATCH_RECOGNIZE has them, and expressions over the rows of a match."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from flinkcore._internal.arrow.expressions import Expression
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.errors import UnsupportedOperationError

if TYPE_CHECKING:
    import pyarrow as pa

ALL_ROWS: Final = "*"
"""In place of a variable: all rows of a match."""

MATCH_TIME: Final = "time of the match"
"""Column of the event time of matches in expressions."""

MOST_VARIABLES: Final = 64


class Skip(Enum):
    """Where the search continues after a match: Flink's ``AfterMatchSkipStrategy``."""

    PAST_LAST_ROW = "past last row"
    TO_NEXT_ROW = "to next row"
    TO_FIRST = "to first"
    TO_LAST = "to last"


@dataclass(frozen=True)
class PatternVariable:
    """A variable of a pattern with its quantifier.

    Attributes
    ----------
    name : str
    least : int
        Least number of rows.
    most : int or None
        Most rows, or None for any number.
    is_greedy : bool
        Whether it takes as many rows as it can.
    """

    name: str
    least: int = 1
    most: int | None = 1
    is_greedy: bool = True

    @property
    def is_optional(self) -> bool:
        """Return whether a match may have no row of it."""
        return self.least == 0

    @property
    def prefers_more(self) -> bool:
        """Return whether a row that it can take is not taken by the next variable: Flink's property GREEDY."""
        return self.is_greedy and (self.least, self.most) != (0, 1) and self.least != self.most

    def __str__(self) -> str:
        bounds = (self.least, self.most)
        known = {(1, 1): "", (0, 1): "?", (0, None): "*", (1, None): "+"}.get(bounds)
        most = "" if self.most is None else self.most
        quantifier = known if known is not None else f"{{{self.least},{most}}}"
        return f"{self.name}{quantifier}{'' if self.is_greedy else '?'}"


@dataclass(frozen=True)
class RowPattern:
    """A sequence of variables, each of which takes rows that follow each other.

    Attributes
    ----------
    variables : tuple of PatternVariable
    skip : Skip
    skip_to : str or None
        Variable of `Skip.TO_FIRST` and `Skip.TO_LAST`.
    within_ms : int or None
        The last row of a match comes less than so many ms after the first.
    """

    variables: tuple[PatternVariable, ...]
    skip: Skip = Skip.PAST_LAST_ROW
    skip_to: str | None = None
    within_ms: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(variable.name for variable in self.variables)

    def check(self) -> None:
        """Raise UnsupportedOperationError for a pattern that Flink refuses, too."""
        names = self.names
        for variable in self.variables:
            if variable.most is not None and not 0 <= variable.least <= variable.most != 0:
                raise UnsupportedOperationError(
                    f"{variable} of the pattern ({self}) takes no rows, which Flink refuses, too. Write {{least,most}}"
                )
            if (variable.least, variable.most, variable.is_greedy) == (0, 1, False):
                raise UnsupportedOperationError(
                    f"{variable} of the pattern ({self}) is optional and reluctant, which Flink refuses, too. Write "
                    f"{variable.name}?"
                )
        if len(names) > MOST_VARIABLES:
            raise UnsupportedOperationError(
                f"the pattern has {len(names)} variables, and at most {MOST_VARIABLES} are supported"
            )
        for name in names:
            if names.count(name) > 1:
                raise UnsupportedOperationError(
                    f"the pattern has the variable {name} twice, which Flink refuses, too. Give it two names"
                )
        if all(variable.is_optional for variable in self.variables):
            raise UnsupportedOperationError(
                f"the pattern ({self}) matches no rows at all, which Flink refuses, too. Let a variable take one row"
            )
        if self.variables[-1].prefers_more:
            raise UnsupportedOperationError(
                f"the last variable of the pattern ({self}) is greedy, which Flink refuses, too. Make it reluctant, "
                "or let a variable follow it"
            )
        for before, variable in zip(self.variables, self.variables[1:], strict=False):
            # Flink's check leaves out {0,n}.
            if before.prefers_more and variable.is_optional and variable.most in (None, 1):
                raise UnsupportedOperationError(
                    f"{variable} follows the greedy {before}, which Flink refuses, too. Make {before.name} reluctant"
                )

    def __str__(self) -> str:
        return " ".join(map(str, self.variables))


@dataclass(frozen=True)
class RowOf:
    """A row of a match: the first or last one of a variable, or one that is so many rows away from it.

    Attributes
    ----------
    variable : str
        Name of a variable, or `ALL_ROWS`.
    is_first : bool
        Whether rows are counted from the first one, and not back from the last one.
    offset : int
    """

    variable: str
    is_first: bool
    offset: int = 0

    def __str__(self) -> str:
        place = f"{'first' if self.is_first else 'last'} row"
        return f"{place}{f' {self.offset}' if self.offset else ''} of {self.variable}"


@dataclass(frozen=True, eq=False)
class ColumnOfRow:
    """A column of a row of a match, null if there is no such row.

    Attributes
    ----------
    name : str
        Its name in the expression.
    row : RowOf
    column : str
        Its name in the rows.
    """

    name: str
    row: RowOf
    column: str


@dataclass(frozen=True, eq=False)
class VariableAggregates:
    """Aggregates over the rows of a variable.

    Attributes
    ----------
    variable : str
        Name of a variable, or `ALL_ROWS`.
    arguments : tuple of (str, Expression)
        Columns that are computed from the rows.
    aggregates : tuple of (str, Aggregate)
        Over these columns.
    results : tuple of (str, Expression)
        Their names in the expression, and how they are computed from the aggregates.
    """

    variable: str
    arguments: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    results: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, eq=False)
class PatternExpression:
    """A value of a match, or of a row that may become part of one.

    Attributes
    ----------
    expression : Expression
        Over columns of rows and results of aggregates.
    columns : tuple of ColumnOfRow
    aggregates : tuple of VariableAggregates
    can_fail : bool
        Whether it fails for some values, so that it must be evaluated only for rows that need it.
    time_type : pyarrow.DataType or None
        Type of the column `MATCH_TIME`, if it reads the event time of the match.
    """

    expression: Expression
    columns: tuple[ColumnOfRow, ...] = ()
    aggregates: tuple[VariableAggregates, ...] = ()
    can_fail: bool = False
    time_type: pa.DataType | None = None

    @property
    def required_columns(self) -> frozenset[str]:
        """Columns of the rows that it reads."""
        from flinkcore._internal.arrow.column_ops import expression_columns

        read = {each.column for each in self.columns}
        for group in self.aggregates:
            for _, argument in group.arguments:
                read |= expression_columns(argument) or frozenset()
        return frozenset(read)

    def depends_on_row_alone(self, variable: str) -> bool:
        """Return whether, as condition of a variable, it reads nothing but the row that the variable would take."""
        own = (RowOf(variable, False), RowOf(ALL_ROWS, False))
        return not self.aggregates and not self.can_fail and all(each.row in own for each in self.columns)

    def __str__(self) -> str:
        rows = "; ".join(f"{each.name} = {each.column} of the {each.row}" for each in self.columns)
        groups = "; ".join(
            f"{', '.join(f'{name} = {result}' for name, result in group.results)} of {group.variable}"
            for group in self.aggregates
        )
        return "; ".join(filter(None, [str(self.expression), rows, groups]))


@dataclass(frozen=True, eq=False)
class Measure:
    """A column of the results.

    Attributes
    ----------
    name : str
    value : PatternExpression
    """

    name: str
    value: PatternExpression

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"
