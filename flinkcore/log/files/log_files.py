"""Files of an event log: paths, globs, directories, lists and URIs to an ordered list of files."""

import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import takewhile
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.io.listing import below_base, listed_files
from flinkcore._internal.io.locations import shown_location
from flinkcore._internal.io.store_errors import reason_of
from flinkcore._internal.io.stores import ENVIRONMENT, Stores, local_path, looked_at, uri_in
from flinkcore._internal.io.table_directories import TableDirectory, TableSearch, how_to_read
from flinkcore.errors import ConfigurationError, SchemaError, SourceError
from flinkcore.log.files.connect_offsets import FileOffsets

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_AS_FILES = "To read files of it as they are, give from_event_log a list of them and their format="


@dataclass(frozen=True)
class LogFile:
    """One file of an event log.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem
        Where the file is.
    path : str
        Path within the filesystem.
    name : str
        Name in messages and in the split ``FILE``: an absolute local path, a whole URI, or, if the user
        gave the filesystem, the path within it.
    size_bytes : int or None
        None if the filesystem does not say.
    partition : tuple of (str, value or None)
        Columns that have one value in the whole file. Of hive-style ``name=value`` directories between the given path
        and the file, outermost first, as text, None for hive's null; of a table's file as its column has it.
    modified_ns : int or None
        When it was last modified, in ns since the epoch; None if the filesystem does not say.
    deleted : ndarray of int64, shape (n_deleted,), or None
        Rows of the file that were removed from its table, counted from 0 and ascending, or None.
    split : int, str or None
        Partition that its path names, as the split ``PARTITION`` has it; None if the log is not split so.
    offsets : FileOffsets or None
        Offsets of its rows in its split, as in its name, or None.
    """

    filesystem: Any
    path: str
    name: str
    size_bytes: int | None
    partition: tuple[tuple[str, Any], ...]
    modified_ns: int | None
    deleted: Int64s | None = field(default=None, compare=False, repr=False)
    split: int | str | None = None
    offsets: FileOffsets | None = None

    @property
    def location(self) -> str:
        """Return its path, or its URI if it is not local, whichever file system, wrapped or not, the user gave."""
        return self.name if "://" in self.name else uri_in(self.filesystem, self.path)


def check_unchanged(files: Sequence[LogFile]) -> None:
    """Assert that sizes and times of modification of files of one filesystem are still these.

    Raises
    ------
    SourceError
        If not; says whether the file has grown.
    """
    for file, info in zip(files, _infos_now(files), strict=True):
        before, after = file.size_bytes, info.size
        if (before, file.modified_ns) == (after, info.mtime_ns):
            continue
        if before is not None and after is not None and before < after:
            raise SourceError(
                f"{file.name} has grown from {before:,} to {after:,} bytes during the replay: something still writes "
                "to it. Replay files that are complete, or a copy of what there is of this one",
                file=file.name,
            )
        now = replace(file, size_bytes=after, modified_ns=info.mtime_ns)
        raise SourceError(
            f"{file.name} was overwritten during the replay ({_version(file)} before, {_version(now)} now). Run "
            "the replay again when nothing writes to the log",
            file=file.name,
        )


def _version(file: LogFile) -> str:
    size = "size unknown" if file.size_bytes is None else f"{file.size_bytes:,} bytes"
    if file.modified_ns is None:
        return size
    modified = datetime.fromtimestamp(file.modified_ns / 1e9, timezone.utc)
    return f"{size} of {modified:%Y-%m-%d %H:%M:%S.%f} UTC"


def files_now(files: Sequence[LogFile]) -> list[LogFile]:
    """These files of one filesystem with their sizes and times of modification as they are now.

    Raises
    ------
    SourceError
        If one is no longer there, or the filesystem cannot be reached.
    """
    return [
        file
        if (info.size, info.mtime_ns) == (file.size_bytes, file.modified_ns)
        else replace(file, size_bytes=info.size, modified_ns=info.mtime_ns)
        for file, info in zip(files, _infos_now(files), strict=True)
    ]


def _infos_now(files: Sequence[LogFile]) -> list[Any]:
    try:
        infos = _infos(files[0].filesystem, [file.path for file in files])
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"{files[0].name} cannot be looked at: {reason_of(error)}", file=files[0].name
        ) from error
    for file, info in zip(files, infos, strict=True):
        if info.type == fs.FileType.NotFound:
            raise SourceError(
                f"{file.name} is not there any more: it was a file of the log when that was defined",
                file=file.name,
            )
    return infos


def _infos(filesystem: Any, paths: list[str]) -> list[Any]:
    if local_path(filesystem, paths[0]) is not None:
        return list(filesystem.get_file_info(paths))
    # Arrow asks an object store for one file after the other.
    return looked_at(filesystem, paths, filesystem.get_file_info)


class PathOfTable(SourceError):
    """The refusal to read the files of a table that the paths of a log name, and nothing besides.

    Attributes
    ----------
    table : TableDirectory
        The table; its path is a URI where it is not local.
    """

    table: TableDirectory

    @classmethod
    def of(cls, table: TableDirectory) -> "PathOfTable":
        """Return the refusal of a table."""
        refusal = cls(
            f"{table.path!r} is {table.kind}, whose files still hold rows that were removed. Read it with "
            f"{how_to_read(table)}",
            file=table.path,
        )
        refusal.table = table
        return refusal


def discover_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    stores: Stores = ENVIRONMENT,
    of_tables: bool = False,
) -> tuple[LogFile, ...]:
    """Find the files of a log.

    A path may be a file, a directory (read recursively), a glob (``*`` and ``?`` within a name, ``**`` over
    directories, ``[...]``) or a URI of a store (``s3://``, ``gs://``, ``abfss://``, ``hdfs://``, ...), glob
    or not. In directories, and under wildcards, names that start with ``_`` or ``.`` are passed over, except
    a ``_name=value`` partition directory. Links of the local file system are followed, except to a directory that
    contains them, and a file to which several paths lead is read once: by the one without links, or else by the first.

    A directory ``name=value`` gives a column to the files in it if it lies below the given path, or from the first
    wildcard of a glob on: ``logs/date=*`` has a column ``date``, ``logs/date=2001-01-01`` has none, whatever the
    directories above are called. Several paths give the columns that their common parent gives, if all files have the
    same: ``logs/date=2001-01-01`` and ``logs/date=2001-01-02`` have a column ``date``. As in Spark, the column takes
    the place of one that the files have themselves.

    Parameters
    ----------
    paths : str, path or sequence of these
        What to read.
    stores : Stores
        File systems of the paths, with their settings.
    of_tables : bool
        Whether paths may name files of a table, one by one.

    Returns
    -------
    tuple of LogFile
        In the order of the given sequence, and within each of its items by path, numbers in it by their value:
        ``2.json`` comes before ``10.json``. A file that several items name counts once, where it comes first.

    Raises
    ------
    SourceError
        If a path does not exist or is not UTF-8, a glob matches nothing, a directory holds no file, a link leads to
        nothing, the filesystem cannot be reached, or files belong to a table; `PathOfTable` if the paths name just
        that table.
    ConfigurationError
        If the sequence is empty, an item is not a path, or the items are on different filesystems.
    """
    items = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not items:
        raise ConfigurationError("an event log needs at least one path, got an empty sequence")
    locate = stores.locating()
    found: dict[str, LogFile] = {}
    bases: set[str] = set()
    tables: dict[str, TableDirectory] = {}
    search = TableSearch()
    used: Any = None
    for item in items:
        if not isinstance(item, str | os.PathLike):
            raise ConfigurationError(
                f"a path of an event log is a str or os.PathLike, not {type(item).__name__}"
            )
        name = os.fspath(item)
        place = locate(name)
        if used is not None and not used.equals(place.filesystem):
            raise ConfigurationError(
                f"{shown_location(name)!r} is on another filesystem than {shown_location(os.fspath(items[0]))!r}: "
                "the files of one event log are on one filesystem"
            )
        used = place.filesystem
        listed = listed_files(
            place, shown_location(name), search, as_files=_AS_FILES, takes_files_of_tables=of_tables
        )
        for table in listed.tables:
            tables[table.path] = table
        bases.add(listed.base.rstrip("/"))
        for real, info in listed.files.items():
            partition = _partition(below_base(info.path, listed.base))
            file = LogFile(
                place.filesystem, info.path, place.name_of(info.path), info.size, partition, info.mtime_ns
            )
            found.setdefault(real, file)
    if len(tables) == 1 and not found:
        raise PathOfTable.of(next(iter(tables.values())))
    if tables:
        *_, table = tables.values()
        others = [other for other in tables.values() if other is not table]
        besides = (
            f"of {others[0].kind} {others[0].path!r}"
            if others
            else f"such as {next(iter(found.values())).name!r}"
        )
        raise SourceError(
            f"the paths of a log name {table.kind}, {table.path!r}, and files besides, {besides}. Read the table with "
            f"{how_to_read(table)}, the rest as another log, and unite both streams with union()",
            file=table.path,
        )
    return _partitioned_alike(tuple(found.values()), bases)


def _partitioned_alike(files: tuple[LogFile, ...], bases: Collection[str]) -> tuple[LogFile, ...]:
    """Return files of several directories with the columns that their common parent gives, if they are the same."""
    if len(bases) < 2:
        return files
    common = "/".join(_common_beginning([base.split("/") for base in bases]))
    partitions = [_partition(below_base(file.path, common)) for file in files]
    names = {tuple(name for name, _ in partition) for partition in partitions}
    if len(names) != 1 or any(len(set(each)) < len(each) for each in names):
        return files
    return tuple(
        replace(file, partition=partition) for file, partition in zip(files, partitions, strict=True)
    )


def _common_beginning(names: Sequence[Sequence[str]]) -> list[str]:
    together = zip(*names, strict=False)
    return [first for first, *_ in takewhile(lambda each: len(set(each)) == 1, together)]


def partition_fields(files: Sequence[LogFile]) -> list[pa.Field]:
    """Return the columns that hive-style directories add to a log.

    Returns
    -------
    list of pyarrow.Field
        int64 if every value in every file is a whole number of that range, else string.

    Raises
    ------
    SchemaError
        If two files have different partition columns, or two directories of a file give one.
    """
    first = files[0]
    names = [name for name, _ in first.partition]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(
                f"two directories of {first.name} give the column {name!r}: give paths below the first of them, or "
                "name one otherwise"
            )
    for file in files:
        if [name for name, _ in file.partition] != names:
            raise SchemaError(
                f"partition directories differ: {first.name} has {names or 'none'}, "
                f"{file.name} has {[name for name, _ in file.partition] or 'none'}"
            )
    return [
        pa.field(name, pa.int64() if all(_is_int64(f.partition[i][1]) for f in files) else pa.string())
        for i, name in enumerate(names)
    ]


def _is_int64(text: str | None) -> bool:
    if text is None:
        return True
    return re.fullmatch(r"-?[0-9]{1,19}", text) is not None and -(2**63) <= int(text) < 2**63


def _partition(names: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Return the partitions that the names of directories give; the last name is the file's."""
    pairs = [part.split("=", 1) for part in names[:-1] if "=" in part.strip("=")]
    return tuple(
        (unquote(name), None if value == NULL_PARTITION else unquote(value)) for name, value in pairs
    )
