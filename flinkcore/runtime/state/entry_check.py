"""Whether a key and a value can be an entry of a map state."""

from collections.abc import Iterable, Mapping
from typing import Any

from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.errors import SchemaError
from flinkcore.runtime.state.value_check import value_check


class EntryCheck:
    """Refuses map keys and values of another type than the declared ones.

    Parameters
    ----------
    descriptor : MapStateDescriptor
    """

    __slots__ = ("_key_check", "_state_name", "_value_check")

    def __init__(self, descriptor: MapStateDescriptor[Any, Any]) -> None:
        self._state_name = descriptor.name
        self._key_check = value_check(descriptor.name, "map keys", descriptor.key_type_info)
        self._value_check = value_check(descriptor.name, "values", descriptor.type_info)

    def __call__(self, key: Any, value: Any) -> None:
        """Accept an entry.

        Raises
        ------
        SchemaError
            If key or value are of another type.
        """
        if self._key_check is not None:
            self._key_check(key)
        if self._value_check is not None:
            self._value_check(value)

    def all(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        """Return all entries as a new dictionary.

        Raises
        ------
        SchemaError
            If they are neither a mapping nor pairs, or one of them is refused.
        """
        try:
            added = dict(entries)
        except (TypeError, ValueError) as failure:
            raise SchemaError(
                f"the map state {self._state_name!r} takes a mapping or pairs of key and value, not {entries!r}"
            ) from failure
        for key, value in added.items():
            self(key, value)
        return added
