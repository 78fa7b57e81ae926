"""Functions over the elements of a window that know the time, and have state."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.functions.keyed_state_store import KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowContext(ABC, Generic[W]):
    """What a function over windows can ask; valid during the call only."""

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
        """Return the state of the key and window, to be asked for anew in each call; `clear` is to clear it.

        Windows that merge have none: asking it for a state is an UnsupportedOperationError.
        """

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the state of the key, which outlives its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Gets all elements of a window of a key when the window fires, with the time and state.

    Notes
    -----
    Follows ``pyflink.datastream.ProcessWindowFunction``.
    """

    class Context(WindowContext[W2]):
        """What `process` and `clear` can ask; valid during the call only."""

    @abstractmethod
    def process(
        self, key: KEY, context: "ProcessWindowFunction.Context[W]", elements: Iterable[IN]
    ) -> Results:
        """Evaluate a window.

        Parameters
        ----------
        key : object
        context : ProcessWindowFunction.Context
        elements : iterable
            Those of the window; or the one result of the reduce or aggregate function that comes before.

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them. A pair of an `OutputTag` and an element goes to that
            side output. They carry the largest timestamp of the window.
        """

    def clear(self, context: "ProcessWindowFunction.Context[W]") -> None:
        """Clear the state of a window that is dropped."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Gets all elements of a window of a stream that is not keyed, with the time and state.

    Notes
    -----
    Follows ``pyflink.datastream.ProcessAllWindowFunction``, whose context does not tell the time.
    """

    class Context(WindowContext[W2]):
        """What `process` and `clear` can ask; valid during the call only."""

    @abstractmethod
    def process(self, context: "ProcessAllWindowFunction.Context[W]", elements: Iterable[IN]) -> Results:
        """Evaluate a window; parameters and results as of `ProcessWindowFunction.process`."""

    def clear(self, context: "ProcessAllWindowFunction.Context[W]") -> None:
        """Clear the state of a window that is dropped."""
