"""Where a function gets its keyed state from."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from flinkcore.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class KeyedStateStore(ABC):
    """Gives the states of a function on a keyed stream by their descriptors.

    A state is asked for once, in ``open``, and shows at any time the value of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.functions.KeyedStateStore``.
    """

    @abstractmethod
    def get_state(self, state_descriptor: "ValueStateDescriptor[T]") -> "ValueState[T]":
        """Return the state of one value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: "ListStateDescriptor[T]") -> "ListState[T]":
        """Return the state of one list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: "MapStateDescriptor[K, V]") -> "MapState[K, V]":
        """Return the state of one map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: "ReducingStateDescriptor[T]") -> "ReducingState[T]":
        """Return the state of one reduced value per key."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: "AggregatingStateDescriptor[IN, Any, OUT]"
    ) -> "AggregatingState[IN, OUT]":
        """Return the state of one aggregate per key."""
