"""The kinds of changes that rows describe."""

from enum import Enum

from flinkcore._internal.python.missing_features import WithoutJava


class RowKind(WithoutJava, Enum):
    """Kind of a change that a row makes to a table: an insertion, either half of an update, or a deletion.

    Notes
    -----
    Follows ``pyflink.common.RowKind``.

    Examples
    --------
    >>> print(RowKind.UPDATE_BEFORE)
    -U
    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT[self.value]


_SHORT = ("+I", "-U", "+U", "-D")
