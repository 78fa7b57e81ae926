"""Assigners: which windows an element belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Any, Generic, TypeVar

from flinkcore.common.serializer import Serializer
from flinkcore.datastream.functions.runtime_context import RuntimeContext
from flinkcore.datastream.window.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from flinkcore.datastream.window.windows import TimeWindow, Window
from flinkcore.errors import ArgumentTypeError

T = TypeVar("T")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


class WindowStagger(Enum):
    """Staggering of tumbling windows.

    ``ALIGNED``: not at all. ``RANDOM``: by a random part of their size. ``NATURAL``: by the processing time of the
    first element, counted from the start of its window.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.assigners.WindowStagger``. Deliberate difference: where Flink
    draws one offset per subtask, each key group has its own here, and a random one depends on the key group alone, so
    that results do not depend on the number of partitions.
    """

    ALIGNED = "aligned"
    RANDOM = "random"
    NATURAL = "natural"

    def get_stagger_offset(self, current_processing_time: int, size_ms: int, key_group: int) -> int:
        """Return the offset of a key group.

        Parameters
        ----------
        current_processing_time : int
            Arrival of the key group's first element, in ms since the epoch.
        size_ms : int
            Size of the windows in ms.
        key_group : int

        Returns
        -------
        int
            In ms, from 0 to the size.
        """
        if self is WindowStagger.RANDOM:
            import random

            return int(random.Random(key_group).random() * size_ms)
        return current_processing_time % size_ms if self is WindowStagger.NATURAL else 0


class WindowAssigner(ABC, Generic[T, W]):
    """Decides which windows an element belongs to.

    Notes
    -----
    Follows ``pyflink.datastream.window.WindowAssigner``. In a columnar job the native window operators read the fields
    of the built-in assigners, and `assign_windows` is not called.
    """

    class WindowAssignerContext(ABC):
        """The time and the task, as `assign_windows` sees them; valid during the call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the context of the task, with the keyed state of the element's key."""

        @abstractmethod
        def get_stagger_offset(self, window_stagger: WindowStagger, size_ms: int) -> int:
            """Return by how much windows of a size are staggered here: from 0 to the size, in ms, always the same."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
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
            Windows of the element; built-in assigners return the latest or longest one first. May be empty.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any = None) -> Trigger[T, W]:
        """Return the trigger of these windows unless another is set; `env` is the environment, as in PyFlink."""

    def get_window_serializer(self) -> Serializer | None:
        """Return the serializer of windows of a class of your own; PyFlink asks for it, here it is not used."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return True exactly if windows depend on event time; elements of others are never late."""

    @property
    def in_words(self) -> str:
        """The windows as messages and plans name them; of a class of your own, its text."""
        return str(self)


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Assigns windows of which some merge into one, such as sessions.

    Notes
    -----
    Follows ``pyflink.datastream.window.MergingWindowAssigner``.
    """

    class MergeCallback(ABC, Generic[W2]):
        """Receives the merges that `merge_windows` finds."""

        @abstractmethod
        def merge(self, to_be_merged: Collection[W2], merge_result: W2) -> None:
            """Merge windows.

            Parameters
            ----------
            to_be_merged : collection of Window
                Some of those given to `merge_windows`.
            merge_result : Window
                The window that takes their place.
            """

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Decide which windows are merged.

        Parameters
        ----------
        windows : iterable of Window
            All open windows of a key.
        callback : MergingWindowAssigner.MergeCallback
            To be called once for every group of windows that merge.
        """


def require_assigner(assigner: WindowAssigner[T, W], call: str) -> WindowAssigner[T, W]:
    """Return an assigner as it is; raise ConfigurationError for anything else."""
    if not isinstance(assigner, WindowAssigner):
        raise ArgumentTypeError(
            f"{call} takes an assigner such as TumblingEventTimeWindows.of(Time.hours(1)), not {assigner!r}"
        )
    return assigner


class TimeWindowAssigner(WindowAssigner[Any, TimeWindow]):
    """Assigns windows by the time of an element, on either clock."""

    @abstractmethod
    def windows_at(
        self, time_ms: int, element: Any, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows of an element at a time in ms since the epoch; -2**63 if it has no event time."""


class EventTimeWindowAssigner(TimeWindowAssigner):
    """Assigns windows of event time, which fire by an EventTimeTrigger."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self.windows_at(timestamp, element, context)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class ProcessingTimeWindowAssigner(TimeWindowAssigner):
    """Assigns windows of processing time, which fire by a ProcessingTimeTrigger."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self.windows_at(context.get_current_processing_time(), element, context)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False
