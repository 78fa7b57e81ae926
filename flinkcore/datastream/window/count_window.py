"""Windows of so many elements."""

from typing import NamedTuple

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.datastream.window.window import Window


class _Id(NamedTuple):
    id: int


class CountWindow(_Id, Window):
    """A window by its number among those of its key.

    Parameters
    ----------
    id : int
        From 0 on.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountWindow``.
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        """Return the largest timestamp there is: time does not end the window."""
        return MAX_TIMESTAMP
