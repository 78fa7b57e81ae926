"""Keyed states with a time to live: each wraps a state on the heap that holds its values with their stamps."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from flinkcore.datastream.functions import AggregateFunction, ReduceFunction
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
from flinkcore.errors import ConfigurationError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state.heap_states import (
    HeapAggregatingState,
    HeapListState,
    HeapMapState,
    HeapMergingState,
    HeapReducingState,
    HeapState,
    HeapValueState,
)
from flinkcore.operators.state.state_table import StateTable
from flinkcore.operators.state.time_to_live import Stamped, TtlLife
from flinkcore.operators.state.value_checks import ElementCheck, EntryCheck, ValueCheck, value_check

S = TypeVar("S", bound=HeapState)
M = TypeVar("M", bound=HeapMergingState)
ACC = TypeVar("ACC")


class TtlState(State, Generic[S]):
    """A state whose values expire.

    Parameters
    ----------
    original : HeapState
        Holds the values with their stamps.
    life : TtlLife
    on_access : callable
        Called at each use.
    check : callable, optional
        Refuses values, without their stamps, of another type than the declared one.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.AbstractTtlState``.
    """

    def __init__(self, original: S, life: TtlLife, on_access: Callable[[], None], check: Any = None) -> None:
        self._original = original
        self._life = life
        self._on_access = on_access
        self._check = check

    def set_current_namespace(self, namespace: Hashable) -> None:
        """Select a namespace (a window); None is the void namespace."""
        self._original.set_current_namespace(namespace)

    def clear(self) -> None:
        self._original.clear()
        self._on_access()

    def _read_value(self) -> Stamped | None:
        self._on_access()
        original = self._original
        return self._life.read(original.get_internal(), original.update_internal, original.clear)


class TtlMergingState(TtlState[M]):
    """A state with a time to live whose contents in several namespaces can become one."""

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key has in some namespaces into another one, as `HeapMergingState` does."""
        self._original.merge_namespaces(target, sources)
        self._on_access()


class TtlValueState(TtlState[HeapValueState[Stamped]], ValueState[T]):
    """A :class:`ValueState` with a time to live.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlValueState``.
    """

    _check: ValueCheck | None

    def value(self) -> T | None:
        stamped = self._read_value()
        return None if stamped is None else stamped[0]

    def update(self, value: T | None) -> None:
        self._on_access()
        if self._check is not None:
            value = self._check(value)
        self._original.update(None if value is None else self._life.stamp(value))


class TtlListState(TtlMergingState[HeapListState[Stamped]], ListState[T]):
    """A :class:`ListState` each of whose elements has a time to live.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlListState``. Reading clears a list all of whose elements have
    expired; an expired element beside others stays until it is cleaned up. Merging renews no stamp.
    """

    _check: ElementCheck

    def get(self) -> list[T]:
        self._on_access()
        elements: list[Stamped] | None = self._original.get_internal()
        if elements is None:
            return []
        life = self._life
        now_ms = life.now()
        oldest_ms = now_ms - life.ttl_ms
        alive = [stamped for stamped in elements if stamped[1] > oldest_ms]
        if not alive:
            self._original.clear()
        elif life.update_on_read:
            self._original.update_internal([(value, now_ms) for value, _ in alive])
        return [value for value, _ in (elements if life.return_expired else alive)]

    def add(self, value: T) -> None:
        self._on_access()
        value = self._check(value)
        self._original.add(self._life.stamp(value))

    def add_all(self, values: Iterable[T]) -> None:
        self._on_access()
        self._original.add_all(self._stamped(values))

    def update(self, values: Iterable[T]) -> None:
        self._on_access()
        self._original.update(self._stamped(values))

    def _stamped(self, values: Iterable[T]) -> list[Stamped]:
        now_ms = self._life.now()
        return [(value, now_ms) for value in self._check.all(values)]


class TtlMapState(TtlState[HeapMapState[K, Stamped]], MapState[K, V]):
    """A :class:`MapState` each of whose entries has a time to live.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlMapState``. As there, an entry with the value None has no stamp
    and never expires, but is not among the items, and `is_empty` counts expired entries that were not cleaned up.
    """

    _check: EntryCheck

    def get(self, key: K) -> V | None:
        self._on_access()
        stamped = self._read(key, self._original.get(key))
        return None if stamped is None else stamped[0]

    def put(self, key: K, value: V | None) -> None:
        self._on_access()
        value = self._check.checked(key, value)
        self._original.put(key, None if value is None else self._life.stamp(value))

    def put_all(self, dict_value: Mapping[K, V | None] | Iterable[tuple[K, V | None]]) -> None:
        self._on_access()
        now_ms = self._life.now()
        added = self._check.all(dict_value)
        self._original.update_entries(
            {key: None if value is None else (value, now_ms) for key, value in added.items()}
        )

    def remove(self, key: K) -> None:
        self._on_access()
        self._original.remove(key)

    def contains(self, key: K) -> bool:
        return self.get(key) is not None

    def items(self) -> list[tuple[K, V | None]]:
        self._on_access()
        read = [(key, self._read(key, stamped)) for key, stamped in self._original.items()]
        return [(key, stamped[0]) for key, stamped in read if stamped is not None]

    def keys(self) -> list[K]:
        return [key for key, _ in self.items()]

    def values(self) -> list[V | None]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        self._on_access()
        return self._original.is_empty()

    def _read(self, key: K, stamped: Stamped | None) -> Stamped | None:
        original = self._original
        return self._life.read(
            stamped, lambda renewed: original.put(key, renewed), lambda: original.remove(key)
        )


class TtlReduce:
    """Reduces stamped values, and leaves out those that are not visible.

    Parameters
    ----------
    function : ReduceFunction
    life : TtlLife
    check : ValueCheck or None
        Check of the reduced values.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlReduceFunction``.
    """

    def __init__(self, function: ReduceFunction[T], life: TtlLife, check: ValueCheck | None) -> None:
        self._function = function
        self._life = life
        self._check = check

    def __call__(self, first: Stamped, second: Stamped) -> Stamped | None:
        """Return both reduced, with the current time; None if neither is visible."""
        life = self._life
        visible = [stamped[0] for stamped in (first, second) if life.is_visible(stamped)]
        if not visible:
            return None
        value = visible[0]
        if len(visible) == 2:
            value = self._function.reduce(value, visible[1])
            if self._check is not None:
                value = self._check(value)
        return None if value is None else life.stamp(value)


class TtlReducingState(TtlMergingState[HeapReducingState[Stamped]], ReducingState[T]):
    """A :class:`ReducingState` with a time to live, whose original reduces by :class:`TtlReduce`.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlReducingState``.
    """

    _check: ValueCheck | None

    def get(self) -> T | None:
        stamped = self._read_value()
        return None if stamped is None else stamped[0]

    def add(self, value: T | None) -> None:
        self._on_access()
        if self._check is not None:
            value = self._check(value)
        self._original.add(None if value is None else self._life.stamp(value))


class TtlAggregateFunction(AggregateFunction[IN, Stamped | None, OUT], Generic[IN, ACC, OUT]):
    """Aggregates with stamped accumulators, and leaves out those that are not visible.

    Parameters
    ----------
    function : AggregateFunction
    life : TtlLife
    check : ValueCheck or None
        Check of the accumulators.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlAggregateFunction``.
    """

    def __init__(
        self, function: AggregateFunction[IN, ACC, OUT], life: TtlLife, check: ValueCheck | None
    ) -> None:
        self._function = function
        self._life = life
        self._check = check

    def create_accumulator(self) -> Stamped | None:
        return self._life.stamp(self._function.create_accumulator())

    def add(self, value: IN, accumulator: Stamped | None) -> Stamped | None:
        if accumulator is None or not self._life.is_visible(accumulator):
            accumulator = self.create_accumulator()
        assert accumulator is not None
        return self._stamped(self._function.add(value, accumulator[0]))

    def get_result(self, accumulator: Stamped | None) -> OUT:
        assert accumulator is not None
        return self._function.get_result(accumulator[0])

    def merge(self, acc_a: Stamped | None, acc_b: Stamped | None) -> Stamped | None:
        visible: list[ACC] = [
            acc[0] for acc in (acc_a, acc_b) if acc is not None and self._life.is_visible(acc)
        ]
        if not visible:
            return None
        return self._stamped(visible[0] if len(visible) == 1 else self._function.merge(*visible))

    def _stamped(self, accumulator: ACC) -> Stamped | None:
        if self._check is not None:
            accumulator = self._check(accumulator)
        return None if accumulator is None else self._life.stamp(accumulator)


class TtlAggregatingState(
    TtlMergingState[HeapAggregatingState[IN, Stamped | None, OUT]],
    AggregatingState[IN, OUT],
    Generic[IN, OUT],
):
    """An :class:`AggregatingState` with a time to live, whose original aggregates by :class:`TtlAggregateFunction`.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlAggregatingState``.
    """

    def get(self) -> OUT | None:
        stamped = self._read_value()
        return None if stamped is None else self._original.function.get_result(stamped)

    def add(self, value: IN | None) -> None:
        self._on_access()
        self._original.add(value)


def ttl_state(
    descriptor: StateDescriptor,
    key_context: KeyContext,
    table: StateTable,
    life: TtlLife,
    on_access: Callable[[], None],
) -> TtlState[Any]:
    """Return the state that a descriptor with a time to live declares, on a table of stamped values.

    Raises
    ------
    ConfigurationError
        If it is not a descriptor of a keyed state.
    """
    name = descriptor.name
    check = value_check(name, "values", descriptor.type_info)
    if isinstance(descriptor, ValueStateDescriptor):
        return TtlValueState(HeapValueState(name, key_context, table), life, on_access, check)
    if isinstance(descriptor, ListStateDescriptor):
        stamped_list: HeapListState[Stamped] = HeapListState(name, key_context, table, ElementCheck(name))
        return TtlListState(stamped_list, life, on_access, ElementCheck(name, descriptor.type_info))
    if isinstance(descriptor, MapStateDescriptor):
        entry_check = EntryCheck(descriptor)
        any_entry = EntryCheck(MapStateDescriptor(name))
        stamped_map: HeapMapState[Any, Stamped] = HeapMapState(
            name, key_context, table, any_entry, entry_check.keys
        )
        return TtlMapState(stamped_map, life, on_access, entry_check)
    if isinstance(descriptor, ReducingStateDescriptor):
        reduce = TtlReduce(descriptor.get_reduce_function(), life, check)
        return TtlReducingState(HeapReducingState(name, key_context, table, reduce), life, on_access, check)
    if isinstance(descriptor, AggregatingStateDescriptor):
        check = value_check(name, "accumulators", descriptor.type_info)
        function = TtlAggregateFunction(descriptor.get_agg_function(), life, check)
        return TtlAggregatingState(HeapAggregatingState(name, key_context, table, function), life, on_access)
    raise ConfigurationError(f"{descriptor!r} describes no keyed state")
