"""Arithmetic: + - * / MOD, signs and the functions of ``java.lang.Math``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.sql.expressions.decimals import (
    as_decimals,
    combined,
    fit_one,
    quotient,
    remainder,
)
from flinkcore.sql.expressions.evaluation import (
    Evaluation,
    by_row,
    column,
    function,
    integer_of,
    integers,
    numbers,
    valid,
)
from flinkcore.sql.expressions.numeric_casts import cast_number
from flinkcore.sql.expressions.time_arithmetic import minus_times, plus_interval
from flinkcore.sql.plan.rex import RexCall
from flinkcore.sql.types.logical_types import INTEGERS, INTERVALS, NUMERIC, LogicalType, Root

_DOUBLE: Final = LogicalType(Root.DOUBLE)
_KERNELS: Final = {"+": "add", "-": "subtract", "*": "multiply"}
_UFUNCS: Final[dict[str, Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


def _roots(call: RexCall) -> set[Root]:
    return {operand.type.root for operand in call.operands}


def _unless_times(call: RexCall) -> str | None:
    roots = _roots(call)
    if roots <= NUMERIC or call.name in ("+", "-"):
        return None
    if call.name in ("*", "/", "/INT") and call.type.root in INTERVALS and roots & set(INTEGERS):
        return None
    return f"{call.name} of {' and '.join(str(operand.type) for operand in call.operands)} is not supported"


@function("+", "-", "*", check=_unless_times)
def plus_minus_times(rows: Evaluation, call: RexCall) -> pa.Array:
    if call.name == "-" and len(call.operands) == 1:
        return negative(rows, call)
    roots = _roots(call)
    if not roots <= NUMERIC and call.type.root not in INTERVALS:
        return (
            minus_times(rows, call)
            if call.name == "-" and not roots & INTERVALS
            else plus_interval(rows, call)
        )
    if call.name == "-" and call.type.root in INTERVALS and not roots & INTERVALS:
        return minus_times(rows, call)
    if call.type.root is Root.DECIMAL:
        left, right = rows.brief(*call.operands)
        return combined(_KERNELS[call.name], left, right, call.type)
    left, right = map(rows, call.operands)
    if call.type.root not in INTERVALS:
        left, right = _promoted(call, left, right)
    with np.errstate(all="ignore"):
        return column(_UFUNCS[call.name](numbers(left), numbers(right)), valid(left, right), call.type.arrow)


def _promoted(call: RexCall, *operands: pa.Array) -> list[pa.Array]:
    return [
        cast_number(array, operand.type, call.type)
        for array, operand in zip(operands, call.operands, strict=True)
    ]


@function("/", "/INT", check=_unless_times)
def divide(rows: Evaluation, call: RexCall) -> pa.Array:
    left, right = map(rows, call.operands)
    if call.type.root is Root.DECIMAL:
        return by_row(
            rows,
            call,
            lambda a, b: fit_one(quotient(a, b), call.type),
            as_decimals(left),
            as_decimals(right),
            fails=True,
        )
    if call.type.root not in INTERVALS:
        left, right = _promoted(call, left, right)
    is_valid = valid(left, right)
    dividend, divisor = numbers(left), numbers(right)
    with np.errstate(all="ignore"):
        if call.type.root in (Root.DOUBLE, Root.FLOAT):
            return column(dividend / divisor, is_valid, call.type.arrow)
        rows.fail_where(is_valid & (divisor == 0), "/ by zero")
        return column(_truncated(dividend, np.where(divisor == 0, 1, divisor)), is_valid, call.type.arrow)


def _truncated(dividend: npt.NDArray[Any], divisor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    floor = dividend // divisor
    inexact = floor * divisor != dividend
    quotients: npt.NDArray[Any] = floor + (inexact & ((dividend < 0) != (divisor < 0)))
    return quotients


@function("MOD", "%")
def mod(rows: Evaluation, call: RexCall) -> pa.Array:
    left, right = map(rows, call.operands)
    if call.type.root is Root.DECIMAL or Root.DECIMAL in _roots(call):
        kind = call.type

        def of_row(a: Any, b: Any) -> Any:
            rest = remainder(a, b)
            return fit_one(rest, kind) if kind.root is Root.DECIMAL else int(rest)

        return by_row(rows, call, of_row, as_decimals(left), as_decimals(right), fails=True)
    is_valid = valid(left, right)
    dividend, divisor = numbers(left), numbers(right)
    constant = integer_of(call.operands[1])
    if constant and constant > -(2**63) and pa.types.is_integer(left.type):
        return column(_remainder_by(integers(left), constant), is_valid, call.type.arrow)
    with np.errstate(all="ignore"):
        if np.issubdtype(np.result_type(dividend, divisor), np.integer):
            rows.fail_where(is_valid & (divisor == 0), "/ by zero")
            divisor = np.where(divisor == 0, 1, divisor)
        rest = pa.array(np.fmod(dividend, divisor), mask=None if is_valid.all() else ~is_valid)
    return rest.cast(call.type.arrow)


def _remainder_by(dividend: npt.NDArray[np.int64], divisor: int) -> npt.NDArray[np.int64]:
    """Return remainders with the sign of the dividend; NumPy's division by a number is far quicker than fmod."""
    size = abs(divisor)
    rest: npt.NDArray[np.int64] = dividend - dividend // size * size
    is_below = dividend < 0
    if is_below.any():
        rest -= size * (is_below & (rest != 0))
    return rest


@function("MINUS", "NEGATIVE")
def negative(rows: Evaluation, call: RexCall) -> pa.Array:
    array = rows(call.operands[0])
    if call.type.root is Root.DECIMAL:
        import pyarrow.compute as pc

        return pc.negate(array)
    with np.errstate(all="ignore"):
        return column(-numbers(array), valid(array), call.type.arrow)


@function("ABS")
def absolute(rows: Evaluation, call: RexCall) -> pa.Array:
    array = rows(call.operands[0])
    if call.type.root is Root.DECIMAL:
        import pyarrow.compute as pc

        return pc.abs(array)
    with np.errstate(all="ignore"):
        return column(np.abs(numbers(array)), valid(array), call.type.arrow)


def _signed(call: RexCall) -> str | None:
    if call.operands[0].type.root in (Root.TINYINT, Root.SMALLINT):
        return f"SIGN of {call.operands[0].type} does not compile in Flink either: CAST it to INT"
    return None


@function("SIGN", check=_signed)
def sign(rows: Evaluation, call: RexCall) -> pa.Array:
    array = rows(call.operands[0])
    if call.type.root is Root.DECIMAL:
        return by_row(rows, call, lambda value: (value > 0) - (value < 0), array)
    values = numbers(array)
    signs = np.sign(values)
    if np.issubdtype(values.dtype, np.floating):
        signs = np.where(values == 0, values, signs)  # Java keeps -0.0
    return column(signs, valid(array), call.type.arrow)


@function(
    "REINTERPRET", check=lambda call: None if call.operands[0].type.root in INTERVALS else "REINTERPRET"
)
def reinterpret(rows: Evaluation, call: RexCall) -> pa.Array:
    array = rows(call.operands[0])
    return column(integers(array), valid(array), call.type.arrow)


# ---- java.lang.Math


def _doubles(rows: Evaluation, call: RexCall) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.bool_]]:
    arrays = [cast_number(rows(operand), operand.type, _DOUBLE) for operand in call.operands]
    return [numbers(array) for array in arrays], valid(*arrays)


def _math(name: str, of_values: Callable[..., npt.NDArray[Any]]) -> None:
    def evaluate(rows: Evaluation, call: RexCall) -> pa.Array:
        values, is_valid = _doubles(rows, call)
        with np.errstate(all="ignore"):
            return column(of_values(*values), is_valid, call.type.arrow)

    function(name)(evaluate)


def power(base: npt.NDArray[np.float64], exponent: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Java's ``Math.pow``: unlike C's, 1 to NaN is NaN, and so is 1 or -1 to an infinite power."""
    is_nan = np.isnan(exponent) | ((np.abs(base) == 1) & np.isinf(exponent))
    found: npt.NDArray[np.float64] = np.where(is_nan, math.nan, np.power(base, exponent))
    return found


def logarithm(*values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the natural logarithm, or that of the second value to the first as base."""
    if len(values) == 1:
        found: npt.NDArray[np.float64] = np.log(values[0])
    else:
        found = np.log(values[1]) / np.log(values[0])
    return found


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "EXP": np.exp,
    "LN": np.log,
    "LOG": logarithm,
    "LOG2": lambda x: np.log(x) / np.log(2.0),
    "LOG10": np.log10,
    "POWER": power,
    "SQRT": np.sqrt,
    "SIN": np.sin,
    "COS": np.cos,
    "TAN": np.tan,
    "COT": lambda x: 1.0 / np.tan(x),
    "ASIN": np.arcsin,
    "ACOS": np.arccos,
    "ATAN": np.arctan,
    "ATAN2": np.arctan2,
    "SINH": np.sinh,
    "COSH": np.cosh,
    "TANH": np.tanh,
    "DEGREES": np.degrees,
    "RADIANS": np.radians,
}
for _name, _of_values in _FUNCTIONS.items():
    _math(_name, _of_values)


@function("HASH_CODE")
def hash_code(rows: Evaluation, call: RexCall) -> pa.Array:
    """Return a number by which the planner splits aggregates of distinct values; results do not depend on which."""
    codes = [crc32(repr(value).encode()) - 2**31 for value in rows(call.operands[0]).to_pylist()]
    return pa.array(codes, pa.int32())


@function("PI", "E")
def constant(rows: Evaluation, call: RexCall) -> pa.Array:
    return pa.repeat(pa.scalar(math.pi if call.name == "PI" else math.e), rows.num_rows)


del _name, _of_values
