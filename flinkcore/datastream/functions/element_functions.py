"""Functions of single elements, without time and timers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function, Results


class MapFunction(Function):
    """Makes one element from each element.

    Notes
    -----
    Follows ``pyflink.datastream.MapFunction``.
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return the result for an element."""


class FlatMapFunction(Function):
    """Makes any number of elements from each element.

    Notes
    -----
    Follows ``pyflink.datastream.FlatMapFunction``.
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Results:
        """Yield the results for an element, or return an iterable of them, or None."""


class FilterFunction(Function):
    """Selects elements.

    Notes
    -----
    Follows ``pyflink.datastream.FilterFunction``.
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return whether to keep an element."""


class CoMapFunction(Function):
    """Makes at most one element from each element of two streams; a result of None is dropped.

    Notes
    -----
    Follows ``pyflink.datastream.CoMapFunction``.
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return the result for an element of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return the result for an element of the second stream."""


class CoFlatMapFunction(Function):
    """Makes any number of elements from each element of two streams.

    Notes
    -----
    Follows ``pyflink.datastream.CoFlatMapFunction``.
    """

    @abstractmethod
    def flat_map1(self, value: Any) -> Results:
        """Yield the results for an element of the first stream, or return an iterable of them, or None."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Results:
        """Yield the results for an element of the second stream, or return an iterable of them, or None."""


class KeySelector(Function):
    """Extracts the key of an element: always the same one for the same element.

    Notes
    -----
    Follows ``pyflink.datastream.KeySelector``.
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key of an element."""


class NullByteKeySelector(KeySelector):
    """Key selector that returns one key for all elements, the byte 0.

    Notes
    -----
    Follows ``pyflink.datastream.functions.NullByteKeySelector``.
    """

    def get_key(self, value: Any) -> int:
        return 0


class Partitioner(Function):
    """Chooses the subtask that receives the elements of a key.

    Notes
    -----
    Follows ``pyflink.datastream.Partitioner``.
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return the index of the subtask, from 0 to `num_partitions` - 1."""


class SinkFunction(Function):
    """Consumes every element of a stream.

    Notes
    -----
    ``pyflink.datastream.functions.SinkFunction`` wraps a Java function; here a sink is a function in Python.
    """

    @abstractmethod
    def invoke(self, value: Any) -> None:
        """Consume an element."""
