"""Expressions over columns: those of pyarrow, recognised without importing pyarrow for it, and the engine's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from flinkcore._internal.arrow.arrays import Int64s, RowNumbers

# pyarrow.compute.Expression, or a ColumnExpression; pyarrow's name is not imported, so that reading the API does not
# load pyarrow.
Expression: TypeAlias = Any


class RowFailure(Exception):
    """The failure of an expression on the value of one row; the engine makes it a DataError that shows the row.

    Attributes
    ----------
    row : int
        Number of the row in the batch.
    """

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


class ColumnExpression(ABC):
    """A column that is computed from others, row by row, by code of the engine.

    Steps over columns take it wherever they take an expression of pyarrow. It can be pickled, so that tasks of Spark
    evaluate it, too.
    """

    @property
    @abstractmethod
    def required_columns(self) -> frozenset[str]:
        """The names of the columns that it reads."""

    @property
    def copied_column(self) -> str | None:
        """The column whose values it has as they are, or None if it computes others."""
        return None

    @abstractmethod
    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """Return a value for each row of a batch, which has the required columns.

        Raises
        ------
        RowFailure
            If it fails on the value of a row: the first such row.
        """

    @abstractmethod
    def __str__(self) -> str:
        """Return its text, which another expression does not have."""

    def equals(self, other: object) -> bool:
        """Return whether both are the same expression."""
        return type(other) is type(self) and str(other) == str(self)


class SharingExpression(ColumnExpression):
    """An expression that shares what it computes of a batch with those that are evaluated for the batch after it."""

    @abstractmethod
    def keep(self, batch: pa.RecordBatch, kept: pa.RecordBatch, numbers: RowNumbers) -> None:
        """Take note that a filter by this expression leaves some rows of the batch that it was evaluated for last.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        kept : pyarrow.RecordBatch
            Its rows that are left, for which the next expressions are evaluated.
        numbers : ndarray of uint32
            Their numbers in the batch.
        """


class TimeRequirement(ColumnExpression):
    """True for every row; fails for one without a time, which a row needs at this step of a job.

    Without a watermark strategy, steps from this one on are not taken in the pass over the times.
    """


class RowExpansion(ABC):
    """Rows that are made of each row, by code of the engine: none, one or several; picklable."""

    @property
    @abstractmethod
    def required_columns(self) -> frozenset[str]:
        """The names of the columns that it reads."""

    @property
    @abstractmethod
    def fields(self) -> list[pa.Field]:
        """The columns that it adds."""

    def bound_to(self, schema: pa.Schema) -> RowExpansion:
        """Return this as it is for rows with these columns.

        Raises
        ------
        SchemaError
            If it cannot expand them.
        """
        return self

    @abstractmethod
    def expand(self, batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[Int64s, list[pa.Array]]]:
        """Yield the rows that are made of those of a batch, which has the required columns, in parts.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        most_bytes : int
            About so many bytes the added columns of a part take at most, if they do not lie in the batch.

        Yields
        ------
        (int64 array (n,), list of pyarrow.Array of n values)
            The number of the row of the batch that each is made of, ascending over all parts, and the added columns.
        """

    @abstractmethod
    def __str__(self) -> str:
        """Return its text, which another expansion does not have."""


def is_expression(value: object) -> bool:
    """Return True exactly if the value is a ``pyarrow.compute.Expression`` or a `ColumnExpression`."""
    return isinstance(value, ColumnExpression) or is_arrow_expression(value)


def is_arrow_expression(value: object) -> bool:
    """Return True exactly if the value is a ``pyarrow.compute.Expression``."""
    if value is None or isinstance(value, str | int | float | ColumnExpression):
        return False
    import pyarrow.compute

    return isinstance(value, pyarrow.compute.Expression)


def same_expression(left: object, right: object) -> bool:
    """Return True exactly if both are equal; ``==`` between expressions builds a third one."""
    if is_arrow_expression(left) and is_arrow_expression(right):
        return bool(left.equals(right))  # type: ignore[attr-defined]
    if isinstance(left, ColumnExpression):
        return left.equals(right)
    return not is_expression(left) and not is_expression(right) and left == right
