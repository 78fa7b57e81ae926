"""One list per key, on the heap."""

from collections.abc import Iterable
from typing import Any, TypeVar

from flinkcore.datastream.state import ListState
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state.element_check import ElementCheck
from flinkcore.runtime.state.heap_state import HeapMergingState
from flinkcore.runtime.state.state_table import StateTable

T = TypeVar("T")


class HeapListState(HeapMergingState, ListState[T]):
    """A :class:`ListState` on a table, which holds lists that are not empty.

    Parameters
    ----------
    name, key_context, table
        As of :class:`HeapState`.
    check : ElementCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapListState``.
    """

    def __init__(self, name: str, key_context: KeyContext, table: StateTable, check: ElementCheck) -> None:
        super().__init__(name, key_context, table)
        self._check = check

    def get(self) -> list[T]:
        """Return the elements in order, as a list of the caller's own."""
        elements: list[T] | None = self.get_internal()
        return [] if elements is None else elements.copy()

    def add(self, value: T) -> None:
        """Append an element."""
        self._check(value)
        elements = self.get_internal()
        if elements is None:
            self.update_internal([value])
        else:
            elements.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Append elements: all of them, or none where one is refused."""
        added = self._check.all(values)
        elements = self.get_internal()
        if elements is not None:
            elements += added
        elif added:
            self.update_internal(added)

    def update(self, values: Iterable[T]) -> None:
        """Replace all elements; no values clear the list."""
        elements = self._check.all(values)
        if elements:
            self.update_internal(elements)
        else:
            self.clear()

    def _merge(self, first: Any, second: Any) -> Any:
        first += second
        return first
