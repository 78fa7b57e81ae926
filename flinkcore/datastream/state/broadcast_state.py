"""One map per operator instance, the same in all of them."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from flinkcore.datastream.state.state import State

K = TypeVar("K")
V = TypeVar("V")


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """Broadcast state as the keyed side of a broadcast function sees it.

    Its values are not to be changed.

    Notes
    -----
    Follows ``pyflink.datastream.state.ReadOnlyBroadcastState``.
    """

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of a map key; None where there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether there is a map key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return the map keys with their values, as they are now."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return the map keys, as they are now."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return the values, as they are now."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether there is no map key."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """A map that every instance of an operator makes of the same broadcast elements.

    The user has to see to it that it depends on nothing else: after a change of parallelism a new instance
    gets the map of one of the old ones.

    Notes
    -----
    Follows ``pyflink.datastream.state.BroadcastState``.
    """

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of a map key."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of several map keys."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a map key; one that is missing is no error."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)
