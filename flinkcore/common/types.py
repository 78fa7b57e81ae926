"""PyFlink's ``pyflink.common.types`` names: rows."""

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind

__all__ = ["Row", "RowKind"]
