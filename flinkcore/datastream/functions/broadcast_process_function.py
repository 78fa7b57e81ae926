"""Functions over the elements of a stream and of one that is broadcast to all its subtasks."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService

if TYPE_CHECKING:
    from flinkcore.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState

K = TypeVar("K")
V = TypeVar("V")


class BaseBroadcastProcessFunction(Function):
    """What both broadcast process functions have in common.

    Notes
    -----
    Follows ``pyflink.datastream.functions.BaseBroadcastProcessFunction``.
    """

    class BaseContext(ABC):
        """What every method can ask; valid during the call only."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the timestamp of the element, None if it has none; or that of the timer."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark, in ms since the epoch."""

    class Context(BaseContext):
        """What the broadcast side can ask."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: "MapStateDescriptor[K, V]") -> "BroadcastState[K, V]":
            """Return a broadcast state, to be read and changed."""

    class ReadOnlyContext(BaseContext):
        """What the other side can ask."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: "MapStateDescriptor[K, V]"
        ) -> "ReadOnlyBroadcastState[K, V]":
            """Return a broadcast state, to be read."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Gets every element of a stream, and in every subtask every element of a broadcast stream.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastProcessFunction``.
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """What `process_broadcast_element` can ask."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """What `process_element` can ask."""

    @abstractmethod
    def process_element(self, value: Any, ctx: "BroadcastProcessFunction.ReadOnlyContext") -> Results:
        """Process an element of the stream; results as of `ProcessFunction.process_element`."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: "BroadcastProcessFunction.Context") -> Results:
        """Process an element of the broadcast stream, in every subtask alike; results as of `process_element`."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Gets every element of a keyed stream with timers and state, and every element of a broadcast stream.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedBroadcastProcessFunction``. Like PyFlink, it has no ``apply_to_keyed_state``.
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """What `process_broadcast_element` can ask. There is no current key: keyed state is out of reach."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """What `process_element` can ask."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service that registers and deletes timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the element, or of the timer."""

    class OnTimerContext(ReadOnlyContext):
        """What `on_timer` can ask."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether it is an event-time or a processing-time timer."""

    @abstractmethod
    def process_element(self, value: Any, ctx: "KeyedBroadcastProcessFunction.ReadOnlyContext") -> Results:
        """Process an element of the keyed stream; results as of `KeyedProcessFunction.process_element`."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: "KeyedBroadcastProcessFunction.Context") -> Results:
        """Process an element of the broadcast stream, in every subtask alike; results as of `process_element`."""

    def on_timer(self, timestamp: int, ctx: "KeyedBroadcastProcessFunction.OnTimerContext") -> Results:
        """Handle a timer of a key; parameters and results as of `KeyedProcessFunction.on_timer`."""
        return None
