"""All keyed states of an operator, on the heap."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.keys import given_items
from flinkcore.datastream.state import AggregatingStateDescriptor, StateDescriptor, StateTtlConfig
from flinkcore.errors import ConfigurationError, DataError, LifecycleError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state.heap_states import HeapState, heap_state
from flinkcore.operators.state.serialized_values import (
    adopt_restored,
    has_serializer,
    serialized_values,
    unchanged,
)
from flinkcore.operators.state.state_snapshots import KeyedStateSnapshot
from flinkcore.operators.state.state_table import VOID_NAMESPACE, StateTable
from flinkcore.operators.state.time_to_live import (
    IncrementalCleanup,
    TtlClocks,
    TtlLife,
    map_values,
    unexpired_or_none,
)
from flinkcore.operators.state.ttl_states import TtlState, ttl_state
from flinkcore.operators.timers.processing_time import ProcessingTimeService

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

KeyedState = HeapState | TtlState[Any]


class KeyedStateBackend:
    """Keyed states by name, for the current key of a key context.

    Parameters
    ----------
    key_context : KeyContext
        Keeps the ids of all keys that have state.
    processing_time_service : ProcessingTimeService
        The clock of times to live.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapKeyedStateBackend``.
    """

    def __init__(self, key_context: KeyContext, processing_time_service: ProcessingTimeService) -> None:
        self._key_context = key_context
        self._clocks = TtlClocks(processing_time_service)
        self._tables: dict[str, StateTable] = {}
        self._states: dict[str, tuple[StateDescriptor, KeyedState]] = {}
        self._cleanups_per_record: list[Callable[[], None]] = []
        key_context.add_holder(self._held_key_ids)

    @property
    def key_context(self) -> KeyContext:
        """The current key, its id and its key group."""
        return self._key_context

    @property
    def cleanups_per_record(self) -> list[Callable[[], None]]:
        """Called each time that a key has been set; always the same list."""
        return self._cleanups_per_record

    @property
    def state_names(self) -> list[str]:
        """The names of all states, including restored ones that were not asked for."""
        return list(self._tables)

    def set_current_key(self, key: Hashable) -> None:
        """Make a key the current one, and run the clean-ups that are configured to run for every record.

        Raises
        ------
        DataError
            As :meth:`KeyContext.set_current_key`.
        """
        self._key_context.set_current_key(key)
        for clean_up in self._cleanups_per_record:
            clean_up()

    def set_current_key_id(self, key_id: int) -> None:
        """Make the key of a held id the current one; see :meth:`set_current_key`."""
        self._key_context.set_current_key_id(key_id)
        for clean_up in self._cleanups_per_record:
            clean_up()

    def advance_watermark(self, watermark_ms: int) -> None:
        """Take the operator's watermark, before its timers fire: the clock of event-time times to live."""
        if self._clocks.advance_watermark(watermark_ms):
            event_time = StateTtlConfig.TtlTimeCharacteristic.EventTime
            for table in self._tables.values():
                if table.ttl_time is event_time:
                    _replace_values(table, partial(_first_stamp, watermark_ms=watermark_ms))

    def get_or_create_keyed_state(self, descriptor: StateDescriptor) -> Any:
        """Return the state that a descriptor declares; the first call creates it, with the values restored for it.

        If a time to live was added since the snapshot, or counts in another kind of time, restored values are stamped
        with the current time; if it was removed, they no longer expire.

        Returns
        -------
        State
            The same object for the same name, of the descriptor's kind.

        Raises
        ------
        ConfigurationError
            If the name belongs to a state of another kind, type or time to live, the argument is not a descriptor, or
            restored values were written by a serializer that it does not name.
        SchemaError
            If restored values are of another type than the declared one.
        """
        known = self._states.get(descriptor.name) if isinstance(descriptor, StateDescriptor) else None
        if known is None:
            state = self._create(descriptor)
            self._states[descriptor.name] = descriptor, state
            return state
        if known[0] is not descriptor and not known[0].describes_same_state(descriptor):
            raise ConfigurationError(
                f"the state {descriptor.name!r} was declared as {known[0]!r} before, now as {descriptor!r} with "
                "another kind, type or time to live; give it another name"
            )
        return known[1]

    def get_partitioned_state(self, namespace: Hashable, descriptor: StateDescriptor) -> Any:
        """Return the state that a descriptor declares, with a namespace selected; None is the void namespace.

        Raises
        ------
        ConfigurationError
            As :meth:`get_or_create_keyed_state`.
        """
        state = self.get_or_create_keyed_state(descriptor)
        state.set_current_namespace(namespace)
        return state

    # ---- entries of all keys ----

    def num_key_value_state_entries(self, namespace: Hashable = ...) -> int:
        """Return the number of entries of all states, in one namespace if it is given; O(n).

        A key counts once for each state and namespace; an expired value counts until it is cleaned up.

        Notes
        -----
        Flink's ``HeapKeyedStateBackend.numKeyValueStateEntries``.
        """
        return sum(
            namespace is ... or held_namespace == namespace
            for table in self._tables.values()
            for held_namespace, _, _ in table.entries()
        )

    def get_keys(self, name: str, namespace: Hashable = ...) -> list[Any]:
        """Return the keys for which a state holds a value that has not expired, each once; O(n).

        Parameters
        ----------
        name : str
        namespace : hashable, optional
            By default all namespaces.

        Raises
        ------
        ConfigurationError
            If there is no state of the name.
        """
        table = self._table(name)
        key_ids = {
            key_id: None
            for held_namespace, key_id, held in table.entries()
            if (namespace is ... or held_namespace == namespace)
            and self._alive(name, table, held) is not None
        }
        return [self._key_context.key_of(key_id) for key_id in key_ids]

    def has_time_to_live(self, name: str) -> bool:
        """Return whether the values of a state expire; raise a ConfigurationError if there is no such state."""
        return self._table(name).ttl_time is not None

    def look_up(self, name: str, key: Hashable, namespace: Hashable = VOID_NAMESPACE) -> Any:
        """Return the value of a state for a key if it has not expired; this is not an access to its time to live.

        Returns
        -------
        object
            A value, a copy of a list, a dictionary, or the result of an aggregating state; None if there is no value.
            A map with keys that no dictionary tells apart or holds, such as 0.0 and -0.0, or lists, is a list of
            pairs.

        Raises
        ------
        ConfigurationError
            If there is no state of the name.
        DataError
            If the key has no key group, or one outside of the operator's range.
        """
        table = self._table(name)
        held = table.get(namespace, self._key_context.key_id_of(key))
        alive = None if held is None else self._alive(name, table, held)
        if alive is None:
            return None
        value = map_values(table.type, alive, unchanged if table.ttl_time is None else _without_stamp)
        descriptor, _ = self._states.get(name, (None, None))
        if isinstance(descriptor, AggregatingStateDescriptor):
            return descriptor.get_agg_function().get_result(value)
        return _map_of(value) if table.type is StateDescriptor.Type.MAP else value

    def _table(self, name: str) -> StateTable:
        table = self._tables.get(name)
        if table is None:
            raise ConfigurationError(f"there is no state {name!r}; there are {sorted(self._tables)}")
        return table

    def _alive(self, name: str, table: StateTable, held: Any) -> Any:
        descriptor, _ = self._states.get(name, (None, None))
        config = None if descriptor is None else descriptor.ttl_config
        if config is None or table.ttl_time is None:
            return held
        oldest_ms = self._clocks.clock_of(table.ttl_time)() - config.ttl_ms
        return unexpired_or_none(table.type, held, oldest_ms)

    # ---- snapshots ----

    def memory(self) -> tuple[int, int]:
        """Return how many keys and entries there are, and about how many bytes they take."""
        n_keys, n_bytes = self._key_context.memory()
        for table in self._tables.values():
            n_entries, of_table = table.memory()
            n_keys, n_bytes = n_keys + n_entries, n_bytes + of_table
        return n_keys, n_bytes

    def snapshot(self, key_group_range: tuple[int, int] | None = None) -> dict[str, KeyedStateSnapshot]:
        """Return the contents of all states in a range of key groups, by name.

        Parameters
        ----------
        key_group_range : (int, int), optional
            First and last key group, inclusive; by default all of the operator's.

        Raises
        ------
        UserCodeError
            If a serializer that a descriptor names raises.
        ConfigurationError
            If such a serializer has no name.
        """
        return {name: self._snapshot(name, table, key_group_range) for name, table in self._tables.items()}

    def restore(self, snapshot: Mapping[str, KeyedStateSnapshot]) -> None:
        """Restore the entries of a snapshot that belong to this operator's key groups.

        Called before the states are asked for, once for each snapshot: after a change of parallelism there may be
        several. States that are never asked for are kept, and are in the next snapshot.

        Raises
        ------
        LifecycleError
            If a state of the snapshot has been asked for already.
        DataError
            If a key group is not below max_parallelism, or is not that of the key, a key is there twice, or two
            snapshots disagree on the kind of a state. The descriptor is compared when the state is asked for.
        """
        first, last = self._key_context.key_group_range
        for name, entries in snapshot.items():
            if name in self._states:
                raise LifecycleError(f"the state {name!r} was in use before it was restored")
            if len(entries) and entries.key_groups.max() >= self._key_context.max_parallelism:
                raise DataError(
                    f"the snapshot of the state {name!r} has the key group {entries.key_groups.max()}, but there "
                    f"are only {self._key_context.max_parallelism} (max_parallelism)"
                )
            table = self._tables.setdefault(name, StateTable(entries.type, entries.ttl_time))
            if (table.type, table.ttl_time) != (entries.type, entries.ttl_time):
                raise DataError(
                    f"two snapshots disagree on the kind or the time to live of the state {name!r}"
                )
            own = entries.of_key_groups(first, last)
            key_ids = self._key_context.restored_key_ids(own.keys, own.key_groups.tolist())
            _refuse_repeated(name, own, key_ids)
            table.put_all(own.namespaces, key_ids.tolist(), _copies(table.type, own.values))
            table.is_serialized |= own.is_serialized

    def _create(self, descriptor: StateDescriptor) -> KeyedState:
        if not isinstance(descriptor, StateDescriptor):
            raise ConfigurationError(
                f"a state is asked for by its descriptor, such as a ValueStateDescriptor, not {descriptor!r}"
            )
        config = descriptor.ttl_config
        ttl_time = None if config is None else config.get_ttl_time_characteristic()
        table = self._tables.get(descriptor.name)
        if table is None:
            table = StateTable(descriptor.type, ttl_time)
        elif table.type is not descriptor.type:
            raise ConfigurationError(
                f"the state {descriptor.name!r} was restored as a {table.type.value} state, but is declared as "
                f"{descriptor!r}"
            )
        else:
            adopt_restored(descriptor, table)
            if table.ttl_time is not ttl_time:
                self._change_ttl_time(table, ttl_time)
        state: KeyedState
        if config is None or ttl_time is None:
            state = heap_state(descriptor, self._key_context, table)
        else:
            life = TtlLife(config, self._clocks.clock_of(ttl_time))
            state = ttl_state(descriptor, self._key_context, table, life, self._cleanup(config, table, life))
        self._tables[descriptor.name] = table
        return state

    def _change_ttl_time(
        self, table: StateTable, ttl_time: StateTtlConfig.TtlTimeCharacteristic | None
    ) -> None:
        if table.ttl_time is not None:
            _replace_values(table, _without_stamp)
        if ttl_time is not None:
            now_ms = self._clocks.clock_of(ttl_time)()
            _replace_values(table, lambda value: (value, now_ms))
        table.ttl_time = ttl_time

    def _cleanup(self, config: StateTtlConfig, table: StateTable, life: TtlLife) -> Callable[[], None]:
        strategy = config.get_cleanup_strategies().get_incremental_cleanup_strategy()
        if strategy is None:
            return _no_cleanup
        cleanup = IncrementalCleanup(table, strategy.get_cleanup_size(), life)
        if strategy.run_cleanup_for_every_record():
            self._cleanups_per_record.append(cleanup)
        return cleanup

    def _snapshot(
        self, name: str, table: StateTable, key_group_range: tuple[int, int] | None
    ) -> KeyedStateSnapshot:
        import numpy as np

        first, last = self._key_context.key_group_range if key_group_range is None else key_group_range
        oldest_ms = self._oldest_in_snapshot(name, table)
        namespaces, key_ids, values = table.columns()
        key_groups = self._key_context.key_groups_of_ids(key_ids)
        wanted = (first <= key_groups) & (key_groups <= last)
        if oldest_ms is not None:
            values = [unexpired_or_none(table.type, held, oldest_ms) for held in values]
            wanted &= np.array([held is not None for held in values], np.bool_)
        if not wanted.all():
            chosen = wanted.tolist()
            namespaces, key_ids, values = (list(compress(c, chosen)) for c in (namespaces, key_ids, values))
            key_groups = key_groups[wanted]
        keys_by_id = self._key_context.keys_by_id
        keys = [keys_by_id[key_id] for key_id in key_ids]
        taken = _copies(table.type, values)
        known = self._states.get(name)
        is_serialized = table.is_serialized
        if known is not None and has_serializer(known[0]):
            taken = serialized_values(known[0], taken, table.ttl_time is not None)
            is_serialized = True
        descriptor = None if known is None else known[0]
        return KeyedStateSnapshot(
            table.type, table.ttl_time, keys, key_groups, namespaces, taken, is_serialized, descriptor
        )

    def _oldest_in_snapshot(self, name: str, table: StateTable) -> int | None:
        """Return the time, in ms since the epoch, up to which values are left out as expired; None to keep all."""
        known = self._states.get(name)
        config = None if known is None else known[0].ttl_config
        if config is None or table.ttl_time is None or not config.get_cleanup_strategies().in_full_snapshot():
            return None
        return self._clocks.clock_of(table.ttl_time)() - config.ttl_ms

    def _held_key_ids(self) -> npt.NDArray[np.int64]:
        import numpy as np

        tables = [table.key_ids() for table in self._tables.values()]
        return np.concatenate(tables) if tables else np.empty(0, np.int64)

    def _check(self) -> None:
        """Assert every invariant."""
        for table in self._tables.values():
            table._check()
            for _, key_id, held in table.entries():
                assert self._key_context.keys_by_id[key_id] is not None
                if table.type in (StateDescriptor.Type.LIST, StateDescriptor.Type.MAP):
                    assert held


def _refuse_repeated(name: str, entries: KeyedStateSnapshot, key_ids: npt.NDArray[np.int64]) -> None:
    import numpy as np

    if entries.namespaces.count(VOID_NAMESPACE) == len(key_ids):
        is_repeated = len(key_ids) > 0 and bool((np.bincount(key_ids) > 1).any())
    else:
        is_repeated = len(set(zip(entries.namespaces, key_ids.tolist(), strict=True))) < len(key_ids)
    if is_repeated:
        raise DataError(f"the snapshot of the state {name!r} has two entries for one key")


def _replace_values(table: StateTable, function: Callable[[Any], Any]) -> None:
    for namespace, key_id, held in list(table.entries()):
        table.put(namespace, key_id, map_values(table.type, held, function))


def _first_stamp(stamped: tuple[Any, int], watermark_ms: int) -> tuple[Any, int]:
    return (stamped[0], watermark_ms) if stamped[1] == MIN_TIMESTAMP else stamped


def _without_stamp(stamped: tuple[Any, int]) -> Any:
    return stamped[0]


def _copies(type: StateDescriptor.Type, values: Sequence[Any]) -> Sequence[Any]:
    if type is StateDescriptor.Type.LIST or type is StateDescriptor.Type.MAP:
        return [held.copy() for held in values]
    return values


def _map_of(entries: dict[Any, Any]) -> dict[Any, Any] | list[tuple[Any, Any]]:
    pairs = given_items(entries)
    try:
        found = dict(pairs)
    except TypeError:
        return pairs
    return found if len(found) == len(pairs) else pairs


def _no_cleanup() -> None:
    pass
