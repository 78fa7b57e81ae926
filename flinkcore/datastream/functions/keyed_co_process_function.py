"""A function over the elements of two keyed streams, with timers and state per key."""

from abc import ABC, abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService


class KeyedCoProcessFunction(Function):
    """Gets every element of two keyed streams, and the timers that it registers for their keys.

    Both streams are keyed by the same kind of key: an element of either sees the state and the timers that the
    other left for its key.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedCoProcessFunction``.
    """

    class Context(ABC):
        """What `process_element1` and `process_element2` can ask; valid during the call only."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the element, or of the timer."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service that knows the time, and registers and deletes timers of the current key."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the timestamp of the element, None if it has none; or that of the timer, in both domains."""

    class OnTimerContext(Context):
        """What `on_timer` can ask; valid during the call only."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether it is an event-time or a processing-time timer."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: "KeyedCoProcessFunction.Context") -> Results:
        """Process an element of the first stream; results as of `KeyedProcessFunction.process_element`."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: "KeyedCoProcessFunction.Context") -> Results:
        """Process an element of the second stream; results as of `KeyedProcessFunction.process_element`."""

    def on_timer(self, timestamp: int, ctx: "KeyedCoProcessFunction.OnTimerContext") -> Results:
        """Handle a timer of a key; parameters and results as of `KeyedProcessFunction.on_timer`."""
        return None
