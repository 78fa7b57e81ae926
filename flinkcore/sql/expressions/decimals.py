"""Decimals as Flink's ``DecimalDataUtils`` computes them: rounded half up to the scale, null beyond the precision."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import DataError
from flinkcore.sql.types.logical_types import LogicalType

Int64s = npt.NDArray[np.int64]

MOST_DIGITS: Final = 76
"""Digits of Arrow's widest decimals."""

_NARROW_DIGITS: Final = 38

EXACT: Final = Context(prec=400, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)
"""Holds any result of operations on two decimals of 38 digits, and the decimals of doubles."""

MATH_CONTEXT: Final = Context(prec=38, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)
"""Java's ``new MathContext(38, HALF_UP)``, in which Flink divides."""


# ---- decimals whose digits fit into 64 bits


def narrow(array: pa.Array, scale: int) -> Int64s | None:
    """Return the digits of integers or decimals at a scale as 64-bit integers, or None if some do not fit."""
    if pa.types.is_integer(array.type):
        whole = array.cast(pa.int64())
        values, given = (whole.fill_null(0) if array.null_count else whole).to_numpy(zero_copy_only=False), 0
    elif pa.types.is_decimal128(array.type):
        words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2) if len(array) else np.zeros((0, 2))
        words = words[array.offset : array.offset + len(array)].astype(np.int64, copy=False)
        values, given = words[:, 0], array.type.scale
        if array.null_count:
            is_null = array.is_null().to_numpy(zero_copy_only=False)
            values = np.where(is_null, 0, values)
            fits = (words[:, 1] == values >> 63) | is_null
        else:
            fits = words[:, 1] == values >> 63
        if not fits.all():
            return None
    else:
        return None
    if scale < given:
        return None
    factor = 10 ** (scale - given)
    if factor > 1:
        if max(factor, largest(values) * factor) > MOST_NARROW:
            return None
        values = values * factor
    digits: Int64s = values
    return digits


def largest(values: Int64s) -> int:
    """Return the largest absolute value."""
    return max(int(values.max()), -int(values.min())) if len(values) else 0


MOST_NARROW: Final = 2**63 - 1


def fit(array: pa.Array, kind: LogicalType) -> pa.Array:
    """Return decimals of a precision and scale: rounded half up, null where a value has too many digits."""
    given, wanted = array.type, kind.arrow
    if given.equals(wanted):
        return array
    if given.scale == kind.scale and pa.types.is_decimal128(given):
        values = narrow(array, kind.scale)
        if values is not None and largest(values) < 10**kind.precision:  # the digits stay as they are
            return pa.Array.from_buffers(wanted, len(array), array.buffers(), offset=array.offset)
    grows = given.scale <= kind.scale
    if grows and given.precision - given.scale <= kind.precision - kind.scale:
        return array.cast(wanted)
    if pa.types.is_decimal128(given) and given.precision < _NARROW_DIGITS:
        make, digits = pa.decimal128, _NARROW_DIGITS
    else:
        make, digits = pa.decimal256, MOST_DIGITS
    wide = array.cast(make(digits, given.scale))
    if not grows:
        wide = pc.round(wide, ndigits=kind.scale, round_mode="half_towards_infinity")
    whole = kind.precision - kind.scale
    if whole + given.scale < digits:  # otherwise there are not enough digits to go beyond
        limit = pa.scalar(Decimal(10) ** whole, wide.type)
        fits = pc.less(pc.abs(wide), limit)
        if pc.all(fits, min_count=0).as_py() is False:
            wide = pc.if_else(fits, wide, pa.scalar(None, wide.type))
    return wide.cast(wanted)


def fit_one(value: Decimal, kind: LogicalType) -> Decimal | None:
    """Return a decimal of a precision and scale as `fit` does."""
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, EXACT)
    return rounded if rounded.copy_abs() < Decimal(10) ** (kind.precision - kind.scale) else None


def added(total: Decimal, value: Decimal, kind: LogicalType) -> Decimal:
    """Return the exact sum of two decimals; raise DataError if it does not fit into its type."""
    found = fit_one(EXACT.add(total, value), kind)
    if found is None:
        raise DataError(
            f"a sum of decimals does not fit into {kind}: CAST its argument to a decimal with fewer decimal places"
        )
    return found


def combined(kernel: str, left: pa.Array, right: pa.Array, kind: LogicalType) -> pa.Array:
    """Return the sum ("add"), difference ("subtract") or product ("multiply") of decimals or integers.

    One of both may have one value, which stands for all.
    """
    quick = _combined_narrow(kernel, left, right, kind)
    if quick is not None:
        return quick
    n_rows = max(len(left), len(right))
    left, right = (
        pa.repeat(each[0], n_rows) if len(each) < n_rows else each
        for each in (as_decimals(left), as_decimals(right))
    )
    digits = _digits(kernel, left.type, right.type)
    if digits > MOST_DIGITS:
        return _by_row(_EXACT_KERNELS[kernel], left, right, kind)
    make = pa.decimal128 if digits <= 38 else pa.decimal256
    wide = [column.cast(make(column.type.precision, column.type.scale)) for column in (left, right)]
    return fit(getattr(pc, kernel)(*wide), kind)


def _combined_narrow(kernel: str, left: pa.Array, right: pa.Array, kind: LogicalType) -> pa.Array | None:
    """Return what `combined` does by arithmetic of 64 bits, or None if some values need more or are rounded."""
    scales = [each.type.scale if pa.types.is_decimal(each.type) else 0 for each in (left, right)]
    if kind.scale != (sum(scales) if kernel == "multiply" else max(scales)):
        return None
    ours, theirs = (
        narrow(each, scale if kernel == "multiply" else kind.scale)
        for each, scale in zip((left, right), scales, strict=True)
    )
    if ours is None or theirs is None:
        return None
    most = (largest(ours), largest(theirs))
    if (most[0] * most[1] if kernel == "multiply" else sum(most)) > min(MOST_NARROW, 10**kind.precision - 1):
        return None
    is_null = None
    if left.null_count or right.null_count:
        is_null = np.logical_or(*(each.is_null().to_numpy(zero_copy_only=False) for each in (left, right)))
    return _of_digits(getattr(np, kernel)(ours, theirs), is_null, kind.arrow)


def _of_digits(values: Int64s, is_null: npt.NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
    """Return decimals whose digits fit into 64 bits."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    np.right_shift(values, 63, out=words[:, 1])
    validity = None if is_null is None else pa.array(~is_null).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(words)])


def _digits(kernel: str, left: pa.DataType, right: pa.DataType) -> int:
    if kernel == "multiply":
        return int(left.precision + right.precision + 1)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return int(whole + max(left.scale, right.scale) + 1)


_EXACT_KERNELS: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "add": EXACT.add,
    "subtract": EXACT.subtract,
    "multiply": EXACT.multiply,
}


def quotient(left: Decimal, right: Decimal) -> Decimal:
    """Return the quotient with 38 digits, as Flink divides before it rounds to the scale."""
    try:
        return MATH_CONTEXT.divide(left, right)
    except (DivisionByZero, InvalidOperation):
        raise ArithmeticError("Division by zero") from None


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """Return the remainder, which has the sign of the dividend."""
    if right == 0:
        raise ArithmeticError("Division by zero")
    return EXACT.remainder(left, right)


def _by_row(
    of_row: Callable[[Decimal, Decimal], Decimal], left: pa.Array, right: pa.Array, kind: LogicalType
) -> pa.Array:
    def value(a: Any, b: Any) -> Decimal | None:
        return None if a is None or b is None else fit_one(of_row(a, b), kind)

    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([value(a, b) for a, b in pairs], kind.arrow)


def as_decimals(array: pa.Array) -> pa.Array:
    """Return a column of integers as decimals that hold all of them; decimals as they are."""
    if not pa.types.is_integer(array.type):
        return array
    digits = {8: 3, 16: 5, 32: 10, 64: 19}[array.type.bit_width]
    return array.cast(pa.decimal128(digits, 0))
