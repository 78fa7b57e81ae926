"""What says when a window fires."""

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Generic, TypeVar

from flinkcore.datastream.state import StateDescriptor
from flinkcore.datastream.window.window import Window
from flinkcore.errors import UnsupportedOperationError

T = TypeVar("T", contravariant=True)
W = TypeVar("W", bound=Window, contravariant=True)


class TriggerResult(Enum):
    """What happens with a window: whether its function is called, and whether its elements are dropped.

    Notes
    -----
    Follows ``pyflink.datastream.window.TriggerResult``. A window without elements does not fire.
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return whether the function is called."""
        return self is TriggerResult.FIRE or self is TriggerResult.FIRE_AND_PURGE

    def is_purge(self) -> bool:
        """Return whether the elements are dropped."""
        return self is TriggerResult.PURGE or self is TriggerResult.FIRE_AND_PURGE


class Trigger(ABC, Generic[T, W]):
    """Says for each element and each timer of a window of a key whether the window fires.

    A trigger holds nothing itself, as it serves all windows of all keys: its state is that of its context.

    Notes
    -----
    Follows ``pyflink.datastream.window.Trigger``. Deliberate difference: `on_merge` need not be defined where
    `can_merge` is False, as in Flink.
    """

    class TriggerContext(ABC):
        """What a trigger can ask and set, for the key and window at hand; valid during the call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark, in ms since the epoch; at first -2**63."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have `on_processing_time` called when the processing time reaches this one, in ms since the epoch."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have `on_event_time` called when the watermark reaches this time, in ms since the epoch."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a timer; one that is missing is no error."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete a timer; one that is missing is no error."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """Return the state that a descriptor declares, of the key and window at hand."""

    class OnMergeContext(TriggerContext):
        """What `on_merge` can ask and set, for the merged window."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Move what the merged windows have in a reducing, aggregating or list state into the new one's."""

    @abstractmethod
    def on_element(
        self, element: T, timestamp: int, window: W, ctx: "Trigger.TriggerContext"
    ) -> TriggerResult:
        """Handle an element that has been added to a window.

        Parameters
        ----------
        element : object
        timestamp : int
            In ms since the epoch; -2**63 if the element has none.
        window : Window
        ctx : Trigger.TriggerContext

        Returns
        -------
        TriggerResult
        """

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: "Trigger.TriggerContext") -> TriggerResult:
        """Handle a processing-time timer of a window; `time` is what it was registered for."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: "Trigger.TriggerContext") -> TriggerResult:
        """Handle an event-time timer of a window; `time` is what it was registered for."""

    def can_merge(self) -> bool:
        """Return whether the trigger works with windows that merge; then it defines `on_merge`."""
        return False

    def on_merge(self, window: W, ctx: "Trigger.OnMergeContext") -> None:
        """Handle that windows have become one: bring together their state, and set the timers of the new one.

        Parameters
        ----------
        window : Window
            The new one.
        ctx : Trigger.OnMergeContext
        """
        raise UnsupportedOperationError(f"{type(self).__name__} does not support merging")

    @abstractmethod
    def clear(self, window: W, ctx: "Trigger.TriggerContext") -> None:
        """Let go of the state and the timers of a window, which is dropped, or merged into another."""
