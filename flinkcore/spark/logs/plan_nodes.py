"""Nodes of Spark's plans and expressions, as Python sees them through the JVM."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

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


def single_type(name: str) -> pa.DataType | None:
    """Return the Arrow type with the values of a type of Spark, by its simple name; None if that has parts, or a
    collation or length."""
    if name.startswith("decimal("):
        precision, scale = name.removeprefix("decimal(").rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    return _TYPES.get(name)


def type_of(expression: Any) -> pa.DataType | None:
    """Return the Arrow type of an expression's values, as `single_type` gives it."""
    return single_type(expression.dataType().catalogString())


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
