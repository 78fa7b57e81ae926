"""Where an operator gets the state that belongs to no key."""

from abc import ABC, abstractmethod
from typing import TypeVar

from flinkcore.datastream.state.broadcast_state import BroadcastState
from flinkcore.datastream.state.list_state import ListState, ListStateDescriptor
from flinkcore.datastream.state.map_state import MapStateDescriptor

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class OperatorStateStore(ABC):
    """Gives the states of an operator instance by their descriptors.

    Notes
    -----
    Follows ``pyflink.datastream.state.OperatorStateStore``, with the list states that Flink's
    ``org.apache.flink.api.common.state.OperatorStateStore`` has beside it.
    """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """Return a map that is the same in all instances."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list whose elements are shared out when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list of which, after a restore, every instance has the elements of all."""
