"""How elements are read from files."""

from __future__ import annotations

import codecs
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO

from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.errors import ConfigurationError, DataError


class StreamFormat(ABC):
    """Reads the elements of a file one after the other.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.StreamFormat``.
    """

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Iterator[object]:
        """Yield the elements of a file.

        Parameters
        ----------
        file : file object
            Open for reading, uncompressed.
        name : str
            Of the file, for messages.
        """

    @abstractmethod
    def produced_type(self) -> TypeInformation:
        """Return the type of the elements."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Return the format of texts, one in a line.

        Raises
        ------
        ConfigurationError
            If there is no such charset.
        """
        return TextLineFormat(charset_name)


class BulkFormat(StreamFormat):
    """Reads the elements of a file in batches.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.BulkFormat``.
    """


class TextLineFormat(StreamFormat):
    """Texts, one in a line, which ends with a line feed, a carriage return or both.

    Parameters
    ----------
    charset_name : str

    Notes
    -----
    Flink's ``TextLineInputFormat``.
    """

    def __init__(self, charset_name: str = "UTF-8") -> None:
        try:
            self._charset = codecs.lookup(charset_name).name
        except LookupError:
            raise ConfigurationError(f"no charset is named {charset_name!r}") from None

    def read(self, file: BinaryIO, name: str) -> Iterator[str]:
        """Yield the lines, without their ends."""
        try:
            for line in io.TextIOWrapper(file, self._charset, newline=None):
                yield line[:-1] if line.endswith("\n") else line
        except UnicodeDecodeError as failure:
            raise DataError(f"{name} is not encoded in {self._charset}: {failure}") from failure

    def produced_type(self) -> TypeInformation:
        """Return STRING."""
        return Types.STRING()
