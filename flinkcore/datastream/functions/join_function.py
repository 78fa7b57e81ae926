"""Functions over pairs of elements of two streams."""

from abc import abstractmethod
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function, Results

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes one element of every pair of elements of two streams.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.functions.JoinFunction``, which PyFlink's DataStream API does not have.
    """

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> OUT:
        """Return what a pair is joined to.

        Parameters
        ----------
        first, second : object
            An element of either stream.
        """


class FlatJoinFunction(Function, Generic[IN1, IN2]):
    """Makes any number of elements of every pair of elements of two streams.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.functions.FlatJoinFunction``, which PyFlink's DataStream API does not have.
    """

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> Results:
        """Join a pair.

        Parameters
        ----------
        first, second : object
            An element of either stream.

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them.
        """
