"""Aggregates over entries that keep all their elements: the model for the native accumulators."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa

Spec = tuple[str, str | None, str | None] | tuple[str, str | None, str | None, float | None]
Row = dict[str, Any]


def order(value: Any) -> Any:
    """Sorts as Java's compare does: NaN above all numbers, -0.0 below 0.0; text by its UTF-8 bytes."""
    if isinstance(value, float):
        return (1, 0.0, 0.0) if math.isnan(value) else (0, value, math.copysign(1.0, value))
    return value.encode() if isinstance(value, str) else value


def of_decimals(function: str, values: Sequence[Decimal], kind: pa.DataType) -> Decimal:
    """The exact sum, or their mean with four more decimal places, rounded half up."""
    with localcontext() as context:
        context.prec = 200
        total = sum(values, Decimal(0))
        if function == "sum":
            return total
        places = min(kind.scale + 4, 38)
        return (total / len(values)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


SPREADS = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")


def is_spread(function: str, found: float | None, values: Sequence[Any]) -> bool:
    """Whether a result is the standard deviation or variance of the values, but for what rounding on the way leaves."""
    expected = spread(function, values)
    if expected is None or found is None or math.isnan(expected) or math.isnan(found):
        return repr(found) == repr(expected)
    if function.startswith("stddev"):
        found, expected = found * found, expected * expected
    largest = max(abs(float(value)) for value in values)
    return abs(found - expected) <= 1e-11 * expected + len(values) * 1e-15 * largest * largest


def spread(function: str, values: Sequence[Any]) -> float | None:
    """The variance, or its root, from its definition, with exact fractions."""
    floats = [float(value) for value in values]
    freedom = len(floats) - (not function.endswith("_pop"))
    if freedom <= 0:
        return None
    if not all(map(math.isfinite, floats)):
        return math.nan
    mean = sum(map(Fraction, floats)) / len(floats)
    variance = sum((Fraction(value) - mean) ** 2 for value in floats) / freedom
    return math.sqrt(variance) if function.startswith("stddev") else float(variance)


def add_up(values: Sequence[Any], unsigned: bool) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    if isinstance(total, int):
        return int(total) % 2**64 if unsigned else (int(total) + 2**63) % 2**64 - 2**63
    return total


def result_of(rows: Sequence[Row], spec: Spec, schema: pa.Schema) -> Any:
    """The aggregate over the rows, from its definition."""
    function, column, by = spec[:3]
    if column is None:
        return len(rows)
    elements = [row[column] for row in rows]
    values = [value for value in elements if value is not None]
    if function == "count":
        return len(values)
    if function in ("count_distinct", "approx_count_distinct"):  # of few values they are the same
        return len({order(value) for value in values})
    if function == "collect":
        return elements
    if function in ("first", "last"):
        return elements[0 if function == "first" else -1] if elements else None
    if by is not None:
        rows = [row for row in rows if row[by] is not None]
        best = {"min_by": min, "max_by": max}[function]
        return best(rows, key=lambda row: order(row[by]))[column] if rows else None
    if not values:
        return None
    if len(spec) == 4 and spec[3] is not None:
        floats = sorted((float(value) for value in values), key=order)
        return floats[max(0, math.ceil(Fraction(str(spec[3])) * len(floats)) - 1)]
    kind = schema.field(column).type
    if function in ("sum", "mean") and pa.types.is_decimal(kind):
        return of_decimals(function, values, kind)
    if function == "sum":
        return add_up(values, kind == pa.uint64())
    if function in ("bit_or", "bit_and"):
        return reduce({"bit_or": or_, "bit_and": and_}[function], values)
    if function in SPREADS:
        return spread(function, values)
    if function == "mean":
        return float(add_up([float(value) for value in values], False)) / len(values)
    return {"min": min, "max": max}[function](values, key=order)


@dataclass
class AggregatesModel:
    specs: list[Spec]
    schema: pa.Schema
    rows: list[list[Row]] = field(default_factory=list)

    def reserve(self, n_entries: int) -> None:
        self.rows += [[] for _ in range(n_entries - len(self.rows))]

    def update(self, entry: int, row: Row) -> None:
        self.rows[entry].append(row)

    def merge(self, into: int, other: int) -> None:
        self.rows[into] += self.rows[other]
        self.rows[other] = []

    def clear(self, entry: int) -> None:
        self.rows[entry] = []

    def results(self, entry: int) -> list[Any]:
        """One per spec; of standard deviations and variances the values that they are of, for `is_spread`."""
        rows = self.rows[entry]
        return [
            [row[spec[1]] for row in rows if row[spec[1]] is not None]
            if spec[0] in SPREADS
            else result_of(rows, spec, self.schema)
            for spec in self.specs
        ]
