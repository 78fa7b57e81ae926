"""Functions from one element of either of two streams to one."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function


class CoMapFunction(Function):
    """Makes at most one element of each element of two streams; None is left out.

    Notes
    -----
    Follows ``pyflink.datastream.CoMapFunction``.
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return what becomes of an element of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return what becomes of an element of the second stream."""
