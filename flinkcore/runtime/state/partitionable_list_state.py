"""The list of an operator instance, whose elements can go to other instances."""

from collections.abc import Iterable
from typing import Any, TypeVar

from flinkcore.datastream.state import ListState
from flinkcore.runtime.state.element_check import ElementCheck

T = TypeVar("T")


class PartitionableListState(ListState[T]):
    """A :class:`ListState` without keys.

    Parameters
    ----------
    elements : list
        What it holds; it becomes the state's own.
    check : ElementCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.PartitionableListState``.
    """

    def __init__(self, elements: list[Any], check: ElementCheck) -> None:
        self._elements = elements
        self._check = check

    def get(self) -> list[T]:
        """Return the elements in order, as a list of the caller's own."""
        return self._elements.copy()

    def add(self, value: T) -> None:
        """Append an element."""
        self._check(value)
        self._elements.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Append elements: all of them, or none where one is refused."""
        self._elements += self._check.all(values)

    def update(self, values: Iterable[T]) -> None:
        """Replace all elements."""
        self._elements[:] = self._check.all(values)

    def clear(self) -> None:
        """Remove all elements."""
        self._elements.clear()
