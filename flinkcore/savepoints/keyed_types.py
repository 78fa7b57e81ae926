"""Types of keyed states: serializers of keys, namespaces and values, and the table of their entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flinkcore._native.state_columns import ListColumn, RestColumn, StateColumn
from flinkcore._native.state_entries import EntryTable
from flinkcore.savepoints.serializers.basic import LONG
from flinkcore.savepoints.serializers.composite import (
    ListSerializer,
    MapSerializer,
    TimerSerializer,
    TtlSerializer,
)
from flinkcore.savepoints.serializers.serializer import NothingSerializer, StateSerializer
from flinkcore.savepoints.serializers.snapshots import TIMERS, StateDescription

_KINDS: Final = {"VALUE": 0, "REDUCING": 0, "AGGREGATING": 0, "LIST": 1, "MAP": 2, "TIMERS": 3}
_ONE_BYTE_GROUPS: Final = 128


@dataclass(frozen=True)
class KeyedTypes:
    """Types of a keyed state.

    Attributes
    ----------
    kind : str
    key, namespace : StateSerializer
    map_key, value : StateSerializer or None
        The value is that of an element of a list, of an entry of a map; None for timers.
    has_ttl : bool
        Whether values have times of last access.
    """

    kind: str
    key: StateSerializer
    namespace: StateSerializer
    map_key: StateSerializer | None
    value: StateSerializer | None
    has_ttl: bool

    @classmethod
    def of(cls, key: StateSerializer, state: StateDescription) -> KeyedTypes:
        """Return the types of a state by its description.

        Raises
        ------
        ValueError
            If the description contradicts itself.
        """
        value: StateSerializer = state.serializers["VALUE_SERIALIZER"]
        if state.kind == TIMERS:
            if not isinstance(value, TimerSerializer):
                raise ValueError(f"the timers {state.name!r} are not timers but {value.name}")
            timer_key, namespace = value.nested
            return cls("TIMERS", timer_key, namespace, None, None, False)
        kind = state.options.get("KEYED_STATE_TYPE", "")
        if kind not in _KINDS or kind == "TIMERS":
            raise ValueError(f"state {state.name!r} is of the unknown kind {kind!r}")
        namespace, map_key = state.serializers["NAMESPACE_SERIALIZER"], None
        if kind == "LIST":
            if type(value) is not ListSerializer:
                raise ValueError(f"the list state {state.name!r} is not a list but {value.name}")
            (value,) = value.nested
        elif kind == "MAP":
            if not isinstance(value, MapSerializer):
                raise ValueError(f"the map state {state.name!r} is not a map but {value.name}")
            map_key, value = value.nested
        has_ttl = isinstance(value, TtlSerializer)
        if isinstance(value, TtlSerializer):
            value = value.nested[1]
        return cls(kind, key, namespace, map_key, value, has_ttl)

    def merged(self, other: KeyedTypes) -> KeyedTypes:
        """Return types for the values of this and of another subtask.

        Raises
        ------
        ValueError
            If they contradict each other.
        """
        if (self.kind, self.has_ttl) != (other.kind, other.has_ttl):
            raise ValueError(f"its subtasks differ in kinds: {self.kind} and {other.kind}")
        return KeyedTypes(
            self.kind,
            self.key.merged(other.key),
            self.namespace.merged(other.namespace),
            None if self.map_key is None or other.map_key is None else self.map_key.merged(other.map_key),
            None if self.value is None or other.value is None else self.value.merged(other.value),
            self.has_ttl,
        )

    @property
    def by_column(self) -> dict[str, StateSerializer]:
        """Serializers by the columns of their values."""
        columns = {"key": self.key, "namespace": self.namespace, "map_key": self.map_key, "value": self.value}
        return {name: each for name, each in columns.items() if each is not None}

    @property
    def obstacle(self) -> str | None:
        """Reason why entries cannot be told apart from their keys alone, or None if they can."""
        if self.namespace.unknown:
            return f"only Java can read its namespaces: {self.namespace.unknown}"
        if self.key.unknown and (self.namespace.length is None or self.map_key is not None):
            return f"only Java can read its keys: {self.key.unknown}"
        return None

    def table(self, max_parallelism: int, exact: bool, max_values_per_entry: int) -> EntryTable:
        """Return an empty table for entries of the state."""
        value = None if self.value is None else _column(self.value, exact)
        last_access = LONG.column(exact) if self.has_ttl else None
        if self.kind == "LIST":
            if self.value is None or self.value.unknown:
                # Nothing says where an unknown element ends: the bytes of all, with their times, are the value.
                last_access = None
            else:
                value = ListColumn(self.value.column(exact))
                last_access = None if last_access is None else ListColumn(last_access)
        is_timers = self.kind == "TIMERS"
        has_lengths = not is_timers and self.key.length is None and self.namespace.length is None
        namespace = None if isinstance(self.namespace, NothingSerializer) else self.namespace
        spare = self.kind == "MAP"
        return EntryTable(
            _KINDS[self.kind],
            _column(self.key, exact),
            None if namespace is None else namespace.column(exact),
            None if self.map_key is None else _column(self.map_key, exact),
            value,
            last_access,
            1 if max_parallelism <= _ONE_BYTE_GROUPS else 2,
            has_lengths,
            self.namespace.length if self.key.unknown and self.namespace.length is not None else -1,
            max_values_per_entry,
            _column(self.key, exact) if spare else None,
            namespace.column(exact) if spare and namespace is not None else None,
        )


def _column(serializer: StateSerializer, exact: bool) -> StateColumn:
    return RestColumn() if serializer.unknown else serializer.column(exact)
