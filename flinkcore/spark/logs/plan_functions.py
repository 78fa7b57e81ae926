"""Functions of Spark's plans as those of Arrow, where both give the same value for every row.

A function is here only if it agrees for all values of its types: nulls, NaN, overflow, years before 1970. Functions of
text whose results depend on tables of Unicode, regular expressions and formats of times are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import Expression
from flinkcore.spark.logs.plan_nodes import type_of

_MOST_DIVISOR: Final = 1 << 30
"""Remainders of larger divisors could overflow on the way."""

_MOST_SECONDS: Final = (2**63 - 1) // 1_000_000
_UTC_NAMES: Final = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "+00:00"})


@dataclass(frozen=True)
class PlanValue:
    """The value of an expression in each row.

    Attributes
    ----------
    value : pyarrow.compute.Expression
    type : pyarrow.DataType or None
        None for lists, maps and structs.
    may_fail : bool
        Whether it is an error for some values: then it must be computed for the rows alone for which Spark does so.
    is_literal : bool
    literal : object
        The value of a literal.
    """

    value: Expression
    type: pa.DataType | None
    may_fail: bool = False
    is_literal: bool = False
    literal: Any = None

    @classmethod
    def of_literal(cls, value: Any, arrow_type: pa.DataType) -> PlanValue:
        """Return a constant."""
        return cls(pc.scalar(pa.scalar(value, arrow_type)), arrow_type, is_literal=True, literal=value)


Operands = Sequence[PlanValue]
Function = Callable[[Any, Operands], Expression | None]
"""From an expression of a plan and its operands to a value; None where Spark's may differ."""


def computed(expression: Any, kind: str, operands: Operands) -> PlanValue | None:
    """Return what a function of a plan gives, or None if Arrow has no function that always gives the same.

    Parameters
    ----------
    expression
        The expression, of Spark's class `kind`.
    operands : sequence of PlanValue
        Its inputs.
    """
    function, arrow_type = _FUNCTIONS.get(kind), type_of(expression)
    if function is None or arrow_type is None:
        return None
    may_fail = any(operand.may_fail for operand in operands)
    if may_fail and kind in _LAZY:
        return None
    value = function(expression, operands)
    if value is None:
        return None
    return PlanValue(value, arrow_type, may_fail or _overflows(expression, kind, arrow_type))


def _overflows(expression: Any, kind: str, arrow_type: pa.DataType) -> bool:
    """Return whether a result that is too large is an error, and is not wrapped or infinite."""
    if kind in _TO_TIMESTAMP:
        return True
    if not pa.types.is_integer(arrow_type):
        return False
    return (kind in _ARITHMETIC and _mode(expression) == "ANSI") or (
        kind in _OF_SIGN and bool(expression.failOnError())
    )


def _mode(expression: Any) -> str:
    return str(expression.evalMode().toString())


# ---- numbers ----


def _arithmetic(wrapping: Callable[..., Any], checked: Callable[..., Any]) -> Function:
    def of(expression: Any, operands: Operands) -> Expression | None:
        left, right = operands
        if left.type != right.type or not _is_number(left) or _mode(expression) == "TRY":
            return None
        fails = _mode(expression) == "ANSI"
        return (checked if fails else wrapping)(left.value, right.value)

    return of


def _divide(expression: Any, operands: Operands) -> Expression | None:
    left, right = operands
    if left.type != pa.float64() or right.type != pa.float64() or not right.is_literal:
        return None  # a divisor of zero is an error or null, and not infinity
    return pc.divide(left.value, right.value) if right.literal else None


def _divisor(operands: Operands) -> int | None:
    left, right = operands
    is_whole = left.type == right.type and right.is_literal and pa.types.is_integer(left.type)
    return right.literal if is_whole and right.literal and 0 < right.literal < _MOST_DIVISOR else None


def _remainder_of(operands: Operands) -> Expression | None:
    if _divisor(operands) is None:
        return None
    left, right = operands
    return pc.subtract(left.value, pc.multiply(pc.divide(left.value, right.value), right.value))


def _remainder(expression: Any, operands: Operands) -> Expression | None:
    return _remainder_of(operands)


def _positive_remainder(expression: Any, operands: Operands) -> Expression | None:
    remainder = _remainder_of(operands)
    if remainder is None or operands[0].type not in (pa.int32(), pa.int64()):
        return None
    divisor = operands[1].value
    return pc.if_else(remainder < 0, pc.add(remainder, divisor), remainder)


def _whole_quotient(expression: Any, operands: Operands) -> Expression | None:
    if _divisor(operands) is None:
        return None
    return pc.divide(operands[0].value, operands[1].value).cast(pa.int64())


def _of_number(wrapping: Callable[..., Any], checked: Callable[..., Any]) -> Function:
    def of(expression: Any, operands: Operands) -> Expression | None:
        (operand,) = operands
        if not _is_number(operand):
            return None
        return (checked if expression.failOnError() else wrapping)(operand.value)

    return of


def _bits(function: Callable[..., Any]) -> Function:
    def of(expression: Any, operands: Operands) -> Expression | None:
        left, right = operands
        is_whole = left.type == right.type and left.type is not None and pa.types.is_integer(left.type)
        return function(left.value, right.value) if is_whole else None

    return of


def _extreme(function: Callable[..., Any]) -> Function:
    def of(expression: Any, operands: Operands) -> Expression | None:
        first = operands[0].type
        if any(operand.type != first for operand in operands) or first is None:
            return None
        if not (pa.types.is_integer(first) or pa.types.is_temporal(first)):
            return None  # NaN and -0.0 are in another order
        return function(*(operand.value for operand in operands), skip_nulls=True)

    return of


def _is_number(operand: PlanValue) -> bool:
    kind = operand.type
    return kind is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_nan(expression: Any, operands: Operands) -> Expression | None:
    return pc.coalesce(pc.is_nan(operands[0].value), pc.scalar(False))


# ---- conditions ----


def _coalesce(expression: Any, operands: Operands) -> Expression | None:
    if operands[0].type is None or any(operand.type != operands[0].type for operand in operands):
        return None
    return pc.coalesce(*(operand.value for operand in operands))


def _if(expression: Any, operands: Operands) -> Expression | None:
    condition, then, otherwise = operands
    return _chosen(condition, then.value, otherwise.value) if then.type == otherwise.type else None


def _case_when(expression: Any, operands: Operands) -> Expression | None:
    has_else = len(operands) % 2 == 1
    branches = operands[:-1] if has_else else operands
    conditions, values = branches[::2], branches[1::2]
    arrow_type = values[0].type
    otherwise = operands[-1] if has_else else PlanValue.of_literal(None, arrow_type)
    if arrow_type is None or any(value.type != arrow_type for value in (*values, otherwise)):
        return None
    chosen = otherwise.value
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        chosen = _chosen(condition, value.value, chosen)
    return chosen


def _chosen(condition: PlanValue, then: Expression, otherwise: Expression) -> Expression:
    # Spark takes the other value for a condition that is null, and Arrow gives null.
    return pc.if_else(pc.coalesce(condition.value, pc.scalar(False)), then, otherwise)


# ---- text ----


def _concat(expression: Any, operands: Operands) -> Expression | None:
    if any(operand.type != pa.string() for operand in operands):
        return None
    empty = pc.scalar(pa.scalar("", pa.string()))
    return pc.binary_join_element_wise(*(each.value for each in operands), empty, null_handling="emit_null")


def _length(expression: Any, operands: Operands) -> Expression | None:
    return pc.utf8_length(operands[0].value).cast(pa.int32()) if operands[0].type == pa.string() else None


def _substring(expression: Any, operands: Operands) -> Expression | None:
    text, position, length = operands
    if text.type != pa.string() or not position.is_literal or not length.is_literal:
        return None
    if position.literal is None or length.literal is None or position.literal < 0:
        return None
    start = max(position.literal - 1, 0)
    return pc.utf8_slice_codeunits(text.value, start, start + max(length.literal, 0))


def _trim(expression: Any, operands: Operands) -> Expression | None:
    if len(operands) != 1 or operands[0].type != pa.string():
        return None
    return pc.utf8_trim(operands[0].value, characters=" ")


def _replaced(expression: Any, operands: Operands) -> Expression | None:
    text, searched, other = operands
    if text.type != pa.string() or not searched.literal or not other.is_literal or other.literal is None:
        return None
    return pc.replace_substring(text.value, pattern=searched.literal, replacement=other.literal)


# ---- times ----


def _since_epoch(per_us: int) -> Function:
    def of(expression: Any, operands: Operands) -> Expression | None:
        return _floor_divided(operands[0].value.cast(pa.int64()), per_us)

    return of


def _floor_divided(number: Expression, divisor: int) -> Expression:
    if divisor == 1:
        return number
    by = pc.scalar(pa.scalar(divisor, pa.int64()))
    quotient = pc.divide(number, by)
    return pc.if_else(pc.multiply(quotient, by) > number, pc.subtract(quotient, pc.scalar(1)), quotient)


def _instant(us_each: int) -> Function:
    def of(expression: Any, operands: Operands) -> Expression | None:
        if operands[0].type is None or not pa.types.is_integer(operands[0].type):
            return None
        number = operands[0].value.cast(pa.int64())
        us = (
            number if us_each == 1 else pc.multiply_checked(number, pc.scalar(pa.scalar(us_each, pa.int64())))
        )
        return us.cast(pa.timestamp("us", "UTC"))

    return of


def _same_number(expression: Any, operands: Operands) -> Expression | None:
    target, source = type_of(expression), operands[0].type
    if source is None or target is None:
        return None
    return operands[0].value.cast(pa.int64()).cast(target)


def _itself(expression: Any, operands: Operands) -> Expression | None:
    return operands[0].value


def _hour(expression: Any, operands: Operands) -> Expression | None:
    return _of_time(expression, operands, pc.hour)


def _minute(expression: Any, operands: Operands) -> Expression | None:
    return _of_time(expression, operands, pc.minute)


def _second(expression: Any, operands: Operands) -> Expression | None:
    return _of_time(expression, operands, pc.second)


def _of_time(expression: Any, operands: Operands, part: Callable[[Any], Any]) -> Expression | None:
    return part(operands[0].value).cast(pa.int32()) if _is_local(expression, operands[0]) else None


def _of_day(part: Callable[[Any], Any]) -> Function:
    def of(expression: Any, operands: Operands) -> Expression | None:
        return part(operands[0].value).cast(pa.int32()) if operands[0].type == pa.date32() else None

    return of


def _truncated(expression: Any, operands: Operands) -> Expression | None:
    unit, time = operands
    name = str(unit.literal).lower() if unit.is_literal else ""
    if name not in ("second", "minute", "hour", "day") or not _is_local(expression, time):
        return None
    return pc.floor_temporal(time.value, unit=name)


def _is_local(expression: Any, time: PlanValue) -> bool:
    """Return whether the time on the clock of a value does not depend on a zone, but for UTC."""
    return time.type == pa.timestamp("us") or (
        time.type == pa.timestamp("us", "UTC") and _is_of_utc(expression)
    )


def _is_of_utc(expression: Any) -> bool:
    zone = expression.timeZoneId()
    return bool(zone.isDefined()) and zone.get() in _UTC_NAMES


# ---- casts ----


def _cast(expression: Any, operands: Operands) -> Expression | None:
    (operand,) = operands
    source, target, value = operand.type, type_of(expression), operand.value
    if source is None or target is None:
        return None
    types = pa.types
    if source == target:
        return value
    if types.is_boolean(source) and (types.is_integer(target) or types.is_string(target)):
        return value.cast(target)
    if types.is_integer(source):
        if types.is_integer(target) and target.bit_width >= source.bit_width:
            return value.cast(target)
        if types.is_floating(target):
            return value.cast(target, safe=False)
        if types.is_string(target):
            return value.cast(target)
        if target == pa.timestamp("us", "UTC"):
            return _saturated(value.cast(pa.int64())).cast(target)
    if source == pa.float32() and target == pa.float64():
        return value.cast(target)
    if source == pa.timestamp("us", "UTC"):
        us = value.cast(pa.int64())
        if target == pa.int64():
            return _floor_divided(us, 1_000_000)
        if target == pa.float64():
            return pc.divide(us.cast(pa.float64(), safe=False), pc.scalar(1e6))
    if types.is_timestamp(source) and types.is_timestamp(target) and _is_of_utc(expression):
        return value.cast(pa.int64()).cast(target)
    if types.is_timestamp(source) and target == pa.date32() and _is_local(expression, operand):
        return _floor_divided(value.cast(pa.int64()), 86_400_000_000).cast(pa.int32()).cast(pa.date32())
    return None


def _saturated(seconds: Expression) -> Expression:
    """Microseconds of seconds: the greatest or least number beyond the range."""
    most = pc.scalar(pa.scalar(_MOST_SECONDS, pa.int64()))
    within = pc.if_else(seconds > most, most, pc.if_else(seconds < pc.negate(most), pc.negate(most), seconds))
    us = pc.multiply(within, pc.scalar(pa.scalar(1_000_000, pa.int64())))
    greatest, least = (pc.scalar(pa.scalar(each, pa.int64())) for each in (2**63 - 1, -(2**63)))
    return pc.if_else(seconds > most, greatest, pc.if_else(seconds < pc.negate(most), least, us))


_FUNCTIONS: Final[Mapping[str, Function]] = {
    "Abs": _of_number(pc.abs, pc.abs_checked),
    "Add": _arithmetic(pc.add, pc.add_checked),
    "BitwiseAnd": _bits(pc.bit_wise_and),
    "BitwiseOr": _bits(pc.bit_wise_or),
    "BitwiseXor": _bits(pc.bit_wise_xor),
    "CaseWhen": _case_when,
    "Cast": _cast,
    "Coalesce": _coalesce,
    "Concat": _concat,
    "DayOfMonth": _of_day(pc.day),
    "Divide": _divide,
    "Greatest": _extreme(pc.max_element_wise),
    "Hour": _hour,
    "If": _if,
    "IntegralDivide": _whole_quotient,
    "IsNaN": _is_nan,
    "KnownNotNull": _itself,
    "KnownNullable": _itself,
    "Least": _extreme(pc.min_element_wise),
    "Length": _length,
    "MicrosToTimestamp": _instant(1),
    "MillisToTimestamp": _instant(1_000),
    "Minute": _minute,
    "Month": _of_day(pc.month),
    "Multiply": _arithmetic(pc.multiply, pc.multiply_checked),
    "Pmod": _positive_remainder,
    "PreciseTimestampConversion": _same_number,
    "Remainder": _remainder,
    "Second": _second,
    "SecondsToTimestamp": _instant(1_000_000),
    "StringReplace": _replaced,
    "StringTrim": _trim,
    "Substring": _substring,
    "Subtract": _arithmetic(pc.subtract, pc.subtract_checked),
    "TruncTimestamp": _truncated,
    "UnaryMinus": _of_number(pc.negate, pc.negate_checked),
    "UnixMicros": _since_epoch(1),
    "UnixMillis": _since_epoch(1_000),
    "UnixSeconds": _since_epoch(1_000_000),
    "Year": _of_day(pc.year),
}
"""By the names of Spark's classes."""

_ARITHMETIC: Final = frozenset({"Add", "Multiply", "Subtract"})
_OF_SIGN: Final = frozenset({"Abs", "UnaryMinus"})
_TO_TIMESTAMP: Final = frozenset({"MillisToTimestamp", "SecondsToTimestamp"})

_LAZY: Final = frozenset({"CaseWhen", "Coalesce", "If"})
"""Functions for which Spark computes operands only where it needs them."""
