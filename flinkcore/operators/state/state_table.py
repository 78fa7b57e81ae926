"""The values of one keyed state, for all keys and namespaces."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, Protocol

from flinkcore._internal.python.object_sizes import size_of_all
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SAMPLED_VALUES: Final = 64
"""Values of windows whose sizes are measured for an estimate of all."""

WINDOW_BYTES: Final = 200
"""Memory of a namespace other than the void one, about."""

VOID_NAMESPACE = None
"""The namespace of state that belongs to a key as such, and not to a window of it."""


class Values(Protocol):
    """Values of one namespace by key id; None where a key has none."""

    def __getitem__(self, key_id: int, /) -> Any: ...

    def __setitem__(self, key_id: int, value: Any, /) -> None: ...


class NamespaceValues(dict[int, Any]):
    """Values by key id in a namespace that only some keys use."""

    def __missing__(self, key_id: int) -> None:
        return None


class StateTable:
    """Values of one state by namespace and key id.

    The void namespace is a list with a place for every key id, so that an access takes no hash look-up. Any other
    namespace is a dictionary, which exists while it has a value or is selected.

    Parameters
    ----------
    type : StateDescriptor.Type
    ttl_time : StateTtlConfig.TtlTimeCharacteristic, optional
        Values have stamps of this time; by default they have none.

    Attributes
    ----------
    is_serialized : bool
        Whether the values were restored as SerializedValues, and no descriptor has named a serializer yet.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.heap.StateTable``, with key ids for keys.
    """

    __slots__ = ("_by_namespace", "_selected", "_void", "is_serialized", "ttl_time", "type")

    def __init__(
        self, type: StateDescriptor.Type, ttl_time: StateTtlConfig.TtlTimeCharacteristic | None
    ) -> None:
        self.type = type
        self.ttl_time = ttl_time
        self.is_serialized = False
        self._void: list[Any] = []
        self._by_namespace: dict[Hashable, NamespaceValues] = {}
        self._selected: Hashable = VOID_NAMESPACE

    def select(self, namespace: Hashable) -> Values:
        """Return the values of a namespace, to be read and set until another one is selected.

        A key id beyond the end of the void namespace's list raises IndexError; :meth:`put` makes room for it.
        """
        previous, self._selected = self._selected, namespace
        self._drop_if_empty(previous)
        if namespace is VOID_NAMESPACE:
            return self._void
        return self._by_namespace.setdefault(namespace, NamespaceValues())

    def get(self, namespace: Hashable, key_id: int) -> Any:
        """Return a value, or None."""
        if namespace is VOID_NAMESPACE:
            return self._void[key_id] if key_id < len(self._void) else None
        values = self._by_namespace.get(namespace)
        return None if values is None else values[key_id]

    def values_in(self, window: Hashable) -> dict[int, Any] | None:
        """Return the dictionary of a namespace other than the void one, by key id; None if it has no values.

        It stays the same object until its last value is removed.
        """
        return self._by_namespace.get(window)

    def put(self, namespace: Hashable, key_id: int, value: Any) -> None:
        """Set a value."""
        if namespace is not VOID_NAMESPACE:
            self._by_namespace.setdefault(namespace, NamespaceValues())[key_id] = value
            return
        missing = key_id + 1 - len(self._void)
        if missing > 0:
            self._void += [None] * (missing + len(self._void) // 8)
        self._void[key_id] = value

    def put_all(self, namespaces: Iterable[Hashable], key_ids: Sequence[int], values: Iterable[Any]) -> None:
        """Set values, none of which is None."""
        if key_ids and max(key_ids) >= len(self._void):
            self._void += [None] * (max(key_ids) + 1 - len(self._void))
        void, by_namespace = self._void, self._by_namespace
        for namespace, key_id, value in zip(namespaces, key_ids, values, strict=True):
            if namespace is VOID_NAMESPACE:
                void[key_id] = value
            else:
                by_namespace.setdefault(namespace, NamespaceValues())[key_id] = value

    def remove(self, namespace: Hashable, key_id: int) -> Any:
        """Remove a value and return it, or None."""
        if namespace is VOID_NAMESPACE:
            removed = self.get(namespace, key_id)
            if removed is not None:
                self._void[key_id] = None
            return removed
        values = self._by_namespace.get(namespace)
        if values is None:
            return None
        removed = values.pop(key_id, None)
        self._drop_if_empty(namespace)
        return removed

    def entries(self) -> Iterator[tuple[Hashable, int, Any]]:
        """Yield namespace, key id and value of all entries; the table must not change meanwhile."""
        for key_id, value in enumerate(self._void):
            if value is not None:
                yield VOID_NAMESPACE, key_id, value
        for namespace, values in self._by_namespace.items():
            for key_id, value in values.items():
                yield namespace, key_id, value

    def columns(self) -> tuple[list[Hashable], list[int], list[Any]]:
        """Return namespaces, key ids and values of all entries, in the order of :meth:`entries`."""
        key_ids = [key_id for key_id, value in enumerate(self._void) if value is not None]
        values = [value for value in self._void if value is not None]
        namespaces: list[Hashable] = [VOID_NAMESPACE] * len(values)
        for namespace, held in self._by_namespace.items():
            key_ids += held
            values += held.values()
            namespaces += [namespace] * len(held)
        return namespaces, key_ids, values

    def memory(self) -> tuple[int, int]:
        """Return how many entries there are at most, and about how many bytes they take."""
        n_entries, n_bytes = len(self._void), getsizeof(self._void) + size_of_all(self._void)
        sampled: list[Any] = []
        of_windows = 0
        for values in self._by_namespace.values():
            of_windows += len(values)
            n_bytes += WINDOW_BYTES + getsizeof(values)
            if values and len(sampled) < SAMPLED_VALUES:
                sampled.append(next(iter(values.values())))
        n_bytes += size_of_all(sampled) * of_windows // max(1, len(sampled))
        return n_entries + of_windows, n_bytes

    @property
    def void_values(self) -> list[Any]:
        """The values of the void namespace by key id; always the same list, to be read only."""
        return self._void

    def places_in_windows(self) -> Iterator[tuple[Hashable, int]]:
        """Yield namespace, other than the void one, and key id of all entries; the table may change meanwhile."""
        for namespace, values in list(self._by_namespace.items()):
            for key_id in list(values):
                yield namespace, key_id

    def key_ids(self) -> npt.NDArray[np.int64]:
        """Return the ids of all keys that have a value, with repetitions."""
        import numpy as np

        key_ids = [key_id for key_id, value in enumerate(self._void) if value is not None]
        for values in self._by_namespace.values():
            key_ids += values
        return np.array(key_ids, np.int64)

    def _drop_if_empty(self, namespace: Hashable) -> None:
        if namespace != self._selected and self._by_namespace.get(namespace, True) == {}:
            del self._by_namespace[namespace]

    def _check(self) -> None:
        """Assert every invariant."""
        assert VOID_NAMESPACE not in self._by_namespace
        assert all(values or space == self._selected for space, values in self._by_namespace.items())
        assert all(value is not None for values in self._by_namespace.values() for value in values.values())
