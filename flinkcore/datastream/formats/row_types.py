"""The types of rows that formats take, and of values in them."""

from __future__ import annotations

from types import UnionType
from typing import Any, Final

from flinkcore.common.typeinfo import BasicType, RowTypeInfo
from flinkcore.errors import ArgumentTypeError, DataError
from flinkcore.table.types import RowType

BITS: Final = {
    BasicType.BYTE: 8,
    BasicType.SHORT: 16,
    BasicType.INT: 32,
    BasicType.LONG: 64,
    BasicType.BIG_INT: None,
}
"""Bits of the types of whole numbers, or None without a limit."""


def of_class(value: Any, cls: type | UnionType, name: str) -> Any:
    """Return a value of a class; raise DataError, with the name of what it should be, for any other."""
    if isinstance(value, cls):
        return value
    raise DataError(f"{value!r:.80} is not of type {name}")


def checked_row_type(row_type: object, call: str) -> RowTypeInfo:
    """Return the type of rows, given as one of ``Types`` or ``DataTypes``; raise ConfigurationError for any other."""
    declared = declared_row(row_type, call)
    return declared.type_info() if isinstance(declared, RowType) else declared


def declared_row(row_type: object, call: str) -> RowTypeInfo | RowType:
    """Return the type of rows as it is; raise ConfigurationError if it is none."""
    if not isinstance(row_type, RowTypeInfo | RowType):
        raise ArgumentTypeError(
            f"{call} takes a type such as Types.ROW_NAMED(['user', 'age'], [Types.STRING(), Types.INT()]), "
            f"not {row_type!r}"
        )
    return row_type
