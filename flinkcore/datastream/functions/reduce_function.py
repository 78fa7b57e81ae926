"""Functions that make one value of two of the same type."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function
from flinkcore.errors import ConfigurationError

T = TypeVar("T")


class ReduceFunction(Function, Generic[T]):
    """Combines values, two at a time, into one of the same type.

    Notes
    -----
    Follows ``pyflink.datastream.ReduceFunction``. It is to be associative: what it is given as first value may
    be one element, or what many were reduced to.
    """

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Return what two values are together; `value1` came first."""


class ReduceFunctionWrapper(ReduceFunction[T]):
    """A plain function of two values as a :class:`ReduceFunction`.

    Parameters
    ----------
    function : callable

    Notes
    -----
    Follows ``pyflink.datastream.functions.ReduceFunctionWrapper``.
    """

    def __init__(self, function: Callable[[T, T], T]) -> None:
        self._function = function

    @property
    def wrapped_function(self) -> Callable[[T, T], T]:
        """The plain function."""
        return self._function

    def reduce(self, value1: T, value2: T) -> T:
        """Return what the function gives."""
        return self._function(value1, value2)


def as_reduce_function(function: ReduceFunction[T] | Callable[[T, T], T]) -> ReduceFunction[T]:
    """Return a :class:`ReduceFunction`, made of a plain function where it is none.

    Raises
    ------
    ConfigurationError
        If it cannot be called. (PyFlink raises TypeError.)
    """
    if isinstance(function, ReduceFunction):
        return function
    if callable(function):
        return ReduceFunctionWrapper(function)
    raise ConfigurationError(
        f"to reduce takes a ReduceFunction or a function of two values, not {function!r}"
    )
