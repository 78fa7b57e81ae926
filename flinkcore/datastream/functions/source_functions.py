"""Functions that emit elements themselves, and the contexts that they emit to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeAlias, TypeVar

from flinkcore.common.boundedness import Boundedness
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions.function import Function
from flinkcore.errors import UnsupportedOperationError

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
        """State that no element with this timestamp or an earlier one will follow."""

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """State that no element will come for a while; the next element or watermark ends the idleness."""

    @abstractmethod
    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """Return the lock held while elements and timers are handled; to be held while state changes with them."""

    @abstractmethod
    def close(self) -> None:
        """End the emission, and cancel all timers; closing twice is not an error."""


class PacedSourceContext(SourceContext[T]):
    """The context of a source function in a job, whose clock shows when elements arrive.

    Elements arrive at the rate of :meth:`ExecutionConfig.set_arrival_rate`, however long the function takes for them.
    All that it emits while it holds the checkpoint lock arrives at one time. A watermark, or idleness, comes at the
    time of the element before it. On the system clock they arrive when the function emits them.
    """

    @abstractmethod
    def sleep(self, duration_ms: int) -> None:
        """Let the next emission come so much later on the job's clock.

        On the arrival clock this takes no time. On the system clock the function waits, but no longer than until it is
        cancelled.

        Parameters
        ----------
        duration_ms : int
            In ms, not negative.

        Raises
        ------
        ConfigurationError
            If it is not a number of milliseconds.
        LifecycleError
            If the checkpoint lock is held: no timer could run meanwhile.
        """


class SourceFunction(Function):
    """Emits elements until it has no more, or is cancelled.

    :meth:`run` is called on a thread of its own, which emits ahead of the job by some elements. Everything else of the
    job runs on the job's thread, in the order in which the function emits.

    Notes
    -----
    Flink 1.20's ``org.apache.flink.streaming.api.functions.source.SourceFunction``, with the ``open`` and ``close`` of
    ``RichSourceFunction``. One subtask runs it; for several see :class:`ParallelSourceFunction`.
    ``pyflink.datastream.functions.SourceFunction`` wraps a Java function, which cannot run without a JVM.

    Examples
    --------
    >>> class Countdown(SourceFunction):
    ...     def __init__(self, start):
    ...         self.left = start
    ...
    ...     def run(self, ctx):
    ...         while self.left > 0:
    ...             with ctx.get_checkpoint_lock():
    ...                 ctx.collect(self.left)
    ...                 self.left -= 1
    ...
    ...     def cancel(self):
    ...         self.left = 0
    """

    SourceContext: TypeAlias = PacedSourceContext

    def __new__(cls, *arguments: Any, **settings: Any) -> SourceFunction:
        """Return a new function; an object of this class itself is refused with an UnsupportedOperationError."""
        if cls is SourceFunction:
            raise UnsupportedOperationError(
                "PyFlink's SourceFunction(...) wraps a Java function, which needs a JVM: derive a class from it with "
                "run(ctx) and cancel() in Python, or take env.from_collection(...), env.from_source(...) or "
                "env.from_event_log(...)"
            )
        return super().__new__(cls)

    @property
    def boundedness(self) -> Boundedness:
        """Return whether the function ends by itself; an unbounded one cannot run in batch mode."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    @abstractmethod
    def run(self, ctx: PacedSourceContext[Any]) -> None:
        """Emit all elements, and return when there are no more, or after :meth:`cancel`."""

    @abstractmethod
    def cancel(self) -> None:
        """Let :meth:`run` return soon; called on another thread, if the job ends before the function does."""


class ParallelSourceFunction(SourceFunction):
    """A source function that every subtask of its step runs, each with a copy of its own.

    Notes
    -----
    Flink 1.20's ``ParallelSourceFunction``, and with ``open`` and ``close`` ``RichParallelSourceFunction``.
    """
