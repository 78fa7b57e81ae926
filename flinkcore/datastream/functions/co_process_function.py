"""A function over the elements of two connected streams."""

from abc import ABC, abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.timerservice import TimerService


class CoProcessFunction(Function):
    """Gets every element of two streams, each kind by its own method.

    Notes
    -----
    Follows ``pyflink.datastream.CoProcessFunction``. Timers need keyed streams: see
    :class:`KeyedCoProcessFunction`.
    """

    class Context(ABC):
        """What both methods can ask; valid during the call only."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service that knows the time; registering a timer with it is an error."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the element's timestamp, in ms since the epoch; None if it has none."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: "CoProcessFunction.Context") -> Results:
        """Process an element of the first stream; results as of `ProcessFunction.process_element`."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: "CoProcessFunction.Context") -> Results:
        """Process an element of the second stream; results as of `ProcessFunction.process_element`."""
