"""A function over the elements of a keyed stream, with timers and state per key."""

from abc import ABC, abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService


class KeyedProcessFunction(Function):
    """Gets every element of a keyed stream, and the timers that it registers for their keys.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedProcessFunction``. Where PyFlink in its process mode fires all due timers
    before it looks at what they register and delete, Flink, and this, look after each.
    """

    class Context(ABC):
        """What `process_element` can ask; valid during the call only."""

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
    def process_element(self, value: Any, ctx: "KeyedProcessFunction.Context") -> Results:
        """Process an element.

        Parameters
        ----------
        value : object
        ctx : KeyedProcessFunction.Context

        Returns
        -------
        iterable or None
            Yield rows, or other elements, or return a list of them; never a bare row, which would be taken for a
            list of its values. A pair of an `OutputTag` and an element goes to that side output. They carry the
            timestamp of the element.
        """

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext") -> Results:
        """Handle a timer of a key.

        Parameters
        ----------
        timestamp : int
            What the timer was registered for, in ms since the epoch.
        ctx : KeyedProcessFunction.OnTimerContext

        Returns
        -------
        iterable or None
            As of `process_element`. Elements carry the timestamp of an event-time timer; those of a
            processing-time timer carry none, in a side output that of the timer.

        Notes
        -----
        At the end of the log the watermark is the maximum, 2**63 - 1, and every event-time timer is due, also one that
        this registers then: check ``ctx.timer_service().current_watermark()`` before registering it. A key whose timers
        register a million further ones is taken for one without end: an error.
        """
        return None
