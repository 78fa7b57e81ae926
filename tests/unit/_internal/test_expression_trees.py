"""Expressions of pyarrow as trees."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore._internal.arrow.expression_trees import (
    CallNode,
    ConstantNode,
    FieldNode,
    expression_tree,
    tree_columns,
)
from flinkcore.errors import ConfigurationError


def test_a_tree_has_calls_with_their_operands_in_order_and_their_options() -> None:
    tree = expression_tree(
        pc.count_substring(pc.field("text"), "c") - pc.multiply(pc.scalar(2), pc.field("n"))
    )
    assert isinstance(tree, CallNode)
    assert tree.function == "subtract_checked"
    counted, product = tree.operands
    assert isinstance(counted, CallNode)
    assert counted.operands == (FieldNode(("text",)),)
    assert counted.options is not None
    assert counted.options["pattern"].as_py() == "c"
    assert product == CallNode("multiply", (ConstantNode(pa.scalar(2)), FieldNode(("n",))), None)


def test_constants_keep_their_types() -> None:
    for constant in (
        pa.scalar(None, pa.string()),
        pa.scalar(1, pa.int8()),
        pa.scalar(5, pa.timestamp("s", "UTC")),
    ):
        assert expression_tree(pc.scalar(constant)) == ConstantNode(constant)


def test_a_nested_field_is_the_path_to_it() -> None:
    tree = expression_tree(pc.field("a", "b", "c").is_null())
    assert isinstance(tree, CallNode)
    assert tree.operands == (FieldNode(("a", "b", "c")),)
    assert list(tree_columns(tree)) == ["a"]


def test_a_name_of_several_lines_cannot_be_read() -> None:
    assert expression_tree(pc.field("two\nlines") == 1) is None
    assert expression_tree(pc.field("a'b: 'c'")) == FieldNode(("a'b: 'c'",))


def test_a_column_by_its_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must refer to columns by name"):
        expression_tree(pc.field(0))
