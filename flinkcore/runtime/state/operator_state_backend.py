"""All operator states of one instance, on the heap."""

from collections.abc import Mapping
from typing import Any, TypeVar

from flinkcore.datastream.state import (
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    StateDescriptor,
)
from flinkcore.errors import ConfigurationError, DataError, LifecycleError
from flinkcore.runtime.state.element_check import ElementCheck
from flinkcore.runtime.state.entry_check import EntryCheck
from flinkcore.runtime.state.heap_broadcast_state import HeapBroadcastState
from flinkcore.runtime.state.operator_state_snapshot import DistributionMode, OperatorStateSnapshot
from flinkcore.runtime.state.partitionable_list_state import PartitionableListState
from flinkcore.runtime.state.serialized_state import deserialized_elements, serialized_elements

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class OperatorStateBackend(OperatorStateStore):
    """Operator states by name.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.DefaultOperatorStateBackend``. Operator state has no time to live, as
    there.
    """

    def __init__(self) -> None:
        self._restored: dict[str, OperatorStateSnapshot] = {}
        self._modes: dict[str, DistributionMode] = {}
        self._states: dict[str, tuple[StateDescriptor, Any]] = {}

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> HeapBroadcastState[K, V]:
        """Return a map that is the same in all instances, with what was restored.

        Raises
        ------
        ConfigurationError
            If the descriptor is of another kind or has a time to live, or the name belongs to another state.
        """
        state: HeapBroadcastState[K, V] = self._state(
            state_descriptor, MapStateDescriptor, DistributionMode.BROADCAST
        )
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list whose elements are shared out when the parallelism changes, with what was restored.

        Raises
        ------
        ConfigurationError
            As :meth:`get_broadcast_state`.
        """
        state: ListState[T] = self._state(
            state_descriptor, ListStateDescriptor, DistributionMode.SPLIT_DISTRIBUTE
        )
        return state

    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list of which, after a restore, every instance has the elements of all.

        Raises
        ------
        ConfigurationError
            As :meth:`get_broadcast_state`.
        """
        state: ListState[T] = self._state(state_descriptor, ListStateDescriptor, DistributionMode.UNION)
        return state

    def declared_broadcast_state(
        self, state_descriptor: MapStateDescriptor[K, V]
    ) -> HeapBroadcastState[K, V]:
        """Return a broadcast state that exists, as broadcast functions ask for it.

        Raises
        ------
        ConfigurationError
            If there is none of this name, or it is another one.
        """
        name = state_descriptor.name
        if self._modes.get(name) is not DistributionMode.BROADCAST:
            known = sorted(n for n, mode in self._modes.items() if mode is DistributionMode.BROADCAST)
            raise ConfigurationError(
                f"there is no broadcast state {name!r}; there are {known}: look for a misspelt name, or give its "
                "descriptor to broadcast()"
            )
        return self.get_broadcast_state(state_descriptor)

    def snapshot(self) -> dict[str, OperatorStateSnapshot]:
        """Return what the states hold, by their names; also those that were restored and not asked for."""
        taken = dict(self._restored)
        for name, (descriptor, state) in self._states.items():
            mode = self._modes[name]
            elements = list(state.items()) if mode is DistributionMode.BROADCAST else state.get()
            taken[name] = OperatorStateSnapshot(mode, serialized_elements(descriptor, elements))
        return taken

    def restore(self, snapshot: Mapping[str, OperatorStateSnapshot]) -> None:
        """Take a snapshot, before its states are asked for.

        Raises
        ------
        LifecycleError
            If one has been asked for already.
        DataError
            If one was restored before.
        """
        for name, state in snapshot.items():
            if name in self._states:
                raise LifecycleError(f"the operator state {name!r} was in use before it was restored")
            if name in self._restored:
                raise DataError(
                    f"the operator state {name!r} was restored twice; redistribute snapshots first"
                )
            self._restored[name] = state

    def _state(self, descriptor: Any, kind: type[StateDescriptor], mode: DistributionMode) -> Any:
        if not isinstance(descriptor, kind):
            raise ConfigurationError(f"this state is asked for by a {kind.__name__}, not by {descriptor!r}")
        name = descriptor.name
        if descriptor.ttl_config is not None:
            raise ConfigurationError(
                f"the operator state {name!r} cannot have a time to live; only keyed state can"
            )
        known = self._states.get(name)
        if known is not None:
            if self._modes[name] is not mode or not known[0].describes_same_state(descriptor):
                raise ConfigurationError(
                    f"the operator state {name!r} was declared as {known[0]!r} ({self._modes[name].value}) before, "
                    f"now as {descriptor!r} ({mode.value}) with another kind or type; give it another name"
                )
            return known[1]
        restored = self._restored.get(name, OperatorStateSnapshot(mode, ()))
        if restored.mode is not mode:
            raise ConfigurationError(
                f"the operator state {name!r} was restored as {restored.mode.value} state, but is asked for as "
                f"{mode.value} state"
            )
        elements = deserialized_elements(descriptor, restored.elements)
        state: Any
        if isinstance(descriptor, MapStateDescriptor):
            entry_check = EntryCheck(descriptor)
            state = HeapBroadcastState(name, entry_check.all(elements), entry_check)
        else:
            element_check = ElementCheck(name, descriptor.type_info)
            state = PartitionableListState(element_check.all(elements), element_check)
        self._restored.pop(name, None)
        self._modes[name] = mode
        self._states[name] = descriptor, state
        return state
