"""What says which windows an element belongs to."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeVar

from flinkcore.common.serializer import Serializer
from flinkcore.datastream.functions.runtime_context import RuntimeContext
from flinkcore.datastream.window.trigger import Trigger
from flinkcore.datastream.window.window import Window
from flinkcore.datastream.window.window_stagger import WindowStagger
from flinkcore.errors import ConfigurationError

T = TypeVar("T")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


class WindowAssigner(ABC, Generic[T, W]):
    """States which windows an element belongs to.

    Notes
    -----
    Follows ``pyflink.datastream.window.WindowAssigner``. Where a job runs over columns, the native window operators
    read the fields of the built-in assigners, and `assign_windows` is not called.
    """

    class WindowAssignerContext(ABC):
        """What `assign_windows` can ask; valid during the call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the context of the task, with the keyed state of the element's key."""

        @abstractmethod
        def get_stagger_offset(self, window_stagger: WindowStagger, size_ms: int) -> int:
            """Return by how much windows of a size are staggered here, in ms: 0 up to the size, always the same."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: "WindowAssigner.WindowAssignerContext"
    ) -> Collection[W]:
        """Return the windows of an element.

        Parameters
        ----------
        element : object
        timestamp : int
            In ms since the epoch; -2**63 if the element has none.
        context : WindowAssigner.WindowAssignerContext

        Returns
        -------
        collection of Window
            May be empty.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any = None) -> Trigger[T, W]:
        """Return the trigger for these windows where no other is set; PyFlink gives the environment as `env`."""

    def get_window_serializer(self) -> Serializer | None:
        """Return what writes windows of a class of one's own; as PyFlink asks for it, and not used here."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return True exactly if windows depend on event time, False if they depend on the processing time."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """States also which windows of a key become one, such as sessions.

    Notes
    -----
    Follows ``pyflink.datastream.window.MergingWindowAssigner``.
    """

    class MergeCallback(ABC, Generic[W2]):
        """Takes what `merge_windows` finds."""

        @abstractmethod
        def merge(self, to_be_merged: Collection[W2], merge_result: W2) -> None:
            """Note that windows are to become one.

            Parameters
            ----------
            to_be_merged : collection of Window
                From those given to `merge_windows`.
            merge_result : Window
                What they become.
            """

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: "MergingWindowAssigner.MergeCallback[W]") -> None:
        """Tell which windows become one.

        Parameters
        ----------
        windows : iterable of Window
            Those of a key.
        callback : MergingWindowAssigner.MergeCallback
            To be called for every group.
        """


def require_assigner(assigner: WindowAssigner[T, W], call: str) -> WindowAssigner[T, W]:
    """Return an assigner; ConfigurationError if it is none."""
    if not isinstance(assigner, WindowAssigner):
        raise ConfigurationError(
            f"{call} takes an assigner such as TumblingEventTimeWindows.of(Time.hours(1)), not {assigner!r}"
        )
    return assigner
