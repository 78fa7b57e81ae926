"""Functions from one element to one."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function


class MapFunction(Function):
    """Makes one element of each.

    Notes
    -----
    Follows ``pyflink.datastream.MapFunction``.
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return what becomes of an element."""
