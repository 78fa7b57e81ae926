"""Lists and maps in the accumulators of aggregate functions, under PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

__all__ = ["DataView", "ListView", "MapView"]


class DataView(ABC):
    """Values in an accumulator.

    Notes
    -----
    Follows ``pyflink.table.DataView``. PyFlink may keep a view in a state of its own; here it is always a part of its
    accumulator, and checkpoints hold it as data.
    """

    @abstractmethod
    def clear(self) -> None:
        """Remove all values."""


class ListView(DataView, Generic[T]):
    """A list in an accumulator.

    Notes
    -----
    Follows ``pyflink.table.ListView``.
    """

    __hash__: Final = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> list[T]:
        """Return the values in their order."""
        return self._list

    def add(self, value: T) -> None:
        """Append a value."""
        self._list.append(value)

    def add_all(self, values: Sequence[T]) -> None:
        """Append values."""
        self._list.extend(values)

    def clear(self) -> None:
        """Remove all values."""
        self._list = []

    def __iter__(self) -> Iterator[T]:
        return iter(self._list)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and self._list == other._list

    def __repr__(self) -> str:
        return f"ListView({self._list!r})"


class MapView(DataView, Generic[K, V]):
    """A map in an accumulator.

    Notes
    -----
    Follows ``pyflink.table.MapView``. A key that is not there raises KeyError.
    """

    __hash__: Final = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V:
        """Return the value of a key; raise KeyError if it has none."""
        return self._dict[key]

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of keys."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Remove a key; raise KeyError if it is not there."""
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """Return whether a key has a value."""
        return key in self._dict

    def items(self) -> ItemsView[K, V]:
        """Return the keys with their values."""
        return self._dict.items()

    def keys(self) -> KeysView[K]:
        """Return the keys."""
        return self._dict.keys()

    def values(self) -> ValuesView[V]:
        """Return the values."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """Return whether no key has a value."""
        return not self._dict

    def clear(self) -> None:
        """Remove all keys."""
        self._dict.clear()

    def __getitem__(self, key: K) -> V:
        return self._dict[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._dict[key] = value

    def __delitem__(self, key: K) -> None:
        del self._dict[key]

    def __contains__(self, key: object) -> bool:
        return key in self._dict

    def __iter__(self) -> Iterator[K]:
        return iter(self._dict)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    def __repr__(self) -> str:
        return f"MapView({self._dict!r})"
