"""The keyed state of a function from its operator's backend."""

from collections.abc import Hashable
from typing import Any, TypeVar

from flinkcore.datastream.functions import KeyedStateStore
from flinkcore.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.state.keyed_state_backend import KeyedStateBackend
from flinkcore.runtime.state.state_table import VOID_NAMESPACE

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class DefaultKeyedStateStore(KeyedStateStore):
    """Gives states of a namespace.

    Parameters
    ----------
    backend : KeyedStateBackend

    Attributes
    ----------
    namespace : hashable
        Of the states that are asked for from now on; at first, and for functions without windows, the void one.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.DefaultKeyedStateStore``. Every method raises ConfigurationError for
    a descriptor of another kind, and for a name that belongs to another state.
    """

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend
        self.namespace: Hashable = VOID_NAMESPACE

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the state of one value per key."""
        state: ValueState[T] = self._state(state_descriptor, ValueStateDescriptor)
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the state of one list per key."""
        state: ListState[T] = self._state(state_descriptor, ListStateDescriptor)
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the state of one map per key."""
        state: MapState[K, V] = self._state(state_descriptor, MapStateDescriptor)
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return the state of one reduced value per key."""
        state: ReducingState[T] = self._state(state_descriptor, ReducingStateDescriptor)
        return state

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, Any, OUT]
    ) -> AggregatingState[IN, OUT]:
        """Return the state of one aggregate per key."""
        state: AggregatingState[IN, OUT] = self._state(state_descriptor, AggregatingStateDescriptor)
        return state

    def _state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> Any:
        if not isinstance(descriptor, kind):
            raise ConfigurationError(f"this state is asked for by a {kind.__name__}, not by {descriptor!r}")
        return self._backend.get_partitioned_state(self.namespace, descriptor)
