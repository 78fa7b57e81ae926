"""What a state holds, with values as the serializers of its descriptor write them, and back."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from flinkcore.common.serializer import Serializer
from flinkcore.datastream.state import MapStateDescriptor, StateDescriptor
from flinkcore.runtime.state.serialized_value import Conversion, deserialization, serialization
from flinkcore.runtime.state.stamped_values import map_values
from flinkcore.runtime.state.state_table import StateTable
from flinkcore.runtime.state.value_check import value_check


def has_serializer(descriptor: StateDescriptor) -> bool:
    """Return whether a descriptor names a serializer for values or map keys."""
    return isinstance(descriptor.type_info, Serializer) or isinstance(_key_type(descriptor), Serializer)


def serialized_values(descriptor: StateDescriptor, values: Sequence[Any], are_stamped: bool) -> Sequence[Any]:
    """Return what a keyed state holds, by entry, with what has a serializer as SerializedValues.

    Raises
    ------
    UserCodeError
        If a serializer raises.
    """
    of_value = serialization(descriptor.name, descriptor.type_info) or _same
    of_key = serialization(descriptor.name, _key_type(descriptor)) or _same
    return [_converted(descriptor.type, held, of_key, of_value, are_stamped) for held in values]


def adopt_restored(descriptor: StateDescriptor, table: StateTable) -> None:
    """Make restored values what a descriptor says that they are.

    Raises
    ------
    ConfigurationError
        If they were written by a serializer that it does not name.
    UserCodeError
        If its serializer raises.
    SchemaError
        If they are of another type than the declared one.
    """
    if not table.is_serialized and descriptor.type_info is None and _key_type(descriptor) is None:
        return
    of_value = _adoption(descriptor, _WHAT[descriptor.type], descriptor.type_info)
    of_key = _adoption(descriptor, "map keys", _key_type(descriptor))
    are_stamped = table.ttl_time is not None
    namespaces, key_ids, values = table.columns()
    adopted = [_converted(table.type, held, of_key, of_value, are_stamped) for held in values]
    table.put_all(namespaces, key_ids, adopted)
    table.is_serialized = False


def serialized_elements(descriptor: StateDescriptor, elements: Sequence[Any]) -> Sequence[Any]:
    """Return the elements of an operator state, or the pairs of a broadcast state, as :func:`serialized_values`."""
    if not has_serializer(descriptor):
        return elements
    of_value = serialization(descriptor.name, descriptor.type_info) or _same
    if not isinstance(descriptor, MapStateDescriptor):
        return [of_value(element) for element in elements]
    of_key = serialization(descriptor.name, descriptor.key_type_info) or _same
    return [(of_key(key), of_value(value)) for key, value in elements]


def deserialized_elements(descriptor: StateDescriptor, elements: Sequence[Any]) -> list[Any]:
    """Return what `serialized_elements` was given; errors are those of :func:`adopt_restored`, but SchemaError."""
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


def _same(value: Any) -> Any:
    return value


def _key_type(descriptor: StateDescriptor) -> Any:
    return descriptor.key_type_info if isinstance(descriptor, MapStateDescriptor) else None


def _adoption(descriptor: StateDescriptor, what: str, type_info: Any) -> Conversion:
    deserialize = deserialization(descriptor.name, what, type_info)
    check = value_check(descriptor.name, what, type_info)

    def adopt(value: Any) -> Any:
        adopted = deserialize(value)
        if check is not None:
            check(adopted)
        return adopted

    return adopt


def _with_stamp(of_value: Conversion, stamped: Any) -> Any:
    return of_value(stamped[0]), stamped[1]


def _converted(
    type: StateDescriptor.Type, held: Any, of_key: Conversion, of_value: Conversion, are_stamped: bool
) -> Any:
    function = partial(_with_stamp, of_value) if are_stamped else of_value
    converted = map_values(type, held, function)
    if type is StateDescriptor.Type.MAP and of_key is not _same:
        return {of_key(key): value for key, value in converted.items()}
    return converted
