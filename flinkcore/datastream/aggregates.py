"""Aggregates over the rows of a window, by column name; as in SQL, nulls do not count as values."""

from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Final, NoReturn

from flinkcore._internal.python.missing_features import missing_features, refuse_aggregate
from flinkcore.errors import ConfigurationError

FUNCTIONS: Final = (
    "count",
    "sum",
    "min",
    "max",
    "bit_or",
    "bit_and",
    "mean",
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "first",
    "last",
    "min_by",
    "max_by",
    "count_distinct",
    "approx_count_distinct",
    "approx_percentile",
    "collect",
)

RETRACTABLE: Final = ("count", "sum", "mean", "min", "max", "count_distinct", "first", "last", "collect")
"""Functions that can subtract rows."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a window: a function over a column.

    Attributes
    ----------
    function : str
        One of :data:`FUNCTIONS`.
    column : str or None
        Column that is aggregated; None only for a count of rows.
    by : str or None
        Column that ``min_by`` and ``max_by`` compare.
    percentage : float or None
        Percentage of ``approx_percentile``, from 0 to 1.

    Raises
    ------
    ConfigurationError
        If there is no such function, a column is missing, superfluous or not a name, or the percentage is none.
    """

    function: str
    column: str | None = None
    by: str | None = None
    percentage: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            instead = missing_features().aggregates.get(self.function)
            raise ConfigurationError(
                f"no aggregate is named {self.function!r}; there is {', '.join(FUNCTIONS)}"
                if instead is None
                else f"no aggregate is named {self.function!r}. Take {instead}"
            )
        compares = self.function in ("min_by", "max_by")
        if self.by is not None and not compares:
            raise ConfigurationError(f"{self.function}() compares no column. Leave out by={self.by!r}")
        needed = [self.column] if self.column is not None or self.function != "count" else []
        for name in [*needed, self.by] if compares else needed:
            if not isinstance(name, str) or not name:
                raise ConfigurationError(
                    f"{self.function}() takes the name of a column, not {name!r}; compute an expression "
                    "first: with_columns(name=expression)"
                )
        if (self.function == "approx_percentile") != (self.percentage is not None):
            raise ConfigurationError(
                "approx_percentile() takes a percentage from 0 to 1, such as 0.99"
                if self.percentage is None
                else f"{self.function}() takes no percentage. Leave out {self.percentage!r}"
            )
        if self.percentage is not None and not (
            isinstance(self.percentage, Real | Decimal) and 0 <= self.percentage <= 1
        ):
            raise ConfigurationError(
                f"approx_percentile() takes a percentage from 0 to 1, such as 0.99, not {self.percentage!r}"
            )

    @property
    def spec(self) -> tuple[str, str | None, str | None, float | None]:
        """Function, column, `by` and percentage, as native accumulators take them."""
        percentage = None if self.percentage is None else float(self.percentage)
        return self.function, self.column, self.by, percentage

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns that this aggregate reads."""
        return frozenset(name for name in (self.column, self.by) if name is not None)

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by is not None else ""
        percentage = f", {self.percentage}" if self.percentage is not None else ""
        return f"{self.function}({self.column or ''}{by}{percentage})"


def count(column: str | None = None) -> Aggregate:
    """Return the number of rows (int64), or of rows where the column is not null."""
    return Aggregate("count", column)


def sum_(column: str) -> Aggregate:
    """Return the sum of a numeric column; null if there is no value.

    Sums of integers have 64 bits and wrap around, as in Java; cast the column to float64 if they may overflow. Sums of
    decimal128(p, s) are exact, of the type decimal128(min(p + 10, 38), s) as in Spark; one with more digits is a
    :class:`~flinkcore.errors.DataError` that names the column and the window, as in Spark's ANSI mode. Only the result
    must fit, not what is on the way to it.
    """
    return Aggregate("sum", column)


def min_(column: str) -> Aggregate:
    """Return the smallest value of a column; null if there is no value."""
    return Aggregate("min", column)


def max_(column: str) -> Aggregate:
    """Return the largest value of a column; null if there is no value."""
    return Aggregate("max", column)


def bit_or(column: str) -> Aggregate:
    """Return the bits that any value of an integer or bool column has, such as flags; null if there is no value."""
    return Aggregate("bit_or", column)


def bit_and(column: str) -> Aggregate:
    """Return the bits that all values of an integer or bool column have; null if there is no value."""
    return Aggregate("bit_and", column)


def mean(column: str) -> Aggregate:
    """Return the mean of a numeric column, as Spark's ``avg``; null if there is no value.

    It is of float64 (Flink SQL's ``AVG`` of integers is an integer). That of decimal128(p, s) is
    decimal128(min(p + 4, 38), min(s + 4, 38)) as in Spark: the exact mean, rounded half up. A mean with more digits is
    an error, as in `sum_`.
    """
    return Aggregate("mean", column)


def stddev(column: str) -> Aggregate:
    """Return the standard deviation of a sample: `stddev_samp`, as in Spark."""
    return Aggregate("stddev", column)


def stddev_samp(column: str) -> Aggregate:
    """Return the standard deviation of a numeric column as a sample (float64); null if there are less than two values.

    Values are cast to float64 and taken in one by one in their order, by Welford's method: the results have the same
    bits at any parallelism and batch size. A NaN or an infinite value makes it NaN.
    """
    return Aggregate("stddev_samp", column)


def stddev_pop(column: str) -> Aggregate:
    """Return the standard deviation of a numeric column as a whole (float64); null if there is no value.

    It is computed as `stddev_samp` is.
    """
    return Aggregate("stddev_pop", column)


def variance(column: str) -> Aggregate:
    """Return the variance of a sample: `var_samp`, as in Spark."""
    return Aggregate("variance", column)


def var_samp(column: str) -> Aggregate:
    """Return the variance of a numeric column as a sample (float64); null if there are less than two values.

    It is computed as `stddev_samp` is.
    """
    return Aggregate("var_samp", column)


def var_pop(column: str) -> Aggregate:
    """Return the variance of a numeric column as a whole (float64); null if there is no value.

    It is computed as `stddev_samp` is.
    """
    return Aggregate("var_pop", column)


def first(column: str) -> Aggregate:
    """Return the column's value in the first element to arrive; of any type, also structs, lists and maps."""
    return Aggregate("first", column)


def last(column: str) -> Aggregate:
    """Return the column's value in the last element to arrive; of any type, also structs, lists and maps."""
    return Aggregate("last", column)


def min_by(column: str, by: str) -> Aggregate:
    """Return the column's value in the element where ``by`` is smallest; the first to arrive wins a tie.

    The value may be of any type; ``by`` compares any type except structs, lists and maps.
    """
    return Aggregate("min_by", column, by)


def max_by(column: str, by: str) -> Aggregate:
    """Return the column's value in the element where ``by`` is largest; the first to arrive wins a tie.

    The value may be of any type; ``by`` compares any type except structs, lists and maps.
    """
    return Aggregate("max_by", column, by)


def count_distinct(column: str) -> Aggregate:
    """Return the exact number of different values of a column (int64)."""
    return Aggregate("count_distinct", column)


def approx_count_distinct(column: str) -> Aggregate:
    """Return the approximate number of different values of a column (int64).

    Up to 512 it counts them, then it is a HyperLogLog of 4 KiB per key and window, with a standard error of 1.6 %. The
    result depends on the set of values alone: it is the same in whatever order they come, and however windows merge.
    """
    return Aggregate("approx_count_distinct", column)


def approx_percentile(column: str, percentage: float) -> Aggregate:
    """Return approximately a percentile of a numeric column (float64); null without values.

    Values are cast to float64. With up to 1,024 different values the result is exact, as SQL's `percentile_disc`: the
    least value at or below which at least the given share of the values lies. With more, the result is at most 0.4 %
    nearer to zero, and takes 4 KiB per key, window and power of two that values reach. The least and the greatest value
    are always exact. The result does not depend on the order of the values, nor on how windows merge. NaN counts as the
    greatest value.

    Parameters
    ----------
    column : str
        Column of integers, floats, bools or decimal128.
    percentage : float
        From 0, which gives the least value, to 1, which gives the greatest; 0.5 gives the median.
    """
    return Aggregate("approx_percentile", column, percentage=percentage)


def collect(column: str) -> Aggregate:
    """Return the column's values in order of arrival, as a list; they may be of any type."""
    return Aggregate("collect", column)


def __getattr__(name: str) -> NoReturn:
    refuse_aggregate(__name__, name)


__all__ = [
    "Aggregate",
    "approx_count_distinct",
    "approx_percentile",
    "bit_and",
    "bit_or",
    "collect",
    "count",
    "count_distinct",
    "first",
    "last",
    "max_",
    "max_by",
    "mean",
    "min_",
    "min_by",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum_",
    "var_pop",
    "var_samp",
    "variance",
]
