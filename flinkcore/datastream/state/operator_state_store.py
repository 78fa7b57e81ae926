"""The store of operator state, which belongs to no key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from flinkcore.datastream.state.state import BroadcastState, ListState
from flinkcore.datastream.state.state_descriptor import ListStateDescriptor, MapStateDescriptor

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class OperatorStateStore(ABC):
    """Store of the states of an operator instance, by their descriptors.

    Notes
    -----
    Follows ``pyflink.datastream.state.OperatorStateStore``, with the list states of Flink's
    ``org.apache.flink.api.common.state.OperatorStateStore``.
    """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """Return a map that is the same in all instances."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list whose elements are redistributed when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list of which every instance gets all elements when it is restored."""
