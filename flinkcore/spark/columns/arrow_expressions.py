"""Expressions of Arrow as columns of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from flinkcore._internal.arrow.expression_trees import (
    CallNode,
    ConstantNode,
    ExpressionNode,
    FieldNode,
    expression_tree,
)
from flinkcore._internal.arrow.expressions import ColumnExpression, Expression
from flinkcore.spark.columns.arrow_functions import ARROW_FUNCTIONS
from flinkcore.spark.columns.function_calls import FunctionCall, SessionSettings
from flinkcore.spark.columns.number_functions import remainder
from flinkcore.spark.columns.spark_values import SparkValue, constant_value
from flinkcore.spark.columns.text_functions import part_of_text

_MINUS = ("subtract", "subtract_checked")
_TIMES = ("multiply", "multiply_checked")
_BY = ("divide", "divide_checked")


def spark_value(
    expression: Expression, columns: Mapping[str, SparkValue], settings: SessionSettings
) -> SparkValue | None:
    """Return an expression as a column of Spark with the same value in each row, or None if there may be another one.

    Parameters
    ----------
    expression : pyarrow.compute.Expression or ColumnExpression
    columns : mapping of str to SparkValue
        The columns that it may read.
    settings : SessionSettings
    """
    tree = None if isinstance(expression, ColumnExpression) else expression_tree(expression)
    return None if tree is None else _value(tree, columns, settings)


def _value(
    node: ExpressionNode, columns: Mapping[str, SparkValue], settings: SessionSettings
) -> SparkValue | None:
    if isinstance(node, ConstantNode):
        return constant_value(node.value)
    if isinstance(node, FieldNode):
        return _field(columns.get(node.path[0]), node.path[1:])
    call = FunctionCall(_shown(node), _options(node), settings)

    def value(operand: ExpressionNode) -> SparkValue | None:
        return _value(operand, columns, settings)

    divided = _remainder_of(node)
    if divided is not None:
        operands = [value(each) for each in divided]
        left, divisor = operands
        rest = None if left is None or divisor is None else remainder(left, divisor)
        if rest is not None:
            return rest
    if node.function == "list_element":
        return _part(node, call, value)
    function = ARROW_FUNCTIONS.get(node.function)
    if function is None:
        return None
    found = [value(operand) for operand in node.operands]
    known = [each for each in found if each is not None]
    return function(call, known) if len(known) == len(found) else None


def _field(column: SparkValue | None, path: tuple[str, ...]) -> SparkValue | None:
    for name in path:
        if column is None or not pa.types.is_struct(column.type):
            return None
        at = column.type.get_field_index(name)
        if at < 0:
            return None
        column = SparkValue(column.column.getField(name), column.type.field(at).type, column.failing)
    return column


def _remainder_of(node: CallNode) -> tuple[ExpressionNode, ExpressionNode] | None:
    """Return x and n if a call is ``x - x / n * n``, or None."""
    if node.function not in _MINUS:
        return None
    number, product = node.operands
    if not isinstance(product, CallNode) or product.function not in _TIMES:
        return None
    quotient, divisor = product.operands
    if not isinstance(quotient, CallNode) or quotient.function not in _BY:
        return None
    return (number, divisor) if quotient.operands == (number, divisor) else None


def _part(
    node: CallNode, call: FunctionCall, value: Callable[[ExpressionNode], SparkValue | None]
) -> SparkValue | None:
    """Return the item of a list, if that is a text that is split."""
    split, number = node.operands
    if not isinstance(split, CallNode) or split.function != "split_pattern":
        return None
    options = _options(split)
    if options.get("max_splits") != -1 or options.get("reverse") or not isinstance(number, ConstantNode):
        return None
    text = value(split.operands[0])
    item = number.value.as_py()
    return None if text is None or item is None else part_of_text(call, text, options["pattern"], item)


def _options(node: CallNode) -> dict[str, Any]:
    """Return the options of a call; the type of a cast in place of the null that has it, and values as scalars."""
    if node.options is None:
        return {}
    options: dict[str, Any] = {}
    for field in node.options.type:
        value = node.options[field.name]
        if field.name == "to_type":
            options[field.name] = field.type
        elif field.name == "value_set":
            options[field.name] = list(value.values)
        else:
            options[field.name] = value.as_py()
    return options


def _shown(node: ExpressionNode) -> str:
    """Return an expression as messages show it."""
    if isinstance(node, FieldNode):
        return ".".join(node.path)
    if isinstance(node, ConstantNode):
        return str(node.value)
    return f"{node.function}({', '.join(map(_shown, node.operands))})"
