"""A value as its serializer wrote it, until a descriptor names that serializer again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flinkcore.common.serializer import Serializer
from flinkcore.common.type_information import TypeInformation
from flinkcore.errors import ConfigurationError, UserCodeError

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


def serialization(state_name: str, type_info: TypeInformation | None) -> Conversion | None:
    """Return what makes values of a state SerializedValues, but for None; None where they stay as they are.

    The function raises UserCodeError where the serializer raises, or gives no bytes.
    """
    if not isinstance(type_info, Serializer):
        return None
    serializer = type_info
    name = getattr(serializer, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(
            f"the serializer {serializer!r} of the state {state_name!r} has no name: give its class the attribute "
            "name, a text that tells it from others"
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


def deserialization(state_name: str, what: str, type_info: TypeInformation | None) -> Conversion:
    """Return what makes SerializedValues of a restored state values again, and lets other values be.

    Parameters
    ----------
    state_name : str
    what : str
        What the values are in the state, in the plural.
    type_info : TypeInformation, optional
        As declared; only a serializer of the same name reads a value.

    Returns
    -------
    callable
        It raises ConfigurationError where another serializer is needed, UserCodeError where this one raises.
    """

    def deserialize(value: Any) -> Any:
        if type(value) is not SerializedValue:
            return value
        if not isinstance(type_info, Serializer) or type_info.name != value.serializer:
            raise ConfigurationError(
                f"the {what} of the restored state {state_name!r} were written by the serializer "
                f"{value.serializer!r}, but its descriptor names {type_info}: name that serializer as their type"
            )
        try:
            return type_info.deserialize(value.data)
        except Exception as failure:
            raise UserCodeError(
                f"the serializer {type_info.name!r} of the state {state_name!r} cannot read what it wrote: {failure}"
            ) from failure

    return deserialize
