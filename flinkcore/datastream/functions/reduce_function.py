"""Functions that combine values: reduce and aggregate functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function
from flinkcore.errors import ArgumentTypeError

T = TypeVar("T")
IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class ReduceFunction(Function, Generic[T]):
    """Combines values, two at a time, into one of the same type.

    Notes
    -----
    Follows ``pyflink.datastream.ReduceFunction``. It must be associative: its first value may be an element, or the
    result of reducing many.
    """

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Return the combination of two values; `value1` arrived first."""


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
        return self._function(value1, value2)


def as_reduce_function(function: ReduceFunction[T] | Callable[[T, T], T]) -> ReduceFunction[T]:
    """Return a :class:`ReduceFunction` as it is, and a plain function wrapped in one.

    Raises
    ------
    ArgumentTypeError
        If it cannot be called.
    """
    if isinstance(function, ReduceFunction):
        return function
    if callable(function):
        return ReduceFunctionWrapper(function)
    raise ArgumentTypeError(f"to reduce takes a ReduceFunction or a function of two values, not {function!r}")


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """Aggregates values in an accumulator, whose type may differ from those of values and result.

    Notes
    -----
    Follows ``pyflink.datastream.AggregateFunction``. Accumulators may be changed in place, but must also be returned: a
    window whose accumulator is None has no result.
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Return the accumulator of no values."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """Return the accumulator with one more value."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """Return the result of an accumulator."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Return the accumulator of the values of both."""
