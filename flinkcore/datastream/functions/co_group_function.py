"""A function over two groups of elements, one of each of two streams."""

from abc import abstractmethod
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function, Results

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")


class CoGroupFunction(Function, Generic[IN1, IN2]):
    """Gets all elements that two streams have for a key, also where one of them has none.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.functions.CoGroupFunction``, which PyFlink's DataStream API does not have.
    """

    @abstractmethod
    def co_group(self, first: list[IN1], second: list[IN2]) -> Results:
        """Evaluate two groups.

        Parameters
        ----------
        first, second : list
            The elements of either stream, in the order in which they came; one of them may be empty.

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them.
        """
