"""One list per key."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar, Generic, TypeVar

from flinkcore.common.type_information import TypeInformation
from flinkcore.datastream.state.state import MergingState
from flinkcore.datastream.state.state_descriptor import StateDescriptor

T = TypeVar("T")


class ListState(MergingState[T, list[T]]):
    """A list of the current key; in operator state, of the operator.

    Notes
    -----
    Follows ``pyflink.datastream.state.ListState``. None cannot be an element, as in Flink.
    """

    @abstractmethod
    def get(self) -> list[T]:
        """Return the elements in order, as a list of the caller's own; an empty one where there are none."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replace all elements; no values clear the list."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Append elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a :class:`ListState`.

    Parameters
    ----------
    name, elem_type_info
        As of :class:`StateDescriptor`, the type that of an element.

    Notes
    -----
    Follows ``pyflink.datastream.state.ListStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.LIST

    def __init__(self, name: str, elem_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, elem_type_info)
