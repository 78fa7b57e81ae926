"""Conditions and values of Spark's plans as those of Arrow, where both mean the same of every row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, or_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import Expression
from flinkcore.spark.logs.plan_functions import PlanValue, computed
from flinkcore.spark.logs.plan_nodes import (
    NotJustFiles,
    attribute_id,
    children_of,
    kind_of,
    literal_of,
    python_value,
    type_of,
)

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "EqualTo": eq,
    "LessThan": lt,
    "LessThanOrEqual": le,
    "GreaterThan": gt,
    "GreaterThanOrEqual": ge,
}
_MIRRORED: Final = {lt: gt, le: ge, gt: lt, ge: le, eq: eq}
_TEXT_SEARCHES: Final[Mapping[str, Callable[..., Any]]] = {
    "StartsWith": pc.starts_with,
    "EndsWith": pc.ends_with,
    "Contains": pc.match_substring,
}
_MOST_VALUES: Final = 200
"""Longer lists of values are left to Spark."""

Attributes = Callable[[str], PlanValue | None]
"""From the id of an attribute of a plan to its value; None where Arrow has none."""


def conditions_of(expression: Any, attributes: Attributes) -> Iterator[Expression]:
    """Yield conditions all of which are true of the rows of which an expression of a plan is.

    Raises
    ------
    NotJustFiles
        If Arrow may judge a row otherwise.
    """
    if kind_of(expression) == "And":
        for child in children_of(expression):
            yield from conditions_of(child, attributes)
    else:
        condition = value_of(expression, attributes)
        if condition is None or condition.type != pa.bool_() or condition.may_fail:
            raise NotJustFiles(f"Spark alone evaluates the condition {expression.sql()}")
        yield condition.value


def value_of(expression: Any, attributes: Attributes) -> PlanValue | None:
    """Return the value of an expression of a plan, or None where Arrow may give another one."""
    kind = kind_of(expression)
    if kind == "AttributeReference":
        return attributes(attribute_id(expression))
    if kind == "Literal":
        return PlanValue.of_literal(*literal_of(expression))
    if kind == "GetStructField":
        return _field(expression, attributes)
    operands = []
    for child in children_of(expression):
        operand = value_of(child, attributes)
        if operand is None:
            return None
        operands.append(operand)
    if kind not in _CONDITIONS:
        return computed(expression, kind, operands)
    # Both sides of a condition are evaluated for all rows, and by Spark maybe not.
    if any(operand.may_fail for operand in operands):
        return None
    condition = _CONDITIONS[kind](expression, kind, operands)
    return None if condition is None else PlanValue(condition, pa.bool_())


def _field(expression: Any, attributes: Attributes) -> PlanValue | None:
    (child,) = children_of(expression)
    struct = value_of(child, attributes)
    if struct is None:
        return None
    name = child.dataType().fieldNames()[expression.ordinal()]
    return PlanValue(pc.struct_field(struct.value, name), type_of(expression), struct.may_fail)


def _logical(expression: Any, kind: str, operands: list[PlanValue]) -> Expression | None:
    parts = [operand.value for operand in operands]
    return ~parts[0] if kind == "Not" else reduce(and_ if kind == "And" else or_, parts)


def _nullness(expression: Any, kind: str, operands: list[PlanValue]) -> Expression | None:
    return operands[0].value.is_null() if kind == "IsNull" else operands[0].value.is_valid()


def _comparison(expression: Any, kind: str, operands: list[PlanValue]) -> Expression | None:
    return _compared(_COMPARISONS[kind], *operands)


def _null_safe(expression: Any, kind: str, operands: list[PlanValue]) -> Expression | None:
    left, right = operands
    compared = None if left.is_literal or not right.is_literal else _compared(eq, left, right)
    return None if compared is None else left.value.is_valid() & compared


def _one_of(expression: Any, kind: str, operands: list[PlanValue]) -> Expression | None:
    first, *values = operands
    return _any_equal(first, values)


def _in_set(expression: Any, kind: str, operands: list[PlanValue]) -> Expression | None:
    (first,) = operands
    values = expression.hset().toSeq()
    if first.type is None or values.size() > _MOST_VALUES:
        return None
    each = [python_value(values.apply(at), first.type) for at in range(values.size())]
    return _any_equal(first, [PlanValue.of_literal(value, first.type) for value in each])


def _any_equal(first: PlanValue, values: list[PlanValue]) -> Expression | None:
    if not 0 < len(values) <= _MOST_VALUES:
        return None
    compared = [_compared(eq, first, value) for value in values]
    return None if any(each is None for each in compared) else reduce(or_, compared)


def _text_search(expression: Any, kind: str, operands: list[PlanValue]) -> Expression | None:
    text, pattern = operands
    if text.type != pa.string() or not pattern.is_literal or pattern.literal is None:
        return None
    return _TEXT_SEARCHES[kind](text.value, pattern=pattern.literal)


def _compared(comparison: Callable[[Any, Any], Any], left: PlanValue, right: PlanValue) -> Expression | None:
    if left.is_literal:
        left, right, comparison = right, left, _MIRRORED[comparison]
    if left.type is None or left.type != right.type:
        return None
    if left.type == pa.bool_() and comparison is not eq:
        return None
    compared: Expression = comparison(left.value, right.value)
    if not pa.types.is_floating(left.type):
        return compared
    if not right.is_literal or right.literal is None or math.isnan(right.literal):
        return None
    # To Spark, NaN is greater than all other numbers.
    return pc.is_nan(left.value) | compared if comparison in (gt, ge) else compared


_CONDITIONS: Final[Mapping[str, Callable[[Any, str, list[PlanValue]], Expression | None]]] = {
    **dict.fromkeys(("And", "Or", "Not"), _logical),
    **dict.fromkeys(("IsNull", "IsNotNull"), _nullness),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_TEXT_SEARCHES, _text_search),
    "EqualNullSafe": _null_safe,
    "In": _one_of,
    "InSet": _in_set,
}
"""By the names of Spark's classes."""
