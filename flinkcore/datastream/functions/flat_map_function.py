"""Functions from one element to any number."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function, Results


class FlatMapFunction(Function):
    """Makes any number of elements of each.

    Notes
    -----
    Follows ``pyflink.datastream.FlatMapFunction``.
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Results:
        """Yield what becomes of an element, or return an iterable of it, or None."""
