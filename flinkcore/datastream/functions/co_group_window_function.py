"""Functions of two streams, as functions over windows."""

from collections.abc import Iterable, Iterator
from typing import Any

from flinkcore.datastream.functions.co_group_function import CoGroupFunction
from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.functions.join_function import FlatJoinFunction, JoinFunction
from flinkcore.datastream.functions.runtime_context import RuntimeContext
from flinkcore.datastream.functions.window_function import WindowFunction
from flinkcore.datastream.tagged_union import TaggedUnion

WindowJoinFunction = CoGroupFunction[Any, Any] | JoinFunction[Any, Any, Any] | FlatJoinFunction[Any, Any]


class CoGroupWindowFunction(WindowFunction[TaggedUnion[Any, Any], Any, Any, Any]):
    """Calls a function of two streams with what they have in a window.

    Parameters
    ----------
    function : CoGroupFunction, JoinFunction or FlatJoinFunction
        The latter two are called for every pair, the first stream's elements in the outer loop.

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
        """Open the function."""
        self._function.open(runtime_context)

    def close(self) -> None:
        """Close the function."""
        self._function.close()

    def apply(self, key: Any, window: Any, inputs: Iterable[TaggedUnion[Any, Any]]) -> Results:
        """Call the function."""
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
                    f"it gave {results!r} for a pair: yield elements, or return a list of them, or None"
                )
            yield from results
