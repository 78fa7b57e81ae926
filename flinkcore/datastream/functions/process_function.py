"""A function over the elements of a stream."""

from abc import ABC, abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.timerservice import TimerService


class ProcessFunction(Function):
    """Gets every element of a stream, with its timestamp and the time.

    Notes
    -----
    Follows ``pyflink.datastream.ProcessFunction``. Timers need a keyed stream: see
    :class:`KeyedProcessFunction`.
    """

    class Context(ABC):
        """What `process_element` can ask; valid during the call only."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service that knows the time; registering a timer with it is an error."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the element's timestamp, in ms since the epoch; None if it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: "ProcessFunction.Context") -> Results:
        """Process an element.

        Parameters
        ----------
        value : object
        ctx : ProcessFunction.Context

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them. A pair of an `OutputTag` and an element goes to that
            side output. They carry the timestamp of the element.
        """
