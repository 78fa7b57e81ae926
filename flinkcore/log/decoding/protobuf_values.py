"""Messages in Protobuf, with or without the header of a schema registry."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from flinkcore._internal.python.extras import library
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.log.decoding.value_decoder import DecodedColumn, decoded_one_by_one
from flinkcore.log.decoding.wire_format import message_indexes, unframed

Conversion: TypeAlias = Callable[[Any], Any]


def protobuf_values(
    descriptors: str | os.PathLike[str] | bytes, message: str, *, has_header: bool = False
) -> ProtobufValues:
    """Return the decoder of a column whose values are messages of Protobuf, for ``from_event_log(decode=...)``.

    Needs the library `protobuf` (``flinkcore[protobuf]``).

    Parameters
    ----------
    descriptors : str, os.PathLike or bytes
        File of a descriptor set, as ``protoc --include_imports --descriptor_set_out=FILE`` writes it, or its bytes.
    message : str
        Full name of the type of the values, such as ``shop.Click``.
    has_header : bool
        Whether values begin with the header of Confluent's serializers: a zero byte, the id of the schema, and the
        indexes of the type in its file, which are checked.

    Returns
    -------
    ProtobufValues
        It makes a column of structs: enums are the names of their values, timestamps instants in microseconds,
        durations are in microseconds, wrappers nullable values, and ``google.protobuf.Struct`` is text in JSON. A field
        without presence has its default where it is not set, others are null. Null is null; an empty value is a message
        without fields only with a header.

    Raises
    ------
    ConfigurationError
        If the file cannot be read.

    Examples
    --------
    >>> env.from_event_log(path, decode={"value": protobuf_values("shop.desc", "shop.Click")}, ...)  # doctest: +SKIP
    """
    if not isinstance(message, str) or not message:
        raise ConfigurationError(
            f"message= is the full name of a type, such as 'shop.Click', not {message!r}"
        )
    if not isinstance(descriptors, bytes):
        try:
            descriptors = Path(descriptors).read_bytes()
        except (OSError, TypeError) as failure:
            raise ConfigurationError(
                f"the descriptor set {descriptors!r} cannot be read: {failure}"
            ) from failure
    return ProtobufValues(descriptors, message, has_header)


@dataclass(frozen=True)
class ProtobufValues:
    """Decoder of messages of Protobuf; made by `protobuf_values`.

    Attributes
    ----------
    descriptors : bytes
        Descriptor set.
    message : str
        Full name of the type.
    is_framed : bool
        Whether values begin with the header of Confluent's serializers.
    """

    descriptors: bytes
    message: str
    is_framed: bool = False

    def prepared(self) -> ProtobufValues:
        _ = self._reader
        return self

    @property
    def type(self) -> pa.DataType:
        return self._reader.type

    @cached_property
    def _reader(self) -> _Reader:
        return _Reader(self.descriptors, self.message)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_reader"}

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        reader = self._reader
        return decoded_one_by_one(
            messages, reader.type, reader.value_of_framed if self.is_framed else reader.value
        )


class _Reader:
    """Class and type of the messages of one name."""

    def __init__(self, descriptors: bytes, message: str) -> None:
        library("google.protobuf.message", "protobuf", "Protobuf")
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from google.protobuf.message import DecodeError

        pool = descriptor_pool.DescriptorPool()
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
            for file in files:
                pool.Add(file)
        except (DecodeError, TypeError) as failure:
            raise ConfigurationError(
                f"the descriptor set cannot be taken: {failure}. Write it by protoc --include_imports "
                "--descriptor_set_out=FILE"
            ) from failure
        try:
            found = pool.FindMessageTypeByName(message)
        except KeyError as missing:
            names = sorted(
                f"{file.package}.{each.name}".lstrip(".") for file in files for each in file.message_type
            )
            raise ConfigurationError(
                f"the descriptor set has no message {message!r}: it has {', '.join(names) or 'none'}"
            ) from missing
        self.indexes = _indexes(found)
        self.name = message
        self._class = message_factory.GetMessageClass(found)
        self.type, self._convert = _message_type(found, ())

    def value(self, body: bytes) -> Any:
        return self._convert(self._class.FromString(body))

    def value_of_framed(self, payload: bytes) -> Any:
        indexes, body = message_indexes(unframed(payload).body)
        if indexes != self.indexes:
            raise DataError(
                f"its message indexes are {list(indexes)}, and those of {self.name} are {list(self.indexes)}"
            )
        return self.value(body)


def _indexes(message: Any) -> tuple[int, ...]:
    """Return the indexes of a type within the types of its file, from the outermost one to itself."""
    outer = message.containing_type
    if outer is None:
        return (list(message.file.message_types_by_name.values()).index(message),)
    return (*_indexes(outer), list(outer.nested_types).index(message))


# ---- types


def _message_type(message: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Conversion]:
    """Return the type of messages, and the conversion of one for Arrow."""
    known = _WELL_KNOWN.get(message.full_name)
    if known is not None:
        return known
    if message.full_name in within:
        raise ConfigurationError(
            f"messages of {message.full_name} are within each other, for which Arrow has no type. Decode a message "
            "without them"
        )
    if not message.fields:
        raise ConfigurationError(
            f"messages of {message.full_name} have no fields, and a column of structs needs some"
        )
    fields, conversions = [], []
    for field in message.fields:
        kind, convert = _field_type(field, (*within, message.full_name))
        fields.append(pa.field(field.name, kind))
        is_optional = field.has_presence
        conversions.append((field.name, is_optional, convert))

    def converted(value: Any) -> dict[str, Any]:
        return {
            name: None if is_optional and not value.HasField(name) else convert(getattr(value, name))
            for name, is_optional, convert in conversions
        }

    return pa.struct(fields), converted


def _field_type(field: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Conversion]:
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    if is_map:
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        key_type, of_key = _single_type(key, within)
        value_type, of_value = _single_type(value, within)
        kind = pa.map_(key_type, value_type)
        # The order of entries has no meaning, and differs from process to process.
        return kind, lambda pairs: sorted((of_key(key), of_value(pairs[key])) for key in pairs)
    kind, convert = _single_type(field, within)
    if field.is_repeated:
        return pa.list_(kind), lambda values: [convert(value) for value in values]
    return kind, convert


def _single_type(field: Any, within: tuple[str, ...]) -> tuple[pa.DataType, Conversion]:
    if field.message_type is not None:
        return _message_type(field.message_type, within)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return pa.string(), lambda number: names.get(number, str(number))
    return _CPP_TYPES[field.cpp_type] if field.type != _BYTES else (pa.binary(), _same)


def _same(value: Any) -> Any:
    return value


_BYTES: Final = 12
"""``TYPE_BYTES`` of descriptors, which have the C++ type of strings."""
_CPP_TYPES: Final[dict[int, tuple[pa.DataType, Conversion]]] = {
    1: (pa.int32(), _same),
    2: (pa.int64(), _same),
    3: (pa.uint32(), _same),
    4: (pa.uint64(), _same),
    5: (pa.float64(), _same),
    6: (pa.float32(), _same),
    7: (pa.bool_(), _same),
    9: (pa.string(), _same),
}
"""Types by ``CPPTYPE_INT32`` and so on."""


def _microseconds(value: Any) -> int:
    return int(value.seconds) * 1_000_000 + int(value.nanos) // 1_000


def _json(value: Any) -> str:
    from google.protobuf import json_format

    return str(json_format.MessageToJson(value, indent=None, sort_keys=True))


def _value_of(wrapper: Any) -> Any:
    return wrapper.value


_WELL_KNOWN: Final[dict[str, tuple[pa.DataType, Conversion]]] = {
    "google.protobuf.Timestamp": (pa.timestamp("us", "UTC"), _microseconds),
    "google.protobuf.Duration": (pa.duration("us"), _microseconds),
    **dict.fromkeys(
        ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"), (pa.string(), _json)
    ),
    **{
        f"google.protobuf.{name}Value": (kind, _value_of)
        for name, kind in (
            ("Double", pa.float64()),
            ("Float", pa.float32()),
            ("Int64", pa.int64()),
            ("UInt64", pa.uint64()),
            ("Int32", pa.int32()),
            ("UInt32", pa.uint32()),
            ("Bool", pa.bool_()),
            ("String", pa.string()),
            ("Bytes", pa.binary()),
        )
    },
}
"""Types of messages that Protobuf itself defines, with a meaning of their own."""
