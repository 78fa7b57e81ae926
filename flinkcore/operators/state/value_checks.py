"""Checks of values, list elements and map entries against the types of their state; each raises a SchemaError.

They return what the state keeps.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from flinkcore._native.element_calls import MapKeys
from flinkcore.common.typeinfo import BasicTypeInfo, ListTypeInfo, TypeInformation
from flinkcore.common.typeinfo.composite_types import PrimitiveArrayTypeInfo
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.state.state_descriptor import StateType
from flinkcore.errors import SchemaError

T = TypeVar("T")


class ValueCheck:
    """Refuses values of another type; what is declared a list is kept as one, as in PyFlink.

    Parameters
    ----------
    state_name : str
    what : str
        Name of the values in the state, in the plural: "elements".
    type_info : StateType

    Attributes
    ----------
    accepts : callable
        Whether a value, which is not None, is of the type.
    makes_lists : bool
        Whether the state keeps lists, of whatever can be iterated over.
    """

    __slots__ = ("_state_name", "_type_info", "_what", "accepts", "makes_lists")

    def __init__(self, state_name: str, what: str, type_info: StateType) -> None:
        self._state_name = state_name
        self._what = what
        self._type_info = type_info
        self.accepts = type_info.accepts
        self.makes_lists = isinstance(type_info, ListTypeInfo)

    def __call__(self, value: Any) -> Any:
        """Check a value, and return it as it is kept; None is accepted."""
        if value is not None and not self.accepts(value):
            which = f"is {type(value).__qualname__}"
            if isinstance(value, int) and self.accepts(0):
                which = f"has {value.bit_length()} bits beside its sign"
            raise SchemaError(
                f"the {self._what} of the state {self._state_name!r} are {self._type_info}, but {value!r} {which}"
            )
        if self.makes_lists and value is not None and not isinstance(value, list):
            return list(value)
        return value


def value_check(state_name: str, what: str, type_info: StateType | None) -> ValueCheck | None:
    """Return the check of a state's values; None if no type is declared."""
    return None if type_info is None else ValueCheck(state_name, what, type_info)


class ElementCheck:
    """Refuses list elements that are None, as Flink does, or of another type than the declared one.

    Parameters
    ----------
    state_name : str
    type_info : StateType, optional
        Type of the elements; by default anything but None is accepted.
    """

    __slots__ = ("_state_name", "_type_check")

    def __init__(self, state_name: str, type_info: StateType | None = None) -> None:
        self._state_name = state_name
        self._type_check = value_check(state_name, "elements", type_info)

    def __call__(self, value: Any) -> Any:
        """Check an element, and return it as it is kept."""
        if value is None:
            raise SchemaError(f"None cannot be an element of the list state {self._state_name!r}")
        return value if self._type_check is None else self._type_check(value)

    def all(self, values: Iterable[T]) -> list[T]:
        """Check all elements, and return them as a new list."""
        if values is None:
            raise SchemaError(f"the list state {self._state_name!r} takes several elements, not None")
        return [self(element) for element in values]


def map_keys(descriptor: MapStateDescriptor[Any, Any]) -> MapKeys:
    """Return what makes of the keys of a map state what its dictionaries hold."""
    key_type = descriptor.key_type_info
    if not isinstance(key_type, TypeInformation):
        return MapKeys(descriptor.name)
    plain_classes = key_type.plain_classes()
    if isinstance(key_type, BasicTypeInfo) and key_type.is_whole:
        plain_classes |= {int}  # those of too many bits are refused, and not changed
    conversion = key_type.conversion()
    if isinstance(key_type, PrimitiveArrayTypeInfo):
        conversion = partial(_as_bytes, conversion)
    return MapKeys(descriptor.name, conversion, plain_classes)


def _as_bytes(conversion: Callable[[Any], Any] | None, key: Any) -> Any:
    """Return an array of bytes as bytes, of which equal ones are one key; other keys converted."""
    if isinstance(key, bytearray):
        return bytes(key)
    return key if conversion is None else conversion(key)


class EntryCheck:
    """Refuses map keys and values of another type than the declared ones.

    Parameters
    ----------
    descriptor : MapStateDescriptor

    Attributes
    ----------
    keys : MapKeys
        Makes of map keys what dictionaries hold.
    accepts_all : bool
        Whether no type is declared.
    """

    __slots__ = ("_key_check", "_value_check", "accepts_all", "keys")

    def __init__(self, descriptor: MapStateDescriptor[Any, Any]) -> None:
        self.keys = map_keys(descriptor)
        self.accepts_all = descriptor.key_type_info is None and descriptor.type_info is None
        self._key_check = value_check(descriptor.name, "map keys", descriptor.key_type_info)
        self._value_check = value_check(descriptor.name, "values", descriptor.type_info)

    def checked(self, key: Any, value: Any) -> Any:
        """Check an entry, and return its value as it is kept."""
        if self._key_check is not None:
            self._key_check(key)
        return value if self._value_check is None else self._value_check(value)

    def all(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> dict[Hashable, Any]:
        """Check all entries, and return them in a new dictionary by what it holds for their keys."""
        return self.keys.hold_all(entries, None if self.accepts_all else self.checked)
