"""Column expressions of pyarrow, recognised without importing pyarrow for it."""

from typing import Any, TypeAlias

# pyarrow.compute.Expression; the name is not imported, so that reading the API does not load pyarrow.
Expression: TypeAlias = Any


def is_expression(value: object) -> bool:
    """Return True exactly if the value is a ``pyarrow.compute.Expression``."""
    if value is None or isinstance(value, str | int | float):
        return False
    import pyarrow.compute

    return isinstance(value, pyarrow.compute.Expression)


def same_expression(left: object, right: object) -> bool:
    """Return True exactly if both are equal; ``==`` between expressions builds a third one."""
    if is_expression(left) and is_expression(right):
        return bool(left.equals(right))  # type: ignore[attr-defined]
    return not is_expression(left) and not is_expression(right) and left == right
