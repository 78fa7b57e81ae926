"""One map per key, on the heap."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from flinkcore.datastream.state import MapState
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state.entry_check import EntryCheck
from flinkcore.runtime.state.heap_state import HeapState
from flinkcore.runtime.state.state_table import StateTable

K = TypeVar("K")
V = TypeVar("V")


class HeapMapState(HeapState, MapState[K, V]):
    """A :class:`MapState` on a table, which holds dictionaries that are not empty.

    Parameters
    ----------
    name, key_context, table
        As of :class:`HeapState`.
    check : EntryCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.HeapMapState``; `contains` is PyFlink's.
    """

    def __init__(self, name: str, key_context: KeyContext, table: StateTable, check: EntryCheck) -> None:
        super().__init__(name, key_context, table)
        self._check = check

    def get(self, key: K) -> V | None:
        """Return the value of a map key; None where there is none."""
        entries: dict[K, V | None] | None = self.get_internal()
        return None if entries is None else entries.get(key)

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a map key, which may be None."""
        self._check(key, value)
        entries = self.get_internal()
        if entries is None:
            self.update_internal({key: value})
        else:
            entries[key] = value

    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of several map keys: all of them, or none where one is refused."""
        added = self._check.all(dict_value)
        entries = self.get_internal()
        if entries is not None:
            entries.update(added)
        elif added:
            self.update_internal(added)

    def remove(self, key: K) -> None:
        """Remove a map key; one that is missing is no error."""
        entries = self.get_internal()
        if entries is not None:
            entries.pop(key, None)
            if not entries:
                self.clear()

    def contains(self, key: K) -> bool:
        """Return whether a map key has a value that is not None."""
        return self.get(key) is not None

    def items(self) -> list[tuple[K, V | None]]:
        """Return the map keys with their values."""
        entries: dict[K, V | None] | None = self.get_internal()
        return [] if entries is None else list(entries.items())

    def keys(self) -> list[K]:
        """Return the map keys."""
        return list(self.get_internal() or ())

    def values(self) -> list[V | None]:
        """Return the values."""
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        """Return whether there is no map key."""
        return self.get_internal() is None
