"""A function over pairs of elements of two keyed streams whose timestamps are close."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function, Results

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")


class ProcessJoinFunction(Function, Generic[IN1, IN2]):
    """Gets every pair of an interval join.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.functions.co.ProcessJoinFunction``, which PyFlink does not have.
    """

    class Context(ABC):
        """What `process_element` can ask; valid during the call only."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the left element, in ms since the epoch."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the right element, in ms since the epoch."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the timestamp of the pair, and of what is given for it: the greater one of both."""

    @abstractmethod
    def process_element(self, left: IN1, right: IN2, ctx: "ProcessJoinFunction.Context") -> Results:
        """Process a pair.

        Parameters
        ----------
        left, right : object
            An element of either stream.
        ctx : ProcessJoinFunction.Context

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them. A pair of an `OutputTag` and an element goes to that
            side output.
        """
