"""The operator states of one instance, on the heap."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from flinkcore._native.element_calls import MapEntries, MapKeys
from flinkcore._native.keys import given_items, given_keys
from flinkcore.datastream.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    ReadOnlyBroadcastState,
    StateDescriptor,
)
from flinkcore.errors import ConfigurationError, DataError, LifecycleError
from flinkcore.operators.state.serialized_values import deserialized_elements, serialized_elements
from flinkcore.operators.state.state_snapshots import DistributionMode, OperatorStateSnapshot
from flinkcore.operators.state.value_checks import ElementCheck, EntryCheck

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class ReadOnlyHeapBroadcastState(MapEntries, ReadOnlyBroadcastState[K, V]):
    """A broadcast state as the keyed side of a broadcast function sees it.

    Parameters
    ----------
    entries : dict
        By what it holds for their keys; shared with the state, whose changes it shows.
    keys : MapKeys
    name : str
    """

    def __init__(self, entries: dict[Hashable, Any], keys: MapKeys, name: str) -> None:
        self._name = name

    get = MapEntries.get
    contains = MapEntries.contains

    def items(self) -> list[tuple[K, V]]:
        return given_items(self._entries)

    def keys(self) -> list[K]:
        return given_keys(self._entries)

    def values(self) -> list[V]:
        return list(self._entries.values())

    def is_empty(self) -> bool:
        return not self._entries

    def clear(self) -> NoReturn:
        """Raise a LifecycleError: the view is read only."""
        raise LifecycleError(
            f"the broadcast state {self._name!r} can be changed in process_broadcast_element() only"
        )


class HeapBroadcastState(ReadOnlyHeapBroadcastState[K, V], BroadcastState[K, V]):
    """A :class:`BroadcastState` on a dictionary; its keys are one where those of a `HeapMapState` are.

    Parameters
    ----------
    entries : dict
        Its contents, by what the check's keys are held as; they become the state's own.
    keys : MapKeys
    name : str
    check : EntryCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.HeapBroadcastState``.
    """

    def __init__(self, entries: dict[Hashable, Any], keys: MapKeys, name: str, check: EntryCheck) -> None:
        super().__init__(entries, keys, name)
        self._check = check
        if not check.accepts_all:
            self.check_entry = check.checked

    put = MapEntries.put_entry

    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        self._entries.update(self._check.all(dict_value))

    def remove(self, key: K) -> None:
        self._entries.pop(self._keys(key), None)

    def clear(self) -> None:  # type: ignore[override]
        """Remove all map keys."""
        self._entries.clear()

    def read_only(self) -> ReadOnlyHeapBroadcastState[K, V]:
        """Return a read-only view, which shows every change."""
        return ReadOnlyHeapBroadcastState(self._entries, self._keys, self._name)


class PartitionableListState(ListState[T]):
    """A :class:`ListState` without keys.

    Parameters
    ----------
    elements : list
        Its contents; they become the state's own.
    check : ElementCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.PartitionableListState``.
    """

    def __init__(self, elements: list[Any], check: ElementCheck) -> None:
        self._elements = elements
        self._check = check

    def get(self) -> list[T]:
        return self._elements.copy()

    def add(self, value: T) -> None:
        value = self._check(value)
        self._elements.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        self._elements += self._check.all(values)

    def update(self, values: Iterable[T]) -> None:
        self._elements[:] = self._check.all(values)

    def clear(self) -> None:
        self._elements.clear()


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
        """Return a map that is the same in all instances, with its restored entries.

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
        state: ListState[T] = self._state(
            state_descriptor, ListStateDescriptor, DistributionMode.SPLIT_DISTRIBUTE
        )
        return state

    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        state: ListState[T] = self._state(state_descriptor, ListStateDescriptor, DistributionMode.UNION)
        return state

    def declared_broadcast_state(
        self, state_descriptor: MapStateDescriptor[K, V]
    ) -> HeapBroadcastState[K, V]:
        """Return a broadcast state that the operator has declared.

        Raises
        ------
        ConfigurationError
            If no state of this name was declared, or it was declared by another descriptor.
        """
        name = state_descriptor.name
        if self._modes.get(name) is not DistributionMode.BROADCAST:
            known = sorted(n for n, mode in self._modes.items() if mode is DistributionMode.BROADCAST)
            raise ConfigurationError(
                f"there is no broadcast state {name!r}; there are {known}. Look for a misspelt name, or give its "
                "descriptor to broadcast()"
            )
        return self.get_broadcast_state(state_descriptor)

    def snapshot(self) -> dict[str, OperatorStateSnapshot]:
        """Return the contents of all states by name, including restored ones that were not asked for."""
        taken = dict(self._restored)
        for name, (descriptor, state) in self._states.items():
            mode = self._modes[name]
            elements = list(state.items()) if mode is DistributionMode.BROADCAST else state.get()
            taken[name] = OperatorStateSnapshot(mode, serialized_elements(descriptor, elements), descriptor)
        return taken

    def restore(self, snapshot: Mapping[str, OperatorStateSnapshot]) -> None:
        """Take a snapshot; its states must not have been asked for.

        Raises
        ------
        LifecycleError
            If a state of the snapshot has been asked for already.
        DataError
            If a state of the snapshot was restored before.
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
            state = HeapBroadcastState(entry_check.all(elements), entry_check.keys, name, entry_check)
        else:
            element_check = ElementCheck(name, descriptor.type_info)
            state = PartitionableListState(element_check.all(elements), element_check)
        self._restored.pop(name, None)
        self._modes[name] = mode
        self._states[name] = descriptor, state
        return state
