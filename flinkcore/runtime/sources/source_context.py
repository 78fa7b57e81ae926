"""What a source function emits to, and what becomes of that once it is closed."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Generic, NoReturn, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.errors import LifecycleError

T = TypeVar("T")


class SourceContext(ABC, Generic[T]):
    """Takes the records, watermarks and idleness of a source function.

    Notes
    -----
    Flink's ``SourceFunction.SourceContext``.
    """

    @abstractmethod
    def collect(self, element: T) -> None:
        """Emit an element without giving a timestamp."""

    @abstractmethod
    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        """Emit an element with its event time, in ms since the epoch."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """State that no element with this timestamp or an earlier one will come."""

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """State that nothing will come for a while; the next element or watermark ends that."""

    @property
    @abstractmethod
    def checkpoint_lock(self) -> AbstractContextManager[Any]:
        """The lock under which elements and timers are handled, to be held where state changes with them."""

    @abstractmethod
    def close(self) -> None:
        """End the emission, and cancel what is scheduled."""


class ClosedContext(SourceContext[T]):
    """Refuses everything: the source was closed."""

    def __init__(self, checkpoint_lock: AbstractContextManager[Any]) -> None:
        self._checkpoint_lock = checkpoint_lock

    def collect(self, element: T) -> None:
        """Raise a LifecycleError."""
        self._refuse("an element")

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        """Raise a LifecycleError."""
        self._refuse(f"an element at {timestamp_ms} ms")

    def emit_watermark(self, watermark: Watermark) -> None:
        """Raise a LifecycleError."""
        self._refuse(f"the watermark {watermark.timestamp}")

    def mark_as_temporarily_idle(self) -> None:
        """Raise a LifecycleError."""
        self._refuse("its idleness")

    @property
    def checkpoint_lock(self) -> AbstractContextManager[Any]:
        """The lock of the context that was closed."""
        return self._checkpoint_lock

    def close(self) -> None:
        """Do nothing: closing twice is no error."""

    def _refuse(self, what: str) -> NoReturn:
        raise LifecycleError(f"the source context was closed already: the source cannot emit {what} any more")


class SwitchingOnCloseContext(SourceContext[T]):
    """Passes everything to a context until it is closed, and refuses everything after.

    Notes
    -----
    Flink's ``StreamSourceContexts.SwitchingOnClose``.
    """

    def __init__(self, nested: SourceContext[T]) -> None:
        self._nested = nested

    def collect(self, element: T) -> None:
        """Emit an element without giving a timestamp."""
        self._nested.collect(element)

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        """Emit an element with its event time, in ms since the epoch."""
        self._nested.collect_with_timestamp(element, timestamp_ms)

    def emit_watermark(self, watermark: Watermark) -> None:
        """State that no element with this timestamp or an earlier one will come."""
        self._nested.emit_watermark(watermark)

    def mark_as_temporarily_idle(self) -> None:
        """State that nothing will come for a while."""
        self._nested.mark_as_temporarily_idle()

    @property
    def checkpoint_lock(self) -> AbstractContextManager[Any]:
        """The lock of the nested context."""
        return self._nested.checkpoint_lock

    def close(self) -> None:
        """Close the nested context; from now on all but closing raises a LifecycleError."""
        self._nested.close()
        self._nested = ClosedContext(self._nested.checkpoint_lock)
