"""Values as their serializers write them: what snapshots hold until a descriptor names the serializer again."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flinkcore._native.keys import dictionary_key, given_items
from flinkcore.common.serializer import Serializer
from flinkcore.datastream.state import MapStateDescriptor, StateDescriptor
from flinkcore.datastream.state.state_descriptor import StateType
from flinkcore.errors import ConfigurationError, UserCodeError
from flinkcore.operators.state.state_table import StateTable
from flinkcore.operators.state.time_to_live import map_values
from flinkcore.operators.state.value_checks import map_keys, value_check

Conversion = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SerializedValue:
    """A value as bytes.

    Parameters
    ----------
    serializer : str
        Name of the serializer.
    data : bytes
    """

    serializer: str
    data: bytes


def unchanged(value: Any) -> Any:
    """Return a value as it is."""
    return value


def serialization(state_name: str, type_info: StateType | None) -> Conversion:
    """Return the function that serializes the values of a state; :func:`unchanged` if no serializer is declared.

    It makes SerializedValues of all values but None, and raises UserCodeError if the serializer raises or gives
    anything but bytes.

    Raises
    ------
    ConfigurationError
        If the serializer has no name.
    """
    if not isinstance(type_info, Serializer):
        return unchanged
    serializer = type_info
    name = getattr(serializer, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(
            f"the serializer {serializer!r} of the state {state_name!r} has no name. Give its class the attribute "
            "name, a text that no other serializer has"
        )

    def serialize(value: Any) -> Any:
        if value is None or isinstance(value, SerializedValue):
            return value
        try:
            data = serializer.serialize(value)
        except Exception as failure:
            raise UserCodeError(
                f"the serializer {serializer.name!r} of the state {state_name!r} failed on {value!r}: {failure}"
            ) from failure
        if not isinstance(data, bytes):
            raise UserCodeError(
                f"the serializer {serializer.name!r} of the state {state_name!r} gave {type(data).__qualname__} for "
                f"{value!r}; it is to give bytes"
            )
        return SerializedValue(serializer.name, data)

    return serialize


def deserialization(state_name: str, what: str, type_info: StateType | None) -> Conversion:
    """Return the function that deserializes the values of a restored state; it returns other values as they are.

    Parameters
    ----------
    state_name : str
    what : str
        Name of the values in the state, in the plural: "elements".
    type_info : StateType or None
        As declared.

    Returns
    -------
    callable
        It raises ConfigurationError if a value was written by a serializer of another name than the declared one,
        UserCodeError if the serializer raises.
    """

    def deserialize(value: Any) -> Any:
        if type(value) is not SerializedValue:
            return value
        if not isinstance(type_info, Serializer) or type_info.name != value.serializer:
            raise ConfigurationError(
                f"the {what} of the restored state {state_name!r} were written by the serializer "
                f"{value.serializer!r}, but its descriptor names {type_info}. Name that serializer as their type"
            )
        try:
            return type_info.deserialize(value.data)
        except Exception as failure:
            raise UserCodeError(
                f"the serializer {type_info.name!r} of the state {state_name!r} cannot read what it wrote: {failure}"
            ) from failure

    return deserialize


def has_serializer(descriptor: StateDescriptor) -> bool:
    """Return whether a descriptor names a serializer for values or map keys."""
    return isinstance(descriptor.type_info, Serializer) or isinstance(_key_type(descriptor), Serializer)


def serialized_values(descriptor: StateDescriptor, values: Sequence[Any], are_stamped: bool) -> Sequence[Any]:
    """Return the values of a keyed state, by entry, serialized as far as its descriptor names serializers.

    Parameters
    ----------
    descriptor : StateDescriptor
    values : sequence of object
        Values, lists or dictionaries, by the type of the state.
    are_stamped : bool
        Whether each single value is a pair with the time of its last access.

    Raises
    ------
    UserCodeError
        If a serializer raises.
    """
    of_value = serialization(descriptor.name, descriptor.type_info)
    of_key = serialization(descriptor.name, _key_type(descriptor))
    return [
        _converted(descriptor.type, held, of_key, of_value, are_stamped, dictionary_key) for held in values
    ]


def adopt_restored(descriptor: StateDescriptor, table: StateTable) -> None:
    """Deserialize the restored values of a table, and check their types, as a descriptor declares them.

    Raises
    ------
    ConfigurationError
        If they were written by a serializer that the descriptor does not name.
    UserCodeError
        If the serializer raises.
    SchemaError
        If they are of another type than the declared one.
    """
    if not table.is_serialized and descriptor.type_info is None and _key_type(descriptor) is None:
        return
    of_value = _adoption(descriptor, _WHAT[descriptor.type], descriptor.type_info)
    of_key = _adoption(descriptor, "map keys", _key_type(descriptor))
    are_stamped = table.ttl_time is not None
    namespaces, key_ids, values = table.columns()
    held_key = map_keys(descriptor) if isinstance(descriptor, MapStateDescriptor) else dictionary_key
    adopted = [_converted(table.type, held, of_key, of_value, are_stamped, held_key) for held in values]
    table.put_all(namespaces, key_ids, adopted)
    table.is_serialized = False


def serialized_elements(descriptor: StateDescriptor, elements: Sequence[Any]) -> Sequence[Any]:
    """Return the elements of an operator state, or the entries of a broadcast state, serialized."""
    if not has_serializer(descriptor):
        return elements
    of_value = serialization(descriptor.name, descriptor.type_info)
    if not isinstance(descriptor, MapStateDescriptor):
        return [of_value(element) for element in elements]
    of_key = serialization(descriptor.name, descriptor.key_type_info)
    return [(of_key(key), of_value(value)) for key, value in elements]


def deserialized_elements(descriptor: StateDescriptor, elements: Sequence[Any]) -> list[Any]:
    """Return what `serialized_elements` was given; ConfigurationError and UserCodeError as :func:`adopt_restored`."""
    of_value = deserialization(descriptor.name, _WHAT[descriptor.type], descriptor.type_info)
    if not isinstance(descriptor, MapStateDescriptor):
        return [of_value(element) for element in elements]
    of_key = deserialization(descriptor.name, "map keys", descriptor.key_type_info)
    return [(of_key(key), of_value(value)) for key, value in elements]


_WHAT = {
    StateDescriptor.Type.VALUE: "values",
    StateDescriptor.Type.LIST: "elements",
    StateDescriptor.Type.MAP: "values",
    StateDescriptor.Type.REDUCING: "values",
    StateDescriptor.Type.AGGREGATING: "accumulators",
}


def _key_type(descriptor: StateDescriptor) -> Any:
    return descriptor.key_type_info if isinstance(descriptor, MapStateDescriptor) else None


def _adoption(descriptor: StateDescriptor, what: str, type_info: Any) -> Conversion:
    deserialize = deserialization(descriptor.name, what, type_info)
    check = value_check(descriptor.name, what, type_info)

    def adopt(value: Any) -> Any:
        adopted = deserialize(value)
        return adopted if check is None else check(adopted)

    return adopt


def _with_stamp(of_value: Conversion, stamped: Any) -> Any:
    return of_value(stamped[0]), stamped[1]


def _converted(
    type: StateDescriptor.Type,
    held: Any,
    of_key: Conversion,
    of_value: Conversion,
    are_stamped: bool,
    held_key: Callable[[Any], Hashable],
) -> Any:
    function = partial(_with_stamp, of_value) if are_stamped else of_value
    converted = map_values(type, held, function)
    if type is StateDescriptor.Type.MAP and of_key is not unchanged:
        return {held_key(of_key(key)): value for key, value in given_items(converted)}
    return converted
