"""One aggregate per key, on the heap."""

from typing import Any, Generic, TypeVar

from flinkcore.datastream.functions import AggregateFunction
from flinkcore.datastream.state import AggregatingState
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state.heap_state import HeapMergingState
from flinkcore.runtime.state.state_table import StateTable
from flinkcore.runtime.state.value_check import ValueCheck

IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class HeapAggregatingState(HeapMergingState, AggregatingState[IN, OUT], Generic[IN, ACC, OUT]):
    """An :class:`AggregatingState` on a table, which holds accumulators.

    Parameters
    ----------
    name, key_context, table
        As of :class:`HeapState`.
    function : AggregateFunction
        An accumulator of None is nothing.
    check : ValueCheck, optional
        Of the accumulators.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapAggregatingState``.
    """

    def __init__(
        self,
        name: str,
        key_context: KeyContext,
        table: StateTable,
        function: AggregateFunction[IN, ACC, OUT],
        check: ValueCheck | None = None,
    ) -> None:
        super().__init__(name, key_context, table)
        self._function = function
        self._check = check

    def get(self) -> OUT | None:
        """Return the result so far; None before anything was added."""
        accumulator = self.get_internal()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: IN | None) -> None:
        """Aggregate one more value; None clears."""
        if value is None:
            self.clear()
            return
        accumulator = self.get_internal()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        accumulator = self._function.add(value, accumulator)
        if accumulator is None:
            self.clear()
            return
        if self._check is not None:
            self._check(accumulator)
        self.update_internal(accumulator)

    def _merge(self, first: Any, second: Any) -> Any:
        return self._function.merge(first, second)
