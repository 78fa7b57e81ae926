"""Stores from which functions get their keyed states."""

from abc import abstractmethod
from collections.abc import Hashable
from typing import Any

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
from flinkcore.datastream.state.state import IN, OUT, K, T, V
from flinkcore.errors import ConfigurationError
from flinkcore.operators.state.keyed_state_backend import KeyedStateBackend
from flinkcore.operators.state.state_table import VOID_NAMESPACE


class AbstractKeyedStateStore(KeyedStateStore):
    """Store with one method for states of all kinds, :meth:`state`."""

    @abstractmethod
    def state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> Any:
        """Return the state that a descriptor declares.

        Parameters
        ----------
        descriptor : StateDescriptor
        kind : type
            Class that the descriptor must have.

        Raises
        ------
        ConfigurationError
            If it is another kind of descriptor, or its name belongs to another state.
        """

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        state: ValueState[T] = self.state(state_descriptor, ValueStateDescriptor)
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        state: ListState[T] = self.state(state_descriptor, ListStateDescriptor)
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        state: MapState[K, V] = self.state(state_descriptor, MapStateDescriptor)
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        state: ReducingState[T] = self.state(state_descriptor, ReducingStateDescriptor)
        return state

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, Any, OUT]
    ) -> AggregatingState[IN, OUT]:
        state: AggregatingState[IN, OUT] = self.state(state_descriptor, AggregatingStateDescriptor)
        return state


class DefaultKeyedStateStore(AbstractKeyedStateStore):
    """Store of the states of one namespace of an operator's backend.

    Attributes
    ----------
    namespace : hashable
        Selected in the states that are asked for from now on; at first, and for functions without windows, the void
        namespace.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.DefaultKeyedStateStore``.
    """

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend
        self.namespace: Hashable = VOID_NAMESPACE

    def state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> Any:
        if not isinstance(descriptor, kind):
            raise ConfigurationError(f"this state is asked for by a {kind.__name__}, not by {descriptor!r}")
        return self._backend.get_partitioned_state(self.namespace, descriptor)
