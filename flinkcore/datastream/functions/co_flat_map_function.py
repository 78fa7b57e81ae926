"""Functions from one element of either of two streams to any number."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function, Results


class CoFlatMapFunction(Function):
    """Makes any number of elements of each element of two streams.

    Notes
    -----
    Follows ``pyflink.datastream.CoFlatMapFunction``.
    """

    @abstractmethod
    def flat_map1(self, value: Any) -> Results:
        """Yield what becomes of an element of the first stream, or return an iterable of it, or None."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Results:
        """Yield what becomes of an element of the second stream, or return an iterable of it, or None."""
