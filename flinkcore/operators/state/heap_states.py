"""Keyed states on the heap: views of a state table under the current key and namespace."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from flinkcore._native.element_calls import CurrentKeyEntries, CurrentKeyValues, MapKeys
from flinkcore.datastream.functions import AggregateFunction
from flinkcore.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from flinkcore.datastream.state.state import IN, OUT, K, T, V
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state.state_table import VOID_NAMESPACE, StateTable
from flinkcore.operators.state.value_checks import ElementCheck, EntryCheck, ValueCheck, value_check

ACC = TypeVar("ACC")


class HeapState(CurrentKeyValues, State):
    """A view of a table under the current key and namespace.

    An access finds the key's place by the key's id, which the key context found when the key was set; without a current
    key it is a LifecycleError.

    Parameters
    ----------
    name : str
    key_context : KeyContext
    table : StateTable
    check : callable, optional
        Refuses values of another type than the declared one.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.AbstractHeapState``.
    """

    def __new__(cls, name: str, key_context: KeyContext, *arguments: Any) -> HeapState:
        return super().__new__(cls, key_context)

    def __init__(self, name: str, key_context: KeyContext, table: StateTable, check: Any = None) -> None:
        self._name = name
        self._table = table
        self._check = check
        self._namespace: Hashable = VOID_NAMESPACE
        self.select_values(table.select(VOID_NAMESPACE))

    @property
    def table(self) -> StateTable:
        """The values of all keys and namespaces."""
        return self._table

    def set_current_namespace(self, namespace: Hashable) -> None:
        """Select a namespace (a window); None is the void namespace."""
        if namespace is not self._namespace:
            self._namespace = namespace
            self.select_values(self._table.select(namespace))

    def clear(self) -> None:
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self.no_current_key()
        self._table.remove(self._namespace, key_id)

    def make_room(self, key_id: int, value: Any) -> None:
        """Set the value of a key id beyond the end of the void namespace's list."""
        self._table.put(self._namespace, key_id, value)

    def no_current_key(self) -> LifecycleError:
        """Return the error to raise if the state is used without a current key."""
        return LifecycleError(
            f"the keyed state {self._name!r} was used without a current key; "
            "use it while an element or a timer is processed, not in open() or close()"
        )


class HeapMergingState(HeapState):
    """A state whose contents in several namespaces can become one.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.AbstractHeapMergingState``.
    """

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in some namespaces into another one, merging.

        Parameters
        ----------
        target : hashable
            Keeps its contents, which come first.
        sources : iterable of hashable
            Merged in this order, and left empty.
        """
        key_id = self._key_context.current_key_id
        if key_id < 0:
            raise self.no_current_key()
        merged = None
        for source in sources:
            merged = self._merged(merged, self._table.remove(source, key_id))
        if merged is not None:
            merged = self._merged(self._table.get(target, key_id), merged)
            if merged is None:
                self._table.remove(target, key_id)
            else:
                self._table.put(target, key_id, merged)

    def _merged(self, first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return self._merge(first, second)

    @abstractmethod
    def _merge(self, first: Any, second: Any) -> Any:
        """Return two held objects merged; None removes both."""


class HeapValueState(HeapState, ValueState[T]):
    """A :class:`ValueState` on a table.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapValueState``.
    """

    def __init__(
        self, name: str, key_context: KeyContext, table: StateTable, check: ValueCheck | None = None
    ) -> None:
        super().__init__(name, key_context, table, check)
        if check is not None:
            self.accepts, self.refuse = check.accepts, check

    value = CurrentKeyValues.get_internal
    update = CurrentKeyValues.replace


class HeapValueStateOfLists(HeapValueState[list[Any]]):
    """A :class:`ValueState` that keeps a list of what can be iterated over."""

    _check: ValueCheck

    def update(self, value: Iterable[Any] | None) -> None:
        self.replace(self._check(value))


class HeapListState(HeapMergingState, ListState[T]):
    """A :class:`ListState` on a table, which holds lists that are not empty.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapListState``.
    """

    _check: ElementCheck

    def get(self) -> list[T]:
        elements: list[T] | None = self.get_internal()
        return [] if elements is None else elements.copy()

    def add(self, value: T) -> None:
        value = self._check(value)
        elements = self.get_internal()
        if elements is None:
            self.update_internal([value])
        else:
            elements.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        added = self._check.all(values)
        elements = self.get_internal()
        if elements is not None:
            elements += added
        elif added:
            self.update_internal(added)

    def update(self, values: Iterable[T]) -> None:
        elements = self._check.all(values)
        if elements:
            self.update_internal(elements)
        else:
            self.clear()

    def _merge(self, first: Any, second: Any) -> Any:
        first += second
        return first


class HeapMapState(HeapState, CurrentKeyEntries, MapState[K, V]):
    """A :class:`MapState` on a table, which holds dictionaries that are not empty.

    Keys are one where keys of a stream are: every NaN is the same key, -0.0 and 0.0 are two.

    Parameters
    ----------
    name, key_context, table
        As of :class:`HeapState`.
    check : EntryCheck
    keys : MapKeys, optional
        By default those of the check.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapMapState``.
    """

    _check: EntryCheck

    def __init__(
        self,
        name: str,
        key_context: KeyContext,
        table: StateTable,
        check: EntryCheck,
        keys: MapKeys | None = None,
    ) -> None:
        super().__init__(name, key_context, table, check)
        self.map_keys = keys or check.keys
        if not check.accepts_all:
            self.check_entry = check.checked

    get = CurrentKeyEntries.get_entry
    put = CurrentKeyEntries.put_entry
    remove = CurrentKeyEntries.remove_entry
    contains = CurrentKeyEntries.contains_entry
    items = CurrentKeyEntries.entries
    keys = CurrentKeyEntries.entry_keys

    def put_all(self, dict_value: Mapping[K, V | None] | Iterable[tuple[K, V | None]]) -> None:
        self.update_entries(self._check.all(dict_value))

    def update_entries(self, added: dict[Hashable, Any]) -> None:
        """Put entries by what dictionaries hold for their keys; the dictionary becomes the state's own."""
        entries = self.get_internal()
        if entries is not None:
            entries.update(added)
        elif added:
            self.update_internal(added)

    def values(self) -> list[V | None]:
        return list((self.get_internal() or {}).values())

    def is_empty(self) -> bool:
        return self.get_internal() is None


class HeapReducingState(HeapMergingState, ReducingState[T]):
    """A :class:`ReducingState` on a table.

    Parameters
    ----------
    name, key_context, table, check
        As of :class:`HeapState`.
    reduce : callable
        From two values, neither of them None, to the value to hold; None clears the state.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapReducingState``.
    """

    _check: ValueCheck | None

    def __init__(
        self,
        name: str,
        key_context: KeyContext,
        table: StateTable,
        reduce: Callable[[T, T], T | None],
        check: ValueCheck | None = None,
    ) -> None:
        super().__init__(name, key_context, table, check)
        self._reduce = reduce

    def get(self) -> T | None:
        value: T | None = self.get_internal()
        return value

    def add(self, value: T | None) -> None:
        if value is None:
            self.clear()
            return
        if self._check is not None:
            value = self._check(value)
        current = self.get_internal()
        if current is None:
            self.update_internal(value)
            return
        reduced = self._reduce(current, value)
        if reduced is None:
            self.clear()
            return
        if self._check is not None:
            reduced = self._check(reduced)
        self.update_internal(reduced)

    def _merge(self, first: Any, second: Any) -> Any:
        return self._reduce(first, second)


class HeapAggregatingState(HeapMergingState, AggregatingState[IN, OUT], Generic[IN, ACC, OUT]):
    """An :class:`AggregatingState` on a table, which holds accumulators.

    Parameters
    ----------
    name, key_context, table, check
        As of :class:`HeapState`.
    function : AggregateFunction
        An accumulator of None clears the state.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapAggregatingState``.
    """

    _check: ValueCheck | None

    def __init__(
        self,
        name: str,
        key_context: KeyContext,
        table: StateTable,
        function: AggregateFunction[IN, ACC, OUT],
        check: ValueCheck | None = None,
    ) -> None:
        super().__init__(name, key_context, table, check)
        self.function = function

    def get(self) -> OUT | None:
        accumulator = self.get_internal()
        return None if accumulator is None else self.function.get_result(accumulator)

    def add(self, value: IN | None) -> None:
        if value is None:
            self.clear()
            return
        accumulator = self.get_internal()
        if accumulator is None:
            accumulator = self.function.create_accumulator()
        accumulator = self.function.add(value, accumulator)
        if accumulator is None:
            self.clear()
            return
        if self._check is not None:
            accumulator = self._check(accumulator)
        self.update_internal(accumulator)

    def _merge(self, first: Any, second: Any) -> Any:
        return self.function.merge(first, second)


def heap_state(descriptor: StateDescriptor, key_context: KeyContext, table: StateTable) -> HeapState:
    """Return the state that a descriptor without a time to live declares, on a table.

    Raises
    ------
    ConfigurationError
        If it is not a descriptor of a keyed state.
    """
    name = descriptor.name
    if isinstance(descriptor, ValueStateDescriptor):
        check = value_check(name, "values", descriptor.type_info)
        kind = HeapValueState if check is None or not check.makes_lists else HeapValueStateOfLists
        return kind(name, key_context, table, check)
    if isinstance(descriptor, ListStateDescriptor):
        return HeapListState(name, key_context, table, ElementCheck(name, descriptor.type_info))
    if isinstance(descriptor, MapStateDescriptor):
        return HeapMapState(name, key_context, table, EntryCheck(descriptor))
    if isinstance(descriptor, ReducingStateDescriptor):
        check = value_check(name, "values", descriptor.type_info)
        return HeapReducingState(name, key_context, table, descriptor.get_reduce_function().reduce, check)
    if isinstance(descriptor, AggregatingStateDescriptor):
        check = value_check(name, "accumulators", descriptor.type_info)
        return HeapAggregatingState(name, key_context, table, descriptor.get_agg_function(), check)
    raise ConfigurationError(f"{descriptor!r} describes no keyed state")
