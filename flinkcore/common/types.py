"""PyFlink's ``pyflink.common.types`` names: rows."""

from flinkcore.common.row import Row
from flinkcore.common.row_kind import RowKind

__all__ = ["Row", "RowKind"]
