"""Casts between numbers as Java's code does them: integers wrap, floats saturate, decimals that do not fit are null."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.sql.expressions.decimals import as_decimals, fit, fit_one
from flinkcore.sql.expressions.evaluation import column, numbers, valid
from flinkcore.sql.types.logical_types import FLOATS, INTEGERS, LogicalType, Root

_DTYPES = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def cast_number(array: pa.Array, given: LogicalType, wanted: LogicalType) -> pa.Array:
    """Return numbers of one type as those of another."""
    if array.type.equals(wanted.arrow):
        return array
    if wanted.root is Root.DECIMAL:
        return _decimals(array, given, wanted)
    is_valid = valid(array)
    if wanted.root in FLOATS:
        if given.root is Root.DECIMAL:
            floats = [None if value is None else float(value) for value in array.to_pylist()]
            return pa.array(floats, pa.float64()).cast(wanted.arrow)
        kind = np.float32 if wanted.root is Root.FLOAT else np.float64
        with np.errstate(over="ignore"):
            return column(numbers(array).astype(kind), is_valid, wanted.arrow)
    bits = INTEGERS[wanted.root]
    if given.root in FLOATS:
        return column(
            _wrapped(saturated(numbers(array), 64 if bits == 64 else 32), bits), is_valid, wanted.arrow
        )
    if given.root is Root.DECIMAL:
        return column(_wrapped(_low_words(array), bits), is_valid, wanted.arrow)
    return column(_wrapped(numbers(array), bits), is_valid, wanted.arrow)


def saturated(values: npt.NDArray[Any], bits: int) -> npt.NDArray[np.int64]:
    """Return floats as integers as Java's casts do: toward zero, at most the type's bounds, 0 of NaN."""
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    exact = values.astype(np.float64)
    is_low, is_high = exact <= lowest, exact >= highest
    inside = np.where(is_low | is_high | np.isnan(exact), 0.0, exact)
    found = inside.astype(np.int64)
    found[is_low] = lowest
    found[is_high] = highest
    return found


def wrapped_one(number: int, kind: LogicalType) -> int:
    """Return an integer as Java's arithmetic of its type wraps it around."""
    half = 1 << INTEGERS[kind.root] - 1
    return (number + half) % (2 * half) - half


def _wrapped(values: npt.NDArray[Any], bits: int) -> npt.NDArray[Any]:
    return values.astype(np.int64).astype(_DTYPES[bits])


def _low_words(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the lowest 64 bits of decimals, as ``BigDecimal.longValue`` does."""
    found = np.zeros(len(array), np.int64)
    for row, value in enumerate(array.to_pylist()):
        if value is not None:
            whole = int(value.to_integral_value(ROUND_DOWN))
            found[row] = (whole + 2**63) % 2**64 - 2**63
    return found


def _decimals(array: pa.Array, given: LogicalType, wanted: LogicalType) -> pa.Array:
    if given.root in INTEGERS:
        return fit(as_decimals(array), wanted)
    if given.root is Root.DECIMAL:
        return fit(array, wanted)
    # Flink takes the shortest text of the double; a float becomes a double first.
    return pa.array(
        [_of_double(value, wanted) for value in array.cast(pa.float64()).to_pylist()], wanted.arrow
    )


def _of_double(value: float | None, wanted: LogicalType) -> Decimal | None:
    if value is None or value - value != 0:
        return None
    return fit_one(Decimal(repr(value)), wanted)
