"""Functions of Arrow as those of Spark, where both give the same value for every row.

It is the table of `plan_functions`, read in the other direction: a function is here only if it agrees for all values of
its types. Functions whose results depend on tables of Unicode, and regular expressions, are left to Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from flinkcore.spark.columns.spark_values import SparkValue, constant_value, raised_if, spark_type

_EXACT_FLOATS: Final = 1 << 53
"""Arrow refuses to make a float of a whole number beyond."""

_MOST_VALUES: Final = 200
"""Longer lists of values are left to Arrow."""


@dataclass(frozen=True)
class SessionSettings:
    """Settings of the session on which values of Spark's functions depend.

    Attributes
    ----------
    is_ansi : bool
        Whether arithmetic that overflows is an error.
    is_utc : bool
        Whether the session's time zone is UTC.
    has_new_formats : bool
        Whether times are formatted in the proleptic Gregorian calendar.
    """

    is_ansi: bool
    is_utc: bool
    has_new_formats: bool

    @classmethod
    def of(cls, spark: Any) -> SessionSettings:
        """Return those of a session."""
        conf = spark.conf
        return cls(
            is_ansi=conf.get("spark.sql.ansi.enabled", "false") == "true",
            is_utc=conf.get("spark.sql.session.timeZone") in ("UTC", "Etc/UTC", "Z", "GMT", "+00:00"),
            has_new_formats=conf.get("spark.sql.legacy.timeParserPolicy", "EXCEPTION") != "LEGACY",
        )


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function of Arrow.

    Attributes
    ----------
    text : str
        The call, as messages show it.
    options : dict
        Options by their names; of a cast the type is under "to_type".
    settings : SessionSettings
    """

    text: str
    options: Mapping[str, Any]
    settings: SessionSettings


Operands = Sequence[SparkValue]
SparkFunction = Callable[[FunctionCall, Operands], SparkValue | None]
"""From a call and its operands to the value; None where Spark's may differ."""


def _failing(*operands: SparkValue) -> frozenset[str]:
    return frozenset[str]().union(*(operand.failing for operand in operands))


def _made(column: Column, arrow_type: pa.DataType, *operands: SparkValue) -> SparkValue:
    return SparkValue(column, arrow_type, _failing(*operands))


def _has_options(call: FunctionCall, **expected: Any) -> bool:
    return all(call.options.get(name, value) == value for name, value in expected.items())


# ---- numbers ----


def _arithmetic(name: str, of_columns: Callable[[Column, Column], Column], is_checked: bool) -> SparkFunction:
    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        same = _of_one_number_type(operands)
        if same is None:
            return None
        left, right = same
        if pa.types.is_floating(left.type):
            return _made(of_columns(left.column, right.column), left.type, left, right)
        if not is_checked:
            if call.settings.is_ansi:
                return None
            return _made(of_columns(left.column, right.column), left.type, left, right)
        tried = getattr(F, f"try_{name}")(left.column, right.column)
        has_values = left.column.isNotNull() & right.column.isNotNull()
        overflows = raised_if(has_values, f"overflow in {call.text}", F.lit(None).cast(spark_type(left.type)))
        return SparkValue(
            F.coalesce(tried, overflows), left.type, _failing(left, right) | {f"overflow of {call.text}"}
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
    first, second = (_as_float(each) for each in operands)
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


def _as_float(value: SparkValue) -> SparkValue:
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


def _divide(call: FunctionCall, operands: Operands) -> SparkValue | None:
    left, right = operands
    divisor = None if right.constant is None else right.constant.as_py()
    if not divisor:
        return None  # zero is an error to one of both, and infinity to the other
    if pa.types.is_integer(left.type) and left.type == right.type and divisor > 0:
        quotient = F.call_function("div", left.column, right.column) if _HAS_DIV else None
        return (
            None if quotient is None else _made(quotient.cast(spark_type(left.type)), left.type, left, right)
        )
    same = _of_one_number_type(operands)
    if same is None or same[0].type != pa.float64():
        return None
    return _made(same[0].column / same[1].column, pa.float64(), *same)


_HAS_DIV: Final = hasattr(F, "call_function")


def remainder(left: SparkValue, divisor: SparkValue) -> SparkValue | None:
    """Return the remainder of whole numbers, for which Arrow has no function: x - x / divisor * divisor."""
    constant = divisor.constant
    if constant is None or not pa.types.is_integer(left.type) or left.type != divisor.type:
        return None
    if not constant.is_valid or constant.as_py() <= 0:
        return None
    return _made(left.column % divisor.column, left.type, left)


def _is_nan(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (operand,) = operands
    if not pa.types.is_floating(operand.type):
        return None
    column = operand.column
    return _made(F.when(column.isNotNull(), F.isnan(column)), pa.bool_(), operand)


# ---- conditions ----


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
        return _made(compared, pa.bool_(), left, right)

    return of


def _with_whole_constants_as_floats(operands: Operands) -> Operands:
    if not any(pa.types.is_float64(each.type) for each in operands):
        return operands
    return [
        _as_float(each) if each.constant is not None and each.type == pa.int64() else each
        for each in operands
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
        return _made(of_columns(left.column, right.column), pa.bool_(), left)

    return of


def _invert(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (operand,) = operands
    return _made(~operand.column, pa.bool_(), operand) if operand.type == pa.bool_() else None


def _nullness(of_column: Callable[[Column], Column]) -> SparkFunction:
    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        (operand,) = operands
        # Spark does not compute an operand of which it knows whether it is null, and so would not raise its error.
        if operand.failing or not _has_options(call, nan_is_null=False):
            return None
        return _made(of_column(operand.column), pa.bool_(), operand)

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
    return _made(F.coalesce(found, F.lit(False)), pa.bool_(), operand)


def _if_else(call: FunctionCall, operands: Operands) -> SparkValue | None:
    condition, then, otherwise = operands
    arrow_type = _one_type([then, otherwise])
    if condition.type != pa.bool_() or arrow_type is None:
        return None
    if not all(each.fails_no_sooner(condition) for each in (then, otherwise)):
        return None
    chosen = F.when(condition.column, then.column).when(~condition.column, otherwise.column)
    return _made(chosen, arrow_type, condition)


def _coalesce(call: FunctionCall, operands: Operands) -> SparkValue | None:
    arrow_type = _one_type(operands)
    if arrow_type is None or not all(each.fails_no_sooner(operands[0]) for each in operands):
        return None
    return _made(F.coalesce(*(operand.column for operand in operands)), arrow_type, operands[0])


def _one_type(values: Operands) -> pa.DataType | None:
    """Return the type of values, some of which may be an untyped null; None if there are several."""
    found = {value.type for value in values if not pa.types.is_null(value.type)}
    return found.pop() if len(found) == 1 else None


# ---- text ----


def _is_text(*values: SparkValue) -> bool:
    return all(pa.types.is_string(value.type) for value in values)


def _length(call: FunctionCall, operands: Operands) -> SparkValue | None:
    return _made(F.length(operands[0].column), pa.int32(), operands[0]) if _is_text(operands[0]) else None


def _text_search(search: Callable[[Column, Any], Column]) -> SparkFunction:
    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        (text,) = operands
        if not _is_text(text) or not _has_options(call, ignore_case=False):
            return None
        return _made(search(text.column, F.lit(call.options["pattern"])), pa.bool_(), text)

    return of


def _count_substring(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (text,) = operands
    pattern = call.options["pattern"]
    if not _is_text(text) or not pattern or not _has_options(call, ignore_case=False):
        return None
    left_out = F.length(text.column) - F.length(F.replace(text.column, F.lit(pattern), F.lit("")))
    count = left_out if len(pattern) == 1 else F.floor(left_out / len(pattern)).cast("int")
    return _made(count, pa.int32(), text)


def _replace(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (text,) = operands
    pattern, replacement = call.options["pattern"], call.options["replacement"]
    if not _is_text(text) or not pattern or not _has_options(call, max_replacements=-1):
        return None
    return _made(F.replace(text.column, F.lit(pattern), F.lit(replacement)), pa.string(), text)


def _trim(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (text,) = operands
    is_of_spaces = _is_text(text) and call.options["characters"] == " "
    return _made(F.trim(text.column), pa.string(), text) if is_of_spaces else None


def _slice(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (text,) = operands
    start, stop = call.options["start"], call.options["stop"]
    if not _is_text(text) or not _has_options(call, step=1) or not 0 <= start <= stop < 1 << 31:
        return None
    return _made(F.substring(text.column, start + 1, stop - start), pa.string(), text)


def _join(call: FunctionCall, operands: Operands) -> SparkValue | None:
    *texts, between = operands
    # 0: a null text makes a null
    if not texts or not _is_text(*operands) or not _has_options(call, null_handling=0):
        return None
    parts = [texts[0].column]
    for text in texts[1:]:
        parts += [between.column, text.column]
    joined = F.concat(*parts)
    if len(texts) == 1 and between.constant is None:
        joined = F.when(between.column.isNotNull(), joined)
    return _made(joined, pa.string(), *operands)


def part_of_text(call: FunctionCall, text: SparkValue, pattern: str, number: int) -> SparkValue | None:
    """Return an item of a text that is split at a pattern; an error where there are not so many."""
    if not _is_text(text) or not pattern or number < 0 or not hasattr(F, "get"):
        return None
    regular = (
        pattern if pattern.isalnum() or pattern in ("/", ",", ";", ":", "-", "&", "=", "_", " ") else None
    )
    if regular is None:
        return None
    item = F.get(F.split(text.column, regular, -1), number)
    missing = raised_if(
        text.column.isNotNull(), f"a text has no part {number} in {call.text}", F.lit(None).cast("string")
    )
    return SparkValue(F.coalesce(item, missing), pa.string(), text.failing | {f"part of {call.text}"})


# ---- times ----


def _time_part(part: Callable[[Column], Column]) -> SparkFunction:
    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        (time,) = operands
        is_day = time.type == pa.date32() and part in (F.year, F.month, F.day)
        if not is_day and not _is_local(call, time):
            return None
        return _made(part(time.column).cast("bigint"), pa.int64(), time)

    return of


def _is_local(call: FunctionCall, time: SparkValue) -> bool:
    """Return whether Spark gives the time on the clock that Arrow gives."""
    kind = time.type
    if not pa.types.is_timestamp(kind) or kind.unit not in ("s", "ms", "us"):
        return False
    return kind.tz is None or (kind.tz == "UTC" and call.settings.is_utc)


_TOKENS: Final = {"Y": "yyyy", "m": "MM", "d": "dd", "H": "HH", "M": "mm"}
_BETWEEN_TOKENS: Final = frozenset("-/:. ")


def _strftime(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (time,) = operands
    pattern = _spark_format(call.options["format"])
    if pattern is None or not _is_local(call, time) or not call.settings.has_new_formats:
        return None
    if not _has_options(call, locale="C"):
        return None
    formatted = F.date_format(time.column, pattern)
    if "yyyy" in pattern:
        # Other years have a sign, or more digits, in one of both.
        year = F.year(time.column)
        digits = F.lpad(
            F.abs(year).cast("string"), F.greatest(F.length(F.abs(year).cast("string")), F.lit(4)), "0"
        )
        shown = F.concat(F.when(year < 0, F.lit("-")).otherwise(F.lit("")), digits)
        before, *rest = pattern.split("yyyy")
        parts: list[Column] = [F.date_format(time.column, before)] if before else []
        for each in rest:
            parts += [shown, *([F.date_format(time.column, each)] if each else [])]
        formatted = F.when(year.between(0, 9999), formatted).otherwise(F.concat(*parts))
    return _made(formatted, pa.string(), time)


def _spark_format(pattern: str) -> str | None:
    """Return Spark's pattern of a format of times, or None if it may format otherwise."""
    found, rest = [], iter(pattern)
    for character in rest:
        if character == "%":
            token = _TOKENS.get(next(rest, ""))
            if token is None:
                return None
            found.append(token)
        elif character in _BETWEEN_TOKENS:
            found.append(character)
        else:
            return None
    return "".join(found) or None


# ---- casts ----


def _cast(call: FunctionCall, operands: Operands) -> SparkValue | None:
    (operand,) = operands
    source, target, column = operand.type, call.options["to_type"], operand.column
    types = pa.types
    if source == target:
        return operand
    if types.is_boolean(source) and (types.is_signed_integer(target) or types.is_string(target)):
        return _made(column.cast(spark_type(target)), target, operand)
    if types.is_signed_integer(source):
        if types.is_signed_integer(target) and target.bit_width >= source.bit_width:
            return _made(column.cast(spark_type(target)), target, operand)
        if target == pa.float64():
            if source != pa.int64():
                return _made(column.cast("double"), target, operand)
            if _has_options(call, allow_float_truncate=False):
                return _as_float(operand)
        if types.is_string(target):
            return _made(column.cast("string"), target, operand)
    if source == pa.float32() and target == pa.float64():
        return _made(column.cast("double"), target, operand)
    if types.is_timestamp(source) and source.tz is not None and target == pa.int64():
        whole = {"s": F.unix_seconds, "ms": F.unix_millis, "us": F.unix_micros}.get(source.unit)
        return None if whole is None else _made(whole(column), target, operand)
    return None


ARROW_FUNCTIONS: Final[Mapping[str, SparkFunction]] = {
    "add": _arithmetic("add", lambda a, b: a + b, is_checked=False),
    "add_checked": _arithmetic("add", lambda a, b: a + b, is_checked=True),
    "and_kleene": _logical(lambda a, b: a & b),
    "binary_join_element_wise": _join,
    "cast": _cast,
    "coalesce": _coalesce,
    "count_substring": _count_substring,
    "day": _time_part(F.day),
    "divide": _divide,
    "divide_checked": _divide,
    "ends_with": _text_search(lambda text, pattern: text.endswith(pattern)),
    "equal": _comparison(lambda a, b: a == b, of_nan="neither"),
    "greater": _comparison(lambda a, b: a > b, of_nan="left"),
    "greater_equal": _comparison(lambda a, b: a >= b, of_nan="left"),
    "hour": _time_part(F.hour),
    "if_else": _if_else,
    "invert": _invert,
    "is_in": _is_in,
    "is_nan": _is_nan,
    "is_null": _nullness(Column.isNull),
    "is_valid": _nullness(Column.isNotNull),
    "less": _comparison(lambda a, b: a < b, of_nan="right"),
    "less_equal": _comparison(lambda a, b: a <= b, of_nan="right"),
    "match_substring": _text_search(lambda text, pattern: text.contains(pattern)),
    "minute": _time_part(F.minute),
    "month": _time_part(F.month),
    "multiply": _arithmetic("multiply", lambda a, b: a * b, is_checked=False),
    "multiply_checked": _arithmetic("multiply", lambda a, b: a * b, is_checked=True),
    "not_equal": _comparison(lambda a, b: a != b, of_nan="neither"),
    "or_kleene": _logical(lambda a, b: a | b),
    "replace_substring": _replace,
    "strftime": _strftime,
    "starts_with": _text_search(lambda text, pattern: text.startswith(pattern)),
    "subtract": _arithmetic("subtract", lambda a, b: a - b, is_checked=False),
    "subtract_checked": _arithmetic("subtract", lambda a, b: a - b, is_checked=True),
    "utf8_length": _length,
    "utf8_slice_codeunits": _slice,
    "utf8_trim": _trim,
    "year": _time_part(F.year),
}
"""By the names of Arrow's functions."""
