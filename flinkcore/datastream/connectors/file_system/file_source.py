"""Sources that read elements from files."""

from __future__ import annotations

import codecs
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final

from flinkcore._internal.io.listing import listed_files
from flinkcore._internal.io.locations import absolute_location, shown_location
from flinkcore._internal.io.store_errors import reason_of
from flinkcore._internal.io.stores import ENVIRONMENT, Place, Stores
from flinkcore._internal.io.table_directories import TableSearch, refusal_of_files
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.errors import (
    ArgumentTypeError,
    ConfigurationError,
    DataError,
    SourceError,
    UnsupportedOperationError,
)

_AS_FILES: Final = "To read files of it as they are, give the source their paths one by one"


class StreamFormat(ABC):
    """Reads the elements of a file one by one.

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
            Name of the file in messages.
        """

    @abstractmethod
    def produced_type(self) -> TypeInformation:
        """Return the type of the elements."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Return the format of texts, one per line; raise ConfigurationError if there is no such charset."""
        return TextLineFormat(charset_name)


class BulkFormat(StreamFormat):
    """Reads the elements of a file in batches.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.BulkFormat``.
    """


class TextLineFormat(StreamFormat):
    """Reads texts, one per line, which ends with a line feed, a carriage return or both.

    Parameters
    ----------
    charset_name : str

    Raises
    ------
    ConfigurationError
        If no charset has this name.

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
        try:
            for line in io.TextIOWrapper(file, self._charset, newline=None):
                yield line[:-1] if line.endswith("\n") else line
        except UnicodeDecodeError as failure:
            raise DataError(f"{name} is not encoded in {self._charset}: {failure}", file=name) from failure

    def produced_type(self) -> TypeInformation:
        return Types.STRING()


@dataclass(frozen=True)
class FilesSplit(SourceSplit):
    """Files that are read one after the other.

    Attributes
    ----------
    files : tuple of Place
    format : StreamFormat
    """

    split_id: str
    files: tuple[Place, ...]
    format: StreamFormat

    def elements(self) -> Iterator[Any]:
        """Yield the elements of all files; raise SourceError if a file cannot be read."""
        for place in self.files:
            try:
                with place.filesystem.open_input_stream(place.path, compression="detect") as file:
                    yield from self.format.read(file, place.name)
            except OSError as failure:
                raise SourceError(
                    f"{place.name} cannot be read: {reason_of(failure)}", file=place.name
                ) from failure


class FileSource(Source):
    """The elements of files, and of all files in directories whose names do not begin with a dot or an underscore.

    Made by :meth:`for_record_stream_format` or :meth:`for_bulk_file_format`. Files are distributed round-robin to the
    subtasks in the order of their paths, numbers in them by their value; a subtask reads its files one after the other.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.FileSource``.
    """

    def __init__(self, format: StreamFormat, paths: Sequence[str], stores: Stores = ENVIRONMENT) -> None:
        self._format = format
        self._paths = paths
        self._stores = stores

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Return the builder of a source that reads files one element at a time.

        Parameters
        ----------
        stream_format : StreamFormat
        *paths : str
            Files, directories, paths with wildcards, or URIs of these, at least one.

        Raises
        ------
        ConfigurationError
            If it is not a format, or there is no path.
        """
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Return the builder of a source that reads files in batches; see :meth:`for_record_stream_format`."""
        return FileSourceBuilder(bulk_format, paths)

    def create_splits(self, parallelism: int) -> Sequence[FilesSplit]:
        """Return a split per subtask that has files.

        Raises
        ------
        SourceError
            If a path does not exist or is not UTF-8, a link leads to nothing, a store cannot be reached, or a directory
            is a table, lies in one or holds one.
        """
        locate, search = self._stores.locating(), TableSearch()
        files: list[Place] = []
        for path in self._paths:
            place = locate(path)
            listed = listed_files(
                place, shown_location(path), search, as_files=_AS_FILES, takes_files_of_tables=True
            )
            for table in listed.tables:
                raise SourceError(
                    refusal_of_files(table, shown_location(path), "is", _AS_FILES), file=table.path
                )
            files += (replace(place, path=info.path) for info in listed.files.values())
        return [
            FilesSplit(str(index), tuple(files[index::parallelism]), self._format)
            for index in range(min(parallelism, len(files)))
        ]

    def produced_type(self) -> TypeInformation:
        return self._format.produced_type()

    def in_stores(self, stores: Stores) -> FileSource:
        return FileSource(self._format, self._paths, stores)

    def __str__(self) -> str:
        return f"of the files {', '.join(map(shown_location, self._paths))}"


class FileSourceBuilder:
    """Builds a :class:`FileSource`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.FileSourceBuilder``.
    """

    def __init__(self, format: StreamFormat, paths: Sequence[str]) -> None:
        if not isinstance(format, StreamFormat):
            raise ArgumentTypeError(
                f"files are read by a format such as StreamFormat.text_line_format(), not by {format!r}"
            )
        if not paths or not all(isinstance(path, str) and path for path in paths):
            raise ConfigurationError(f"a file source needs the paths of files or directories, not {paths!r}")
        self._format = format
        self._paths = [absolute_location(path) for path in paths]

    def process_static_file_set(self) -> FileSourceBuilder:
        """Do nothing: a job always reads the files that exist when it starts."""
        return self

    def monitor_continuously(self, discovery_interval: Any) -> FileSourceBuilder:
        """Raise an UnsupportedOperationError: sources of files are bounded."""
        raise UnsupportedOperationError(
            "monitor_continuously: a job here ends with its input; take the files that are there, "
            "process_static_file_set()"
        )

    def set_file_enumerator(self, file_enumerator: Any) -> FileSourceBuilder:
        """Accept an enumerator without an effect."""
        return self

    def set_split_assigner(self, split_assigner: Any) -> FileSourceBuilder:
        """Accept an assigner without an effect."""
        return self

    def build(self) -> FileSource:
        """Return the source."""
        return FileSource(self._format, self._paths)
