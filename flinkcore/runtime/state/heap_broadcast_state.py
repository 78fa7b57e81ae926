"""The map of an operator instance that is the same in all of them, on the heap."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from flinkcore.datastream.state import BroadcastState, ReadOnlyBroadcastState
from flinkcore.errors import LifecycleError
from flinkcore.runtime.state.entry_check import EntryCheck

K = TypeVar("K")
V = TypeVar("V")


class ReadOnlyHeapBroadcastState(ReadOnlyBroadcastState[K, V]):
    """What the keyed side of a broadcast function sees of a broadcast state.

    Parameters
    ----------
    name : str
    entries : dict
        The state's own.
    """

    def __init__(self, name: str, entries: dict[Any, Any]) -> None:
        self._name = name
        self._entries = entries

    def get(self, key: K) -> V | None:
        """Return the value of a map key; None where there is none."""
        return self._entries.get(key)

    def contains(self, key: K) -> bool:
        """Return whether there is a map key."""
        return key in self._entries

    def items(self) -> list[tuple[K, V]]:
        """Return the map keys with their values."""
        return list(self._entries.items())

    def keys(self) -> list[K]:
        """Return the map keys."""
        return list(self._entries)

    def values(self) -> list[V]:
        """Return the values."""
        return list(self._entries.values())

    def is_empty(self) -> bool:
        """Return whether there is no map key."""
        return not self._entries

    def clear(self) -> NoReturn:
        """Refuse to change anything.

        Raises
        ------
        LifecycleError
            Always.
        """
        raise LifecycleError(
            f"the broadcast state {self._name!r} can be changed in process_broadcast_element() only"
        )


class HeapBroadcastState(ReadOnlyHeapBroadcastState[K, V], BroadcastState[K, V]):
    """A :class:`BroadcastState` on a dictionary.

    Parameters
    ----------
    name : str
    entries : dict
        What it holds; it becomes the state's own.
    check : EntryCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.HeapBroadcastState``.
    """

    def __init__(self, name: str, entries: dict[Any, Any], check: EntryCheck) -> None:
        super().__init__(name, entries)
        self._check = check

    def put(self, key: K, value: V) -> None:
        """Set the value of a map key."""
        self._check(key, value)
        self._entries[key] = value

    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of several map keys: all of them, or none where one is refused."""
        self._entries.update(self._check.all(dict_value))

    def remove(self, key: K) -> None:
        """Remove a map key; one that is missing is no error."""
        self._entries.pop(key, None)

    def clear(self) -> None:  # type: ignore[override]
        """Remove all map keys."""
        self._entries.clear()

    def read_only(self) -> ReadOnlyHeapBroadcastState[K, V]:
        """Return a view that cannot change anything, and shows every change."""
        return ReadOnlyHeapBroadcastState(self._name, self._entries)
