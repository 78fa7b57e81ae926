"""One reduced value per key, on the heap."""

from collections.abc import Callable
from typing import Any, TypeVar

from flinkcore.datastream.state import ReducingState
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state.heap_state import HeapMergingState
from flinkcore.runtime.state.state_table import StateTable
from flinkcore.runtime.state.value_check import ValueCheck

T = TypeVar("T")


class HeapReducingState(HeapMergingState, ReducingState[T]):
    """A :class:`ReducingState` on a table.

    Parameters
    ----------
    name, key_context, table
        As of :class:`HeapState`.
    reduce : callable
        Of two values, neither None; what it returns is held, and None is nothing.
    check : ValueCheck, optional
        Of the values, added and reduced.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapReducingState``.
    """

    def __init__(
        self,
        name: str,
        key_context: KeyContext,
        table: StateTable,
        reduce: Callable[[T, T], T | None],
        check: ValueCheck | None = None,
    ) -> None:
        super().__init__(name, key_context, table)
        self._reduce = reduce
        self._check = check

    def get(self) -> T | None:
        """Return the reduced value; None before anything was added."""
        value: T | None = self.get_internal()
        return value

    def add(self, value: T | None) -> None:
        """Reduce one more value; None clears."""
        if value is None:
            self.clear()
            return
        if self._check is not None:
            self._check(value)
        current = self.get_internal()
        if current is None:
            self.update_internal(value)
            return
        reduced = self._reduce(current, value)
        if reduced is None:
            self.clear()
            return
        if self._check is not None:
            self._check(reduced)
        self.update_internal(reduced)

    def _merge(self, first: Any, second: Any) -> Any:
        return self._reduce(first, second)
