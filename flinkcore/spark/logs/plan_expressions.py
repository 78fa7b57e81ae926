"""Conditions and values of Spark's plans as those of Arrow, where both mean the same of every row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, or_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import Expression

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

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


class NotJustFiles(Exception):
    """A DataFrame is more than what lies in files; says why."""


@dataclass(frozen=True)
class PlanColumn:
    """A column of files, as a plan refers to it.

    Attributes
    ----------
    name : str
        Name of the column in the files' schema.
    type : pyarrow.DataType or None
        Type of the column, or None for lists, maps and structs.
    """

    name: str
    type: pa.DataType | None


Attributes = Mapping[str, PlanColumn]
"""Columns by the ids that attributes of a plan have."""


def single_type(name: str) -> pa.DataType | None:
    """Return the Arrow type with the values of a type of Spark, by its simple name; None if that has parts, or a
    collation or length."""
    if name.startswith("decimal("):
        precision, scale = name.removeprefix("decimal(").rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    return _TYPES.get(name)


def python_value(value: Any, arrow_type: pa.DataType) -> Any:
    """Return a value of Spark's, as the JVM gives it, as a Python value of an Arrow type."""
    types = pa.types
    if (
        value is None
        or types.is_boolean(arrow_type)
        or types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
    ):
        return value
    if types.is_string(arrow_type):
        return value.toString()
    if types.is_decimal(arrow_type):
        return Decimal(value.toString())
    if types.is_binary(arrow_type):
        return bytes(value)
    number = pa.int32() if types.is_date(arrow_type) else pa.int64()
    try:
        return pa.scalar(value, number).cast(arrow_type).as_py()
    except (OverflowError, ValueError) as error:
        raise NotJustFiles(f"{value} is no {arrow_type} of Python") from error


def attribute_id(attribute: Any) -> str:
    """Return the id of an attribute of a plan."""
    return str(attribute.exprId().toString())


def kind_of(node: Any) -> str:
    """Return the name of the class of a node of a plan, or of an expression."""
    return str(node.getClass().getSimpleName())


def children_of(node: Any) -> list[Any]:
    """Return the inputs of a node of a plan, or of an expression."""
    children = node.children()
    return [children.apply(at) for at in range(children.size())]


def literal_of(literal: Any) -> tuple[Any, pa.DataType]:
    """Return the Python value of a literal, and its type."""
    name = literal.dataType().catalogString()
    arrow_type = single_type(name)
    if arrow_type is None:
        raise NotJustFiles(f"{literal.sql()} is a {name}")
    return python_value(literal.value(), arrow_type), arrow_type


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
        yield _condition(expression, attributes)


def _condition(expression: Any, attributes: Attributes) -> Expression:
    """True, false and null where the expression is that."""
    kind = kind_of(expression)
    if kind in ("And", "Or", "Not"):
        parts = [_condition(child, attributes) for child in children_of(expression)]
        return ~parts[0] if kind == "Not" else reduce(and_ if kind == "And" else or_, parts)
    operands = [_operand(child, attributes, expression) for child in children_of(expression)]
    if kind in ("AttributeReference", "Literal"):
        only = _operand(expression, attributes, expression)
        if only.type == pa.bool_():
            return only.value
    elif kind in ("IsNull", "IsNotNull"):
        return operands[0].value.is_null() if kind == "IsNull" else operands[0].value.is_valid()
    elif kind in _COMPARISONS:
        return _compared(_COMPARISONS[kind], operands[0], operands[1], expression)
    elif kind == "EqualNullSafe" and not operands[0].is_literal and operands[1].is_literal:
        return operands[0].value.is_valid() & _compared(eq, operands[0], operands[1], expression)
    elif kind == "In" and 1 < len(operands) <= _MOST_VALUES:
        return reduce(or_, [_compared(eq, operands[0], each, expression) for each in operands[1:]])
    elif kind == "InSet":
        return _in_set(operands[0], expression)
    elif kind in _TEXT_SEARCHES:
        text, pattern = operands
        if text.type == pa.string() and pattern.is_literal and pattern.literal is not None:
            return _TEXT_SEARCHES[kind](text.value, pattern=pattern.literal)
    raise _left_to_spark(expression)


@dataclass(frozen=True)
class _Operand:
    value: Expression
    type: pa.DataType | None
    is_literal: bool = False
    literal: Any = None


def _operand(expression: Any, attributes: Attributes, whole: Any) -> _Operand:
    kind = kind_of(expression)
    if kind == "AttributeReference":
        column = attributes.get(attribute_id(expression))
        if column is not None:
            return _Operand(pc.field(column.name), column.type)
    if kind == "Literal":
        value, arrow_type = literal_of(expression)
        return _literal(value, arrow_type)
    raise _left_to_spark(whole)


def _literal(value: Any, arrow_type: pa.DataType) -> _Operand:
    return _Operand(pc.scalar(pa.scalar(value, arrow_type)), arrow_type, True, value)


def _in_set(text: _Operand, expression: Any) -> Expression:
    values = expression.hset().toSeq()
    if text.type is None or not 0 < values.size() <= _MOST_VALUES:
        raise _left_to_spark(expression)
    each = [_literal(python_value(values.apply(at), text.type), text.type) for at in range(values.size())]
    return reduce(or_, [_compared(eq, text, value, expression) for value in each])


def _compared(
    comparison: Callable[[Any, Any], Any], left: _Operand, right: _Operand, expression: Any
) -> Expression:
    if left.is_literal:
        left, right, comparison = right, left, _MIRRORED[comparison]
    if left.type is None or left.type != right.type:
        raise _left_to_spark(expression)
    if left.type == pa.bool_() and comparison is not eq:
        raise _left_to_spark(expression)
    compared: Expression = comparison(left.value, right.value)
    if not pa.types.is_floating(left.type):
        return compared
    if not right.is_literal or right.literal is None or math.isnan(right.literal):
        raise _left_to_spark(expression)
    # To Spark, NaN is greater than all other numbers.
    return pc.is_nan(left.value) | compared if comparison in (gt, ge) else compared


def _left_to_spark(expression: Any) -> NotJustFiles:
    return NotJustFiles(f"Spark alone evaluates the condition {expression.sql()}")
