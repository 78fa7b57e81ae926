"""One map per key whose entries expire."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from flinkcore.datastream.state import MapState
from flinkcore.runtime.state.entry_check import EntryCheck
from flinkcore.runtime.state.heap_map_state import HeapMapState
from flinkcore.runtime.state.stamped_values import Stamped
from flinkcore.runtime.state.ttl_state import TtlLife, TtlState

K = TypeVar("K")
V = TypeVar("V")


class TtlMapState(TtlState[HeapMapState[K, Stamped]], MapState[K, V]):
    """A :class:`MapState` each of whose entries has a time to live.

    Parameters
    ----------
    original, life, on_access
        As of :class:`TtlState`.
    check : EntryCheck

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlMapState``. As there, an entry with the value None has no
    stamp and never expires, but is not among the items, and `is_empty` counts expired entries that are still
    there.
    """

    def __init__(
        self,
        original: HeapMapState[K, Stamped],
        life: TtlLife,
        on_access: Callable[[], None],
        check: EntryCheck,
    ) -> None:
        super().__init__(original, life, on_access)
        self._check = check

    def get(self, key: K) -> V | None:
        """Return the value of a map key; None where there is none that can be seen."""
        self._on_access()
        stamped = self._read(key, self._original.get(key))
        return None if stamped is None else stamped[0]

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a map key, which may be None."""
        self._on_access()
        self._check(key, value)
        self._original.put(key, None if value is None else self._life.stamp(value))

    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of several map keys: all of them, or none where one is refused."""
        self._on_access()
        now_ms = self._life.now()
        added = self._check.all(dict_value)
        for key, value in added.items():
            self._original.put(key, None if value is None else (value, now_ms))

    def remove(self, key: K) -> None:
        """Remove a map key; one that is missing is no error."""
        self._on_access()
        self._original.remove(key)

    def contains(self, key: K) -> bool:
        """Return whether a map key has a value that is not None and can be seen."""
        return self.get(key) is not None

    def items(self) -> list[tuple[K, V | None]]:
        """Return the map keys with their values, those that can be seen."""
        self._on_access()
        read = [(key, self._read(key, stamped)) for key, stamped in self._original.items()]
        return [(key, stamped[0]) for key, stamped in read if stamped is not None]

    def keys(self) -> list[K]:
        """Return the map keys of values that can be seen."""
        return [key for key, _ in self.items()]

    def values(self) -> list[V | None]:
        """Return the values that can be seen."""
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        """Return whether there is no map key, not even one that has expired."""
        self._on_access()
        return self._original.is_empty()

    def _read(self, key: K, stamped: Stamped | None) -> Stamped | None:
        original = self._original
        return self._life.read(
            stamped, lambda renewed: original.put(key, renewed), lambda: original.remove(key)
        )
