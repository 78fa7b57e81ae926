"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from flinkcore.spark.columns.function_calls import (
    FunctionCall,
    Operands,
    SparkFunction,
    failing_of,
    made,
)
from flinkcore.spark.columns.spark_values import SparkValue, raised_if, spark_type

_EXACT_FLOATS: Final = 1 << 53
"""Arrow refuses to make a float of a whole number beyond."""


def arithmetic(name: str, of_columns: Callable[[Column, Column], Column], is_checked: bool) -> SparkFunction:
    """Return the function that adds, subtracts or multiplies; if it is checked, overflow is an error."""

    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        same = _of_one_number_type(operands)
        if same is None:
            return None
        left, right = same
        if pa.types.is_floating(left.type):
            return made(of_columns(left.column, right.column), left.type, left, right)
        if not is_checked:
            if call.settings.is_ansi:
                return None
            return made(of_columns(left.column, right.column), left.type, left, right)
        tried = getattr(F, f"try_{name}")(left.column, right.column)
        has_values = left.column.isNotNull() & right.column.isNotNull()
        overflows = raised_if(has_values, f"overflow in {call.text}", F.lit(None).cast(spark_type(left.type)))
        return SparkValue(
            F.coalesce(tried, overflows), left.type, failing_of(left, right) | {f"overflow of {call.text}"}
        )

    return of


def _of_one_number_type(operands: Operands) -> tuple[SparkValue, SparkValue] | None:
    """Return both operands of arithmetic in the type in which Arrow computes, or None if that is not certain."""
    left, right = operands
    if not all(_is_number(each.type) for each in operands):
        return None
    if left.type == right.type:
        return left, right
    if {left.type, right.type} != {pa.int64(), pa.float64()} or any(map(_is_short_float, operands)):
        return None
    first, second = (as_float(each) for each in operands)
    return first, second


def _is_short_float(value: SparkValue) -> bool:
    """Return whether a constant has the same value with 32 bits: with a whole number, Arrow computes with these."""
    if value.constant is None or not pa.types.is_floating(value.type) or not value.constant.is_valid:
        return value.constant is not None and not value.constant.is_valid
    number = value.constant.as_py()
    with np.errstate(over="ignore"):
        return bool(number != number or number == float(np.float32(number)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind))


def as_float(value: SparkValue) -> SparkValue:
    """Return a number as a double, as Arrow makes it: whole numbers that no double has are an error."""
    if value.type == pa.float64():
        return value
    number = None if value.constant is None else value.constant.as_py()
    if number is not None and abs(number) <= _EXACT_FLOATS:
        exact = pa.scalar(float(number))
        return SparkValue(F.lit(float(number)), pa.float64(), constant=exact)
    column = value.column
    refused = (column > _EXACT_FLOATS) | (column < -_EXACT_FLOATS)
    why = "a whole number beyond 2**53 does not fit into a double"
    checked = raised_if(refused, why, column.cast("double"))
    return SparkValue(checked, pa.float64(), value.failing | {f"double of {column}"})


def divide(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Divide by a constant."""
    left, right = operands
    divisor = None if right.constant is None else right.constant.as_py()
    if not divisor:
        return None  # zero is an error to one of both, and infinity to the other
    if pa.types.is_integer(left.type) and left.type == right.type and divisor > 0:
        quotient = F.call_function("div", left.column, right.column)
        return made(quotient.cast(spark_type(left.type)), left.type, left, right)
    same = _of_one_number_type(operands)
    if same is None or same[0].type != pa.float64():
        return None
    return made(same[0].column / same[1].column, pa.float64(), *same)


def remainder(left: SparkValue, divisor: SparkValue) -> SparkValue | None:
    """Return the remainder of whole numbers, for which Arrow has no function: x - x / divisor * divisor."""
    constant = divisor.constant
    if constant is None or not pa.types.is_integer(left.type) or left.type != divisor.type:
        return None
    if not constant.is_valid or constant.as_py() <= 0:
        return None
    return made(left.column % divisor.column, left.type, left)


def is_nan(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Return whether a float is NaN; null where it is null."""
    (operand,) = operands
    if not pa.types.is_floating(operand.type):
        return None
    column = operand.column
    return made(F.when(column.isNotNull(), F.isnan(column)), pa.bool_(), operand)
