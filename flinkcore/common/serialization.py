"""Encoders and schemas: how elements are written to files."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

from flinkcore.common.missing_features import MISSING_COMMON_NAMES, refuse_name
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.errors import ConfigurationError


class SerializationSchema:
    """Turns elements into bytes.

    Notes
    -----
    Follows ``pyflink.common.serialization.SerializationSchema``.
    """


class DeserializationSchema:
    """Turns bytes into elements.

    Notes
    -----
    Follows ``pyflink.common.serialization.DeserializationSchema``.
    """


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Texts as their bytes.

    Parameters
    ----------
    charset : str

    Notes
    -----
    Follows ``pyflink.common.SimpleStringSchema``.
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _known_charset(charset)


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are.

    Notes
    -----
    Follows ``pyflink.common.ByteArraySchema``.
    """


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
        """Return an encoder that writes a line with each element's text, as ``print`` shows it.

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
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name, MISSING_COMMON_NAMES)
