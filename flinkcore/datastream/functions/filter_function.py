"""Functions that choose elements."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function


class FilterFunction(Function):
    """Tells which elements go on.

    Notes
    -----
    Follows ``pyflink.datastream.FilterFunction``.
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return whether an element goes on."""
