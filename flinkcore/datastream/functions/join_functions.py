"""Functions of joins, and of windows that hold elements of two streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.functions.reduce_function import ReduceFunctionWrapper
from flinkcore.datastream.functions.runtime_context import RuntimeContext
from flinkcore.datastream.functions.window_functions import WindowFunction

T1 = TypeVar("T1")
T2 = TypeVar("T2")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")


class TaggedUnion(Generic[T1, T2]):
    """An element of either of two streams in a window of both, as triggers and evictors of a join receive it.

    Parameters
    ----------
    value : object
    is_second : bool

    Notes
    -----
    Flink's ``org.apache.flink.util.TaggedUnion``.
    """

    __slots__ = ("_is_second", "_value")

    def __init__(self, value: Any, is_second: bool) -> None:
        self._value = value
        self._is_second = is_second

    @classmethod
    def one(cls, value: T1) -> TaggedUnion[T1, Any]:
        """Return an element of the first stream."""
        return cls(value, False)

    @classmethod
    def two(cls, value: T2) -> TaggedUnion[Any, T2]:
        """Return an element of the second stream."""
        return cls(value, True)

    def is_one(self) -> bool:
        """Return whether this is an element of the first stream."""
        return not self._is_second

    def is_two(self) -> bool:
        """Return whether this is an element of the second stream."""
        return self._is_second

    def get_one(self) -> T1 | None:
        """Return the element of the first stream; None if this is one of the second."""
        return None if self._is_second else self._value

    def get_two(self) -> T2 | None:
        """Return the element of the second stream; None if this is one of the first."""
        return self._value if self._is_second else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaggedUnion):
            return NotImplemented
        return self._is_second == other._is_second and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((self._is_second, self._value))

    def __repr__(self) -> str:
        return f"TaggedUnion.{'two' if self._is_second else 'one'}({self._value!r})"


class ProcessJoinFunction(Function, Generic[IN1, IN2]):
    """Processes every pair of an interval join.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.functions.co.ProcessJoinFunction``, which PyFlink does not have.
    """

    class Context(ABC):
        """The timestamps of the pair; valid during the call only."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the left element, in ms since the epoch."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the right element, in ms since the epoch."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the timestamp of the pair and of its results, in ms since the epoch: the greater one of both."""

    @abstractmethod
    def process_element(self, left: IN1, right: IN2, ctx: ProcessJoinFunction.Context) -> Results:
        """Process a pair.

        Parameters
        ----------
        left, right : object
            An element of either stream.
        ctx : ProcessJoinFunction.Context

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them. A pair of an `OutputTag` and an element goes to that
            side output.
        """


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes one element from every pair of elements of two streams.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.functions.JoinFunction``, which PyFlink's DataStream API does not have.
    """

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> OUT:
        """Return the result for a pair: an element of the first stream, and one of the second."""


class FlatJoinFunction(Function, Generic[IN1, IN2]):
    """Makes any number of elements from every pair of elements of two streams.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.functions.FlatJoinFunction``, which PyFlink's DataStream API does not have.
    """

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> Results:
        """Yield the results for a pair, or return an iterable of them, or None."""


class CoGroupFunction(Function, Generic[IN1, IN2]):
    """Function of all elements that two streams have for a key and window; one of them may have none.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.functions.CoGroupFunction``, which PyFlink's DataStream API does not have.
    """

    @abstractmethod
    def co_group(self, first: list[IN1], second: list[IN2]) -> Results:
        """Evaluate two groups.

        Parameters
        ----------
        first, second : list
            The elements of either stream, in order of arrival; one of the lists may be empty.

        Returns
        -------
        iterable or None
            Yield elements, or return an iterable of them.
        """


WindowJoinFunction = CoGroupFunction[Any, Any] | JoinFunction[Any, Any, Any] | FlatJoinFunction[Any, Any]


class CoGroupWindowFunction(WindowFunction[TaggedUnion[Any, Any], Any, Any, Any]):
    """Calls a function of two streams with their elements of a window.

    Parameters
    ----------
    function : CoGroupFunction, JoinFunction or FlatJoinFunction
        The latter two are called for every pair, with the first stream in the outer loop.

    Notes
    -----
    Flink's ``CoGroupedStreams.CoGroupWindowFunction``, with ``JoinedStreams.JoinCoGroupFunction`` and
    ``FlatJoinCoGroupFunction``.
    """

    def __init__(self, function: WindowJoinFunction) -> None:
        self._function = function

    @property
    def wrapped_function(self) -> Function:
        """The function of two streams."""
        return self._function

    @property
    def method(self) -> str:
        """The name of the method that is called."""
        return "co_group" if isinstance(self._function, CoGroupFunction) else "join"

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()

    def apply(self, key: Any, window: Any, inputs: Iterable[TaggedUnion[Any, Any]]) -> Results:
        first: list[Any] = []
        second: list[Any] = []
        for element in inputs:
            if element.is_one():
                first.append(element.get_one())
            else:
                second.append(element.get_two())
        if isinstance(self._function, CoGroupFunction):
            return self._function.co_group(first, second)
        if isinstance(self._function, JoinFunction):
            join = self._function.join
            return (join(one, two) for one in first for two in second)
        return _flat(self._function, first, second)


def _flat(function: FlatJoinFunction[Any, Any], first: list[Any], second: list[Any]) -> Iterator[Any]:
    for one in first:
        for two in second:
            results = function.join(one, two)
            if results is None:
                continue
            if isinstance(results, (str, bytes, bytearray, dict)) or not hasattr(results, "__iter__"):
                raise TypeError(
                    f"it gave {results!r} for a pair. Yield elements, or return a list of them, or None"
                )
            yield from results


def called_function(function: Any) -> Any:
    """Return the function that the user gave, without the wrapper that flinkcore has put around it, for messages."""
    wraps = isinstance(function, CoGroupWindowFunction | ReduceFunctionWrapper)
    return function.wrapped_function if wraps else function
