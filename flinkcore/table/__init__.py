"""PyFlink's ``pyflink.table`` names that formats of files need: types of data, and rows."""

from typing import NoReturn

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.table.types import DataTypes

__all__ = ["DataTypes", "Row", "RowKind"]


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has and flinkcore does not."""
    refuse_name(__name__, name)
