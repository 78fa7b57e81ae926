"""Sources that read elements from files."""

from __future__ import annotations

import codecs
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from flinkcore._internal.io.local_tree import local_tree
from flinkcore._internal.io.locations import utf_8_paths
from flinkcore._internal.io.table_directories import TABLE_FOLDERS, TableSearch, how_to_read, tables_among
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.errors import (
    ArgumentTypeError,
    ConfigurationError,
    DataError,
    SourceError,
    UnsupportedOperationError,
)


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
            raise DataError(f"{name} is not encoded in {self._charset}: {failure}") from failure

    def produced_type(self) -> TypeInformation:
        return Types.STRING()


@dataclass(frozen=True)
class FilesSplit(SourceSplit):
    """Files that are read one after the other.

    Attributes
    ----------
    files : tuple of (FileSystem, str)
    format : StreamFormat
    """

    split_id: str
    files: tuple[tuple[Any, str], ...]
    format: StreamFormat

    def elements(self) -> Iterator[Any]:
        """Yield the elements of all files; raise SourceError if a file cannot be read."""
        for filesystem, path in self.files:
            try:
                with filesystem.open_input_stream(path, compression="detect") as file:
                    yield from self.format.read(file, path)
            except OSError as failure:
                raise SourceError(f"{path} cannot be read: {failure}") from failure


class FileSource(Source):
    """The elements of files, and of all files in directories whose names do not begin with a dot or an underscore.

    Made by :meth:`for_record_stream_format` or :meth:`for_bulk_file_format`. Files are distributed round-robin to the
    subtasks in the order of their names; a subtask reads its files one after the other.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.FileSource``.
    """

    def __init__(self, format: StreamFormat, paths: Sequence[str]) -> None:
        self._format = format
        self._paths = paths

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Return the builder of a source that reads files one element at a time.

        Parameters
        ----------
        stream_format : StreamFormat
        *paths : str
            Files and directories, at least one.

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
        """Return a split per subtask that has files; raise SourceError if a path does not exist."""
        files = [file for path in self._paths for file in files_of(path)]
        return [
            FilesSplit(str(index), tuple(files[index::parallelism]), self._format)
            for index in range(min(parallelism, len(files)))
        ]

    def produced_type(self) -> TypeInformation:
        return self._format.produced_type()

    def __str__(self) -> str:
        return f"of the files {', '.join(self._paths)}"


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
        self._paths = [path if "://" in path else os.path.abspath(path) for path in paths]

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


def files_of(path: str) -> list[tuple[Any, str]]:
    """Return the file of a path, or those of a directory in the order of their names, with their file system.

    Local links are followed as those of event logs: see `local_tree`.

    Raises
    ------
    SourceError
        If the path does not exist or is not UTF-8, a link leads to nothing, or the directory is a table, lies in one
        or holds one.
    """
    from pyarrow import fs

    try:
        with utf_8_paths():
            filesystem, local = (
                fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
            )
            found = filesystem.get_file_info(local)
            if found.type is fs.FileType.NotFound:
                raise SourceError(f"there is no file and no directory {path}")
            if found.type is fs.FileType.File:
                return [(filesystem, local)]
            if isinstance(filesystem, fs.LocalFileSystem):
                tree = local_tree(local, lambda name: _is_hidden(name) and name not in TABLE_FOLDERS)
                inside = filesystem.get_file_info([f"{local.rstrip('/')}/{entry.path}" for entry in tree])
            else:
                inside = filesystem.get_file_info(fs.FileSelector(local, recursive=True))
            around = TableSearch().around(filesystem, found.path, is_file=False)
            for table in (around, *tables_among(info.path for info in inside)):
                if table is not None:
                    raise SourceError(
                        f"{path} has files of {table.kind}, {table.path}, which still hold rows that were removed. "
                        f"Read the table with {how_to_read(table)}, or give the source the paths of files one by one"
                    )
            names = sorted(info.path for info in inside if info.type is fs.FileType.File)
    except SourceError:
        raise
    except (OSError, ValueError) as failure:
        raise SourceError(f"{path} cannot be read: {failure}") from failure
    return [(filesystem, name) for name in names if not _is_hidden(name[len(found.path) :])]


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/") if part)
