"""Encoders and schemas: how elements are written to files."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.errors import ConfigurationError, DataError


class SerializationSchema(ABC):
    """Turns elements into the bytes of messages.

    PyFlink's schemas are for its connectors alone; those here may be called: ``stream.map(schema.serialize)``.

    Notes
    -----
    Follows ``pyflink.common.serialization.SerializationSchema``, and ``serialize`` of Flink's.
    """

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """Return the message of an element; raise DataError if it is not of the schema's type."""


class DeserializationSchema(ABC):
    """Turns the bytes of messages into elements.

    PyFlink's schemas are for its connectors alone; those here may be called:
    ``stream.map(schema.deserialize, schema.get_produced_type())``.

    Notes
    -----
    Follows ``pyflink.common.serialization.DeserializationSchema``, and ``deserialize`` of Flink's.
    """

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the element of a message, or None if it is to be left out; raise DataError if it is damaged."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the elements."""


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Texts as their bytes.

    Parameters
    ----------
    charset : str
        Name of an encoding; an unknown one is a ConfigurationError.

    Notes
    -----
    Follows ``pyflink.common.SimpleStringSchema``; as in Java, what a charset does not have becomes "?", and bytes that
    are not in it become U+FFFD.
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _known_charset(charset)

    def serialize(self, element: str) -> bytes:
        return element.encode(self.charset, "replace")

    def deserialize(self, message: bytes) -> str:
        return message.decode(self.charset, "replace")

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are.

    Notes
    -----
    Follows ``pyflink.common.ByteArraySchema``.
    """

    def serialize(self, element: bytes) -> bytes:
        return element

    def deserialize(self, message: bytes) -> bytes:
        return message

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """The bytes in a field of a row, such as the key of a message.

    Parameters
    ----------
    field_index : int
        From 0; a ConfigurationError if it is negative.

    Notes
    -----
    Follows ``pyflink.common.serialization.RowFieldExtractorSchema``.
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ConfigurationError(f"Field index must be non-negative, got: {field_index}")
        self._field_index = field_index

    def serialize(self, element: Any) -> bytes:
        """Return the bytes of the field, none for None; raise DataError if there are no bytes."""
        try:
            field = element[self._field_index]
        except IndexError:
            raise DataError(f"{element!r:.200} has no field {self._field_index}") from None
        if field is None:
            return b""
        if not isinstance(field, bytes | bytearray):
            raise DataError(f"the field {self._field_index} has bytes, not {field!r:.80}")
        return bytes(field)


class Encoder:
    """Writes elements into the files of a sink, one by one; made by :meth:`simple_string_encoder`.

    Parameters
    ----------
    encode : callable
        From an element and its type to the bytes of its line.

    Notes
    -----
    Follows ``pyflink.common.serialization.Encoder``.
    """

    def __init__(self, encode: Callable[[Any, TypeInformation], bytes]) -> None:
        self.encode = encode

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Return an encoder that writes a line with each element's text, as Java's ``toString`` does.

        Raises
        ------
        ConfigurationError
            If there is no such charset.
        """
        charset = _known_charset(charset_name)
        return Encoder(lambda element, type_info: f"{type_info.text(element)}\n".encode(charset))


def _known_charset(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ConfigurationError(f"no charset is named {name!r}") from None


class BulkWriter(ABC):
    """Writes elements into one file.

    Notes
    -----
    Flink's ``BulkWriter``.
    """

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Write an element, now or later."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is buffered; the caller closes the file."""


class BulkWriterFactory(ABC):
    """Creates the writers of a sink's files.

    Notes
    -----
    Follows ``pyflink.common.serialization.BulkWriterFactory``.
    """

    @abstractmethod
    def create(self, file: BinaryIO) -> BulkWriter:
        """Return the writer of a file that is open for writing."""


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has or had here and flinkcore does not."""
    refuse_name(__name__, name)
