"""The types of rows that formats take."""

from __future__ import annotations

from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.errors import ConfigurationError
from flinkcore.table.types import RowType


def checked_row_type(row_type: object, call: str) -> RowTypeInfo:
    """Return the type of rows, given as one of ``Types`` or ``DataTypes``; raise ConfigurationError for any other."""
    if isinstance(row_type, RowType):
        return row_type.type_info()
    if not isinstance(row_type, RowTypeInfo):
        raise ConfigurationError(
            f"{call} takes a type such as Types.ROW_NAMED(['user', 'age'], [Types.STRING(), Types.INT()]), "
            f"not {row_type!r}"
        )
    return row_type
