"""One map per key."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Generic, TypeVar

from flinkcore.common.type_information import TypeInformation
from flinkcore.datastream.state.state import State
from flinkcore.datastream.state.state_descriptor import StateDescriptor, checked_type

K = TypeVar("K")
V = TypeVar("V")


class MapState(State, Generic[K, V]):
    """A map of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.state.MapState``.
    """

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of a map key; None where there is none."""

    @abstractmethod
    def put(self, key: K, value: V | None) -> None:
        """Set the value of a map key, which may be None."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of several map keys."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a map key; one that is missing is no error."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether a map key has a value that is not None."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V | None]]:
        """Return the map keys with their values, as they are now."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return the map keys, as they are now."""

    @abstractmethod
    def values(self) -> Iterable[V | None]:
        """Return the values, as they are now."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether there is no map key."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V | None) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Declares a :class:`MapState`, or a :class:`BroadcastState`.

    Parameters
    ----------
    name : str
        As of :class:`StateDescriptor`.
    key_type_info, value_type_info : TypeInformation, optional
        Types of the map keys and of the values; what has no type is not checked.

    Notes
    -----
    Follows ``pyflink.datastream.state.MapStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.MAP

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation | None = None,
        value_type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__(name, value_type_info)
        self.key_type_info = checked_type(key_type_info, name)

    def signature(self) -> tuple[object, ...]:
        """Return all that two descriptors of one state must have in common."""
        return *super().signature(), self.key_type_info
