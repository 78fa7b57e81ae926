"""Sources of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.connectors.file_system.stream_format import BulkFormat, StreamFormat
from flinkcore.errors import ConfigurationError, SourceError, UnsupportedOperationError


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
        """Yield the elements of all files.

        Raises
        ------
        SourceError
            If a file cannot be read.
        """
        for filesystem, path in self.files:
            try:
                with filesystem.open_input_stream(path, compression="detect") as file:
                    yield from self.format.read(file, path)
            except OSError as failure:
                raise SourceError(f"{path} cannot be read: {failure}") from failure


class FileSource(Source):
    """The elements of files, and of all files in directories whose names do not begin with a dot or an underscore.

    Made by :meth:`for_record_stream_format` or :meth:`for_bulk_file_format`. Files are dealt out to the subtasks in the
    order of their names; a subtask reads its files one after the other.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.FileSource``.
    """

    def __init__(self, format: StreamFormat, paths: Sequence[str]) -> None:
        self._format = format
        self._paths = paths

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Return the builder of a source that reads files one element at a time."""
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Return the builder of a source that reads files in batches."""
        return FileSourceBuilder(bulk_format, paths)

    def create_splits(self, parallelism: int) -> Sequence[FilesSplit]:
        """Return a split of each subtask that has files.

        Raises
        ------
        SourceError
            If a path does not exist.
        """
        files = [file for path in self._paths for file in files_of(path)]
        return [
            FilesSplit(str(index), tuple(files[index::parallelism]), self._format)
            for index in range(min(parallelism, len(files)))
        ]

    def produced_type(self) -> TypeInformation:
        """Return the type of the format."""
        return self._format.produced_type()

    def __str__(self) -> str:
        return f"of the files {', '.join(self._paths)}"


class FileSourceBuilder:
    """Says how files are read.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.FileSourceBuilder``.
    """

    def __init__(self, format: StreamFormat, paths: Sequence[str]) -> None:
        if not isinstance(format, StreamFormat):
            raise ConfigurationError(
                f"files are read by a format such as StreamFormat.text_line_format(), not by {format!r}"
            )
        if not paths or not all(isinstance(path, str) and path for path in paths):
            raise ConfigurationError(f"a file source needs the paths of files or directories, not {paths!r}")
        self._format = format
        self._paths = paths

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that are there when the job starts, as is done anyway."""
        return self

    def monitor_continuously(self, discovery_interval: Any) -> FileSourceBuilder:
        """Raise an UnsupportedOperationError: a replay ends."""
        raise UnsupportedOperationError(
            "monitor_continuously: a job here ends with its input; take the files that are there, "
            "process_static_file_set()"
        )

    def set_file_enumerator(self, file_enumerator: Any) -> FileSourceBuilder:
        """Accept an enumerator, which has no meaning here."""
        return self

    def set_split_assigner(self, split_assigner: Any) -> FileSourceBuilder:
        """Accept an assigner, which has no meaning here."""
        return self

    def build(self) -> FileSource:
        """Return the source."""
        return FileSource(self._format, self._paths)


def files_of(path: str) -> list[tuple[Any, str]]:
    """Return the file of a path, or those of a directory in the order of their names, with their file system.

    Raises
    ------
    SourceError
        If there is nothing.
    """
    from pyarrow import fs

    try:
        filesystem, local = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
        found = filesystem.get_file_info(local)
        if found.type is fs.FileType.NotFound:
            raise SourceError(f"there is no file and no directory {path}")
        if found.type is fs.FileType.File:
            return [(filesystem, local)]
        inside = filesystem.get_file_info(fs.FileSelector(local, recursive=True))
    except (OSError, ValueError) as failure:
        if isinstance(failure, SourceError):
            raise
        raise SourceError(f"{path} cannot be read: {failure}") from failure
    names = sorted(info.path for info in inside if info.type is fs.FileType.File)
    return [(filesystem, name) for name in names if not _is_hidden(name[len(found.path) :])]


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/") if part)
