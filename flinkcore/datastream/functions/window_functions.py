"""Functions of the elements of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.functions.runtime_context import KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key when it fires.

    Notes
    -----
    Follows ``pyflink.datastream.WindowFunction``. :class:`ProcessWindowFunction` also knows the time, and has state.
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Results:
        """Evaluate a window.

        Parameters
        ----------
        key : object
        window : Window
        inputs : iterable
            Elements of the window; after a reduce or aggregate function, its one result.

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them. A pair of an `OutputTag` and an element goes to that side
            output. They carry the largest timestamp of the window.
        """


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys when it fires.

    Notes
    -----
    Follows ``pyflink.datastream.AllWindowFunction``.
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Results:
        """Evaluate a window; parameters and results as of `WindowFunction.apply`."""


class WindowContext(ABC, Generic[W]):
    """The window, the time and the state; valid during the call only."""

    @abstractmethod
    def window(self) -> W:
        """Return the window that fires, or is dropped."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the watermark, in ms since the epoch."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the state of the key and window, to be asked for in each call, and cleared by the function's `clear`.

        Merging windows have none: asking for a state is an UnsupportedOperationError.
        """

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the state of the key, which outlives its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key when it fires, with the time and state.

    Notes
    -----
    Follows ``pyflink.datastream.ProcessWindowFunction``.
    """

    class Context(WindowContext[W2]):
        """The context of `process` and `clear`; valid during the call only."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Results:
        """Evaluate a window; the other parameters and the results as of `WindowFunction.apply`."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the state of a window that is dropped."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys when it fires, with the time and state.

    Notes
    -----
    Follows ``pyflink.datastream.ProcessAllWindowFunction``, whose context does not know the time.
    """

    class Context(WindowContext[W2]):
        """The context of `process` and `clear`; valid during the call only."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Results:
        """Evaluate a window; the other parameters and the results as of `WindowFunction.apply`."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the state of a window that is dropped."""
