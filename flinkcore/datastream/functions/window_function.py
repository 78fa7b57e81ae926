"""Functions over the elements of a window."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function, Results

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Gets all elements of a window of a key when the window fires.

    Notes
    -----
    Follows ``pyflink.datastream.WindowFunction``. :class:`ProcessWindowFunction` can ask for more.
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Results:
        """Evaluate a window.

        Parameters
        ----------
        key : object
        window : Window
        inputs : iterable
            Its elements; or the one result of the reduce or aggregate function that comes before.

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them. A pair of an `OutputTag` and an element goes to that
            side output. They carry the largest timestamp of the window.
        """


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Gets all elements of a window of a stream that is not keyed.

    Notes
    -----
    Follows ``pyflink.datastream.AllWindowFunction``.
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Results:
        """Evaluate a window; parameters and results as of `WindowFunction.apply`."""
