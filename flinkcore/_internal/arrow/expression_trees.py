"""Expressions of pyarrow as trees of calls, columns and constants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
from pyarrow import ipc

from flinkcore._internal.arrow.expressions import Expression
from flinkcore.errors import ConfigurationError

_LINE: Final = re.compile(r"(call|end|literal|options|field_ref|nested_field_ref): '(.*)'")


@dataclass(frozen=True)
class FieldNode:
    """A column, or a nested field of one.

    Attributes
    ----------
    path : tuple of str
        Name of the column, then those of the fields within it.
    """

    path: tuple[str, ...]


@dataclass(frozen=True)
class ConstantNode:
    """A constant.

    Attributes
    ----------
    value : pyarrow.Scalar
    """

    value: pa.Scalar


@dataclass(frozen=True)
class CallNode:
    """A call of a function of Arrow.

    Attributes
    ----------
    function : str
        Name of the function, as ``pyarrow.compute.get_function`` takes it.
    operands : tuple of FieldNode, ConstantNode or CallNode
    options : pyarrow.StructScalar or None
        Options of the function by their names in Arrow's C++, or None if it has none.
    """

    function: str
    operands: tuple[ExpressionNode, ...]
    options: pa.StructScalar | None


ExpressionNode: TypeAlias = FieldNode | ConstantNode | CallNode


def expression_tree(expression: Expression) -> ExpressionNode | None:
    """Return the tree of an expression of pyarrow, or None if it cannot be read, as with names of several lines.

    Raises
    ------
    ConfigurationError
        If it refers to a column by its number.
    """
    # pyarrow has no public way to walk an expression. Its pickled form is an Arrow file whose schema metadata
    # list the tree in prefix order, and whose only row has the constants and options.
    file = ipc.open_file(pickled_expression(expression))
    text = file.schema.to_string(show_schema_metadata=True, truncate_metadata=False)
    _, _, lines = text.partition("-- schema metadata --\n")
    tokens = []
    for line in lines.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        tokens.append((match[1], match[2]))
    row = file.get_batch(0) if file.num_record_batches else None
    rest = iter(tokens)
    return _node_of(*next(rest), rest, row)


def tree_columns(tree: ExpressionNode) -> Iterator[str]:
    """Yield the names of the columns that an expression reads."""
    if isinstance(tree, FieldNode):
        yield tree.path[0]
    elif isinstance(tree, CallNode):
        for operand in tree.operands:
            yield from tree_columns(operand)


def pickled_expression(expression: Expression) -> pa.Buffer:
    """Return the pickled form, which is the same in every process, and in pyarrow 19, 22 and 26.

    Raises
    ------
    ConfigurationError
        If the expression refers to a column by its number.
    """
    try:
        _, (pickled,) = expression.__reduce__()
    except pa.ArrowNotImplementedError as error:
        raise ConfigurationError(f"{expression} must refer to columns by name ({error})") from error
    return pickled


def _node_of(
    tag: str, value: str, tokens: Iterator[tuple[str, str]], row: pa.RecordBatch | None
) -> ExpressionNode:
    """Return the node that begins with a token, and take the other tokens of it."""
    if tag == "field_ref":
        return FieldNode((value,))
    if tag == "nested_field_ref":
        return FieldNode(tuple(next(tokens)[1] for _ in range(int(value))))
    if tag == "literal":
        assert row is not None
        return ConstantNode(row.column(int(value))[0])
    operands: list[ExpressionNode] = []
    options = None
    for inner, of_inner in tokens:
        if inner == "end":
            break
        if inner == "options":
            assert row is not None
            options = row.column(int(of_inner))[0]
        else:
            operands.append(_node_of(inner, of_inner, tokens, row))
    return CallNode(value, tuple(operands), options)
