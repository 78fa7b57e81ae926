"""Process functions: functions of elements that know the time, and on keyed streams have timers and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService

if TYPE_CHECKING:
    from flinkcore.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState

K = TypeVar("K")
V = TypeVar("V")


class _Context(ABC):
    """The element that is processed; valid during the call only."""

    @abstractmethod
    def timestamp(self) -> int:
        """Return the timestamp of the element or timer, in ms since the epoch.

        Notes
        -----
        The timestamp is -2**63 for an element without one, as in PyFlink; Java's contexts return null there.
        """


class _TimerServiceContext(_Context):
    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the service that knows the time, and registers and deletes timers of the current key.

        Without a key, registering a timer is an error.
        """


class _KeyedContext(_TimerServiceContext):
    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the element, or of the timer."""


class _TimerContext(ABC):
    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return whether the timer is an event-time or a processing-time timer."""


class ProcessFunction(Function):
    """Processes every element of a stream, with its timestamp and the time.

    Notes
    -----
    Follows ``pyflink.datastream.ProcessFunction``. Timers need a keyed stream: see :class:`KeyedProcessFunction`.
    """

    class Context(_TimerServiceContext):
        """The context of `process_element`; valid during the call only."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Results:
        """Process an element.

        Parameters
        ----------
        value : object
        ctx : ProcessFunction.Context

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them. A pair of an `OutputTag` and an element goes to that side
            output. They carry the timestamp of the element.
        """


class KeyedProcessFunction(Function):
    """Processes every element of a keyed stream, and the timers that it registers for keys.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedProcessFunction``. PyFlink's process mode fires all due timers before it looks at
    those that they register and delete; here, as in Flink, each timer sees what the ones before it did.
    """

    class Context(_KeyedContext):
        """The context of `process_element`; valid during the call only."""

    class OnTimerContext(Context, _TimerContext):
        """The context of `on_timer`; valid during the call only."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Results:
        """Process an element.

        Parameters
        ----------
        value : object
        ctx : KeyedProcessFunction.Context

        Returns
        -------
        iterable or None
            Yield rows, or other elements, or return a list of them; never a bare row, which would be taken for a list
            of its values. A pair of an `OutputTag` and an element goes to that side output. They carry the timestamp of
            the element.
        """

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Results:
        """Handle a timer of a key.

        Parameters
        ----------
        timestamp : int
            Time for which the timer was registered, in ms since the epoch.
        ctx : KeyedProcessFunction.OnTimerContext

        Returns
        -------
        iterable or None
            As of `process_element`. Elements carry the timestamp of an event-time timer; those of a processing-time
            timer carry none, in a side output that of the timer.

        Notes
        -----
        The timers that fire at the end of the log are described by :class:`~flinkcore.datastream.TimerService`.
        """
        return None


class CoProcessFunction(Function):
    """Processes every element of two streams, with a method for each stream.

    Notes
    -----
    Follows ``pyflink.datastream.CoProcessFunction``. On keyed streams its contexts are those of a
    :class:`KeyedCoProcessFunction`, and `on_timer` is called for its timers.
    """

    class Context(_TimerServiceContext):
        """The context of both methods; valid during the call only."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Results:
        """Process an element of the first stream; results as of `ProcessFunction.process_element`."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Results:
        """Process an element of the second stream; results as of `ProcessFunction.process_element`."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Results:
        """Handle a timer of a key; parameters and results as of `KeyedProcessFunction.on_timer`."""
        return None


class KeyedCoProcessFunction(Function):
    """Processes every element of two keyed streams, and the timers that it registers for keys.

    Both streams have keys of the same type: an element of either sees the state and the timers of its key, whichever
    stream they come from.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedCoProcessFunction``.
    """

    class Context(_KeyedContext):
        """The context of `process_element1` and `process_element2`; valid during the call only."""

    class OnTimerContext(Context, _TimerContext):
        """The context of `on_timer`; valid during the call only."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Results:
        """Process an element of the first stream; results as of `KeyedProcessFunction.process_element`."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Results:
        """Process an element of the second stream; results as of `KeyedProcessFunction.process_element`."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Results:
        """Handle a timer of a key; parameters and results as of `KeyedProcessFunction.on_timer`."""
        return None


class BaseBroadcastProcessFunction(Function):
    """Base of the two broadcast process functions.

    Notes
    -----
    Follows ``pyflink.datastream.functions.BaseBroadcastProcessFunction``.
    """

    class BaseContext(_Context):
        """The time, as every method sees it; valid during the call only."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark, in ms since the epoch."""

    class Context(BaseContext):
        """The context of the broadcast side; keyed state is out of reach, as there is no current key."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
            """Return a broadcast state, to be read and changed."""

    class ReadOnlyContext(BaseContext):
        """The context of the other side."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor[K, V]
        ) -> ReadOnlyBroadcastState[K, V]:
            """Return a broadcast state, to be read."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Processes every element of a stream, and in every subtask every element of a broadcast stream.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastProcessFunction``.
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of `process_element`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Results:
        """Process an element of the stream; results as of `ProcessFunction.process_element`."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Results:
        """Process an element of the broadcast stream, in every subtask alike; results as of `process_element`."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Processes every element of a keyed stream with timers and state, and every element of a broadcast stream.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedBroadcastProcessFunction``. Like PyFlink, it has no ``apply_to_keyed_state``.
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, _KeyedContext):
        """The context of `process_element`."""

    class OnTimerContext(ReadOnlyContext, _TimerContext):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Results:
        """Process an element of the keyed stream; results as of `KeyedProcessFunction.process_element`."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Results:
        """Process an element of the broadcast stream, in every subtask alike; results as of `process_element`."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Results:
        """Handle a timer of a key; parameters and results as of `KeyedProcessFunction.on_timer`."""
        return None
