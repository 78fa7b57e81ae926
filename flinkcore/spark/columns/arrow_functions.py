"""Functions of Arrow as those of Spark, where both give the same value for every row.

It is the table of `plan_functions`, read in the other direction: a function is here only if it agrees for all values of
its types. Functions whose results depend on tables of Unicode, and regular expressions, are left to Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from flinkcore.spark.columns.function_calls import (
    FunctionCall,
    Operands,
    SparkFunction,
    has_options,
    made,
)
from flinkcore.spark.columns.number_functions import arithmetic, as_float, divide, is_nan
from flinkcore.spark.columns.spark_values import SparkValue, constant_value, spark_type
from flinkcore.spark.columns.text_functions import (
    count_substring,
    join_texts,
    length,
    replace_substring,
    slice_text,
    text_search,
    trim,
)
from flinkcore.spark.columns.time_functions import strftime, time_part

_MOST_VALUES: Final = 200
"""Longer lists of values are left to Arrow."""


def _comparison(compare: Callable[[Column, Column], Column], of_nan: str) -> SparkFunction:
    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        left, right = _with_whole_constants_as_floats(operands)
        if pa.types.is_null(left.type) or pa.types.is_null(right.type) or not _can_compare(left, right):
            return None
        compared = compare(left.column, right.column)
        if pa.types.is_floating(left.type):
            # To Spark, NaN is equal to itself and greater than all other numbers; to Arrow no comparison is true.
            constant = [each.constant for each in (left, right) if each.constant is not None]
            if len(constant) != 1 or not constant[0].is_valid or constant[0].as_py() != constant[0].as_py():
                return None
            variable = left if left.constant is None else right
            if of_nan == ("left" if variable is left else "right"):
                compared = ~F.isnan(variable.column) & compared
        return made(compared, pa.bool_(), left, right)

    return of


def _with_whole_constants_as_floats(operands: Operands) -> Operands:
    if not any(pa.types.is_float64(each.type) for each in operands):
        return operands
    return [
        as_float(each) if each.constant is not None and each.type == pa.int64() else each for each in operands
    ]


def _can_compare(left: SparkValue, right: SparkValue) -> bool:
    kind, types = left.plain_type, pa.types
    if types.is_signed_integer(kind) and types.is_signed_integer(right.type):
        return True
    if kind != right.plain_type:
        return False
    return bool(
        types.is_floating(kind)
        or types.is_string(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
        or types.is_boolean(kind)
    )


def _logical(of_columns: Callable[[Column, Column], Column]) -> SparkFunction:
    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        left, right = operands
        if left.type != pa.bool_() or right.type != pa.bool_() or not right.fails_no_sooner(left):
            return None
        return made(of_columns(left.column, right.column), pa.bool_(), left)

    return of


def _invert(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (operand,) = operands
    return made(~operand.column, pa.bool_(), operand) if operand.type == pa.bool_() else None


def _nullness(of_column: Callable[[Column], Column]) -> SparkFunction:
    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        (operand,) = operands
        # Spark does not compute an operand of which it knows whether it is null, and so would not raise its error.
        if operand.failing or not has_options(call, nan_is_null=False):
            return None
        return made(of_column(operand.column), pa.bool_(), operand)

    return of


def _is_in(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (operand,) = operands
    values = call.options["value_set"]
    if pa.types.is_floating(operand.type) or not 0 < len(values) <= _MOST_VALUES:
        return None
    constants = [constant_value(value) for value in values]
    if any(
        each is None or not values[at].is_valid or not _can_compare(operand, each)
        for at, each in enumerate(constants)
    ):
        return None
    found = operand.column.isin(*(each.column for each in constants if each is not None))
    return made(F.coalesce(found, F.lit(False)), pa.bool_(), operand)


def _if_else(call: FunctionCall, operands: Operands) -> SparkValue | None:
    condition, then, otherwise = operands
    arrow_type = _one_type([then, otherwise])
    if condition.type != pa.bool_() or arrow_type is None:
        return None
    if not all(each.fails_no_sooner(condition) for each in (then, otherwise)):
        return None
    chosen = F.when(condition.column, then.column).when(~condition.column, otherwise.column)
    return made(chosen, arrow_type, condition)


def _coalesce(call: FunctionCall, operands: Operands) -> SparkValue | None:
    arrow_type = _one_type(operands)
    if arrow_type is None or not all(each.fails_no_sooner(operands[0]) for each in operands):
        return None
    return made(F.coalesce(*(operand.column for operand in operands)), arrow_type, operands[0])


def _one_type(values: Operands) -> pa.DataType | None:
    """Return the type of values, some of which may be an untyped null; None if there are several."""
    found = {value.type for value in values if not pa.types.is_null(value.type)}
    return found.pop() if len(found) == 1 else None


def _cast(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (operand,) = operands
    source, target, column = operand.type, call.options["to_type"], operand.column
    types = pa.types
    if source == target:
        return operand
    if types.is_boolean(source) and (types.is_signed_integer(target) or types.is_string(target)):
        return made(column.cast(spark_type(target)), target, operand)
    if types.is_signed_integer(source):
        if types.is_signed_integer(target) and target.bit_width >= source.bit_width:
            return made(column.cast(spark_type(target)), target, operand)
        if target == pa.float64():
            if source != pa.int64():
                return made(column.cast("double"), target, operand)
            if has_options(call, allow_float_truncate=False):
                return as_float(operand)
        if types.is_string(target):
            return made(column.cast("string"), target, operand)
    if source == pa.float32() and target == pa.float64():
        return made(column.cast("double"), target, operand)
    if types.is_timestamp(source) and source.tz is not None and target == pa.int64():
        whole = {"s": F.unix_seconds, "ms": F.unix_millis, "us": F.unix_micros}.get(source.unit)
        return None if whole is None else made(whole(column), target, operand)
    return None


ARROW_FUNCTIONS: Final[Mapping[str, SparkFunction]] = {
    "add": arithmetic("add", lambda a, b: a + b, is_checked=False),
    "add_checked": arithmetic("add", lambda a, b: a + b, is_checked=True),
    "and_kleene": _logical(lambda a, b: a & b),
    "binary_join_element_wise": join_texts,
    "cast": _cast,
    "coalesce": _coalesce,
    "count_substring": count_substring,
    "day": time_part(F.day),
    "divide": divide,
    "divide_checked": divide,
    "ends_with": text_search(lambda text, pattern: text.endswith(pattern)),
    "equal": _comparison(lambda a, b: a == b, of_nan="neither"),
    "greater": _comparison(lambda a, b: a > b, of_nan="left"),
    "greater_equal": _comparison(lambda a, b: a >= b, of_nan="left"),
    "hour": time_part(F.hour),
    "if_else": _if_else,
    "invert": _invert,
    "is_in": _is_in,
    "is_nan": is_nan,
    "is_null": _nullness(Column.isNull),
    "is_valid": _nullness(Column.isNotNull),
    "less": _comparison(lambda a, b: a < b, of_nan="right"),
    "less_equal": _comparison(lambda a, b: a <= b, of_nan="right"),
    "match_substring": text_search(lambda text, pattern: text.contains(pattern)),
    "minute": time_part(F.minute),
    "month": time_part(F.month),
    "multiply": arithmetic("multiply", lambda a, b: a * b, is_checked=False),
    "multiply_checked": arithmetic("multiply", lambda a, b: a * b, is_checked=True),
    "not_equal": _comparison(lambda a, b: a != b, of_nan="neither"),
    "or_kleene": _logical(lambda a, b: a | b),
    "replace_substring": replace_substring,
    "strftime": strftime,
    "starts_with": text_search(lambda text, pattern: text.startswith(pattern)),
    "subtract": arithmetic("subtract", lambda a, b: a - b, is_checked=False),
    "subtract_checked": arithmetic("subtract", lambda a, b: a - b, is_checked=True),
    "utf8_length": length,
    "utf8_slice_codeunits": slice_text,
    "utf8_trim": trim,
    "year": time_part(F.year),
}
"""By the names of Arrow's functions."""
