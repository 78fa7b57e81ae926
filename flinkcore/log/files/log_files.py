"""Files of an event log: paths, globs, directories, lists and URIs to an ordered list of files."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.io.local_tree import leads_back, local_tree, target_of
from flinkcore._internal.io.locations import utf_8_paths
from flinkcore._internal.io.table_directories import (
    TABLE_FOLDERS,
    TableDirectory,
    TableSearch,
    how_to_read,
    tables_among,
)
from flinkcore.errors import ConfigurationError, FlinkcoreError, SchemaError, SourceError

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_NUMBER = re.compile(r"([0-9]+)")
_WILDCARD = re.compile(r"[*?\[]")
_LOCAL = frozenset({"local", "file"})  # as pyarrow and fsspec call it
_S3A = re.compile(r"^s3[an]://")
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]+)://")


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
    """

    filesystem: Any
    path: str
    name: str
    size_bytes: int | None
    partition: tuple[tuple[str, Any], ...]
    modified_ns: int | None
    deleted: Int64s | None = field(default=None, compare=False, repr=False)
    split: int | str | None = None

    @property
    def location(self) -> str:
        """Its path, or a URI if it is not local, even if the user passed the filesystem or one that wraps another."""
        if "://" in self.name:
            return self.name
        _, scheme, path = _in_store(self.filesystem, self.path)
        return path if scheme in _LOCAL else f"{scheme}://{path}"

    def check_unchanged(self) -> None:
        """Assert that size and time of modification are still these.

        Raises
        ------
        SourceError
            If not; says whether the file has grown.
        """
        (now,) = files_now([self])
        if (now.size_bytes, now.modified_ns) == (self.size_bytes, self.modified_ns):
            return
        before, after = self.size_bytes, now.size_bytes
        if before is not None and after is not None and before < after:
            raise SourceError(
                f"{self.name} has grown from {before:,} to {after:,} bytes during the replay: something still writes "
                "to it. Replay files that are complete, or a copy of what there is of this one"
            )
        raise SourceError(
            f"{self.name} was overwritten during the replay ({_version(self)} before, {_version(now)} now). Run "
            "the replay again when nothing writes to the log"
        )


def _in_store(filesystem: Any, path: str) -> tuple[Any, str, str]:
    """Return the store that a path of a filesystem is in, its kind, and the path there: wrappers are taken off."""
    while True:
        if isinstance(filesystem, fs.SubTreeFileSystem):
            filesystem, path = filesystem.base_fs, f"{filesystem.base_path.rstrip('/')}/{path}"
            continue
        handler = filesystem.handler if isinstance(filesystem, fs.PyFileSystem) else None
        if not isinstance(handler, fs.FSSpecHandler):
            return filesystem, filesystem.type_name, path
        protocol = handler.fs.protocol
        kind = protocol if isinstance(protocol, str) else protocol[0]
        if kind != "dir":
            return fs.LocalFileSystem() if kind in _LOCAL else filesystem, kind, path
        filesystem, path = fs.PyFileSystem(fs.FSSpecHandler(handler.fs.fs)), f"{handler.fs.path}/{path}"


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
    try:
        infos = files[0].filesystem.get_file_info([file.path for file in files])
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{files[0].name} cannot be looked at: {error}") from error
    for file, info in zip(files, infos, strict=True):
        if info.type == fs.FileType.NotFound:
            raise SourceError(
                f"{file.name} is not there any more: it was a file of the log when that was defined"
            )
    return [
        replace(file, size_bytes=info.size, modified_ns=info.mtime_ns)
        for file, info in zip(files, infos, strict=True)
    ]


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
            f"{how_to_read(table)}"
        )
        refusal.table = table
        return refusal


def discover_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    filesystem: Any = None,
    of_tables: bool = False,
) -> tuple[LogFile, ...]:
    """Find the files of a log.

    A path may be a file, a directory (read recursively), a glob (``*`` and ``?`` within a name, ``**`` over
    directories, ``[...]``) or a URI that pyarrow knows (``file://``, ``s3://``, ``gs://``, ``hdfs://``), glob
    or not. In directories, and under wildcards, names that start with ``_`` or ``.`` are passed over, except
    a ``_name=value`` partition directory. Links of the local file system are followed, except to a directory that
    contains them, and a file to which several paths lead is read once: by the one without links, or else by the first.

    A directory ``name=value`` gives a column to the files in it if it lies below the given path, or from the first
    wildcard of a glob on: ``logs/date=*`` has a column ``date``, ``logs/date=2001-01-01`` has none, whatever the
    directories above are called. As in Spark, the column takes the place of one that the files have themselves.

    Parameters
    ----------
    paths : str, path or sequence of these
        What to read.
    filesystem : pyarrow.fs.FileSystem or fsspec filesystem, optional
        If given, the paths are paths within it and not URIs.
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
    given = None if filesystem is None else _as_arrow_filesystem(filesystem)
    found: dict[str, LogFile] = {}
    tables: dict[str, TableDirectory] = {}
    search = TableSearch()
    used: Any = None
    for item in items:
        if not isinstance(item, str | os.PathLike):
            raise ConfigurationError(
                f"a path of an event log is a str or os.PathLike, not {type(item).__name__}"
            )
        with utf_8_paths():
            where, path, prefix = _locate(os.fspath(item), given)
        if used is not None and not used.equals(where):
            raise ConfigurationError(
                f"{os.fspath(item)!r} is on another filesystem than {os.fspath(items[0])!r}: "
                "the files of one event log are on one filesystem"
            )
        used = where
        with utf_8_paths():
            base, infos, named = _expand(where, path, os.fspath(item), search, of_tables)
        for table in named:
            _, kind, inside = _in_store(where, path.rstrip("/"))
            location = table.path if kind in _LOCAL else f"{prefix or f'{kind}://'}{table.path}"
            is_given = bool(prefix) and table.path == inside
            tables[table.path] = replace(table, path=os.fspath(item) if is_given else location)
        for real, info in infos.items():
            name = prefix + info.path
            partition = _partition(_below_base(info.path, base))
            found.setdefault(real, LogFile(where, info.path, name, info.size, partition, info.mtime_ns))
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
            f"{how_to_read(table)}, the rest as another log, and unite both streams with union()"
        )
    return tuple(found.values())


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


def _as_arrow_filesystem(filesystem: Any) -> Any:
    if isinstance(filesystem, fs.FileSystem):
        return filesystem
    if hasattr(filesystem, "protocol") and hasattr(filesystem, "open"):
        return fs.PyFileSystem(fs.FSSpecHandler(filesystem))
    raise ConfigurationError(
        f"filesystem is a pyarrow.fs.FileSystem or an fsspec filesystem, not {type(filesystem).__name__}"
    )


def file_system_of(location: str, given: Any = None) -> tuple[Any, str]:
    """Return the file system of a path or URI, which may be given, and the path in it.

    Raises
    ------
    SourceError
        If pyarrow does not reach it.
    ConfigurationError
        If what is given is not a file system.
    """
    if given is None:
        where, inside, _ = _locate(_S3A.sub("s3://", location), None)
        return where, inside
    inside = location
    if _SCHEME.match(location):
        uri = urlsplit(location)
        inside = unquote(uri.path) if uri.scheme == "file" else location.partition("://")[2]
    return _as_arrow_filesystem(given), inside


def _locate(path: str, given: Any) -> tuple[Any, str, str]:
    """Return (filesystem, path in it, prefix that makes such a path a name)."""
    if isinstance(given, fs.LocalFileSystem):
        return given, os.path.abspath(path), ""
    if given is not None:
        return given, path, ""
    scheme = _SCHEME.match(path)
    if scheme is None:
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(path)), ""
    # A wildcard is not a part of a URI ("?" would start its query): resolve what is before it, put the rest
    # back.
    wildcard = re.search(r"[*\[]", path)
    head = path if wildcard is None else path[: path.rindex("/", 0, wildcard.start())]
    rest = "" if wildcard is None else path[len(head) :]
    try:
        where, inside = fs.FileSystem.from_uri(head)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"{path} cannot be reached: {str(error).splitlines()[0]}. "
            "Check the URI and the credentials, or give filesystem="
        ) from error
    local = scheme.group(1).lower() == "file"
    return where, inside + rest, "" if local else scheme.group(0)


def _expand(
    where: Any, path: str, given: str, search: TableSearch, of_tables: bool
) -> tuple[str, dict[str, Any], list[TableDirectory]]:
    """Return the directory below which directories are partitions, files by their paths without links, and tables."""
    try:
        info = where.get_file_info(path)
        base = path if info.type == fs.FileType.Directory else path.rpartition("/")[0]
        if info.type == fs.FileType.NotFound and _WILDCARD.search(path):
            names = path.split("/")
            fixed = next(i for i, name in enumerate(names) if _WILDCARD.search(name))
            base = "/".join(names[:fixed]) or path[: path.startswith("/")]
            matches = _glob(where, base, names[fixed:])
            if not matches:
                raise SourceError(f"no file matches {given!r}")
        elif info.type == fs.FileType.NotFound:
            raise SourceError(f"{given!r} does not exist")
        else:
            matches = [info]
        for match in matches:
            if match.type == fs.FileType.Unknown:
                raise SourceError(
                    f"{match.path!r} is neither a file nor a directory but a pipe, a socket or a device: write what it "
                    "gives to a file first"
                )
        is_allowed = of_tables and info.type == fs.FileType.File
        named = {} if is_allowed else _named_tables(where, matches, given, search)
        files = [
            file
            for match in matches
            if match.path not in named
            for file in (_below(where, match.path, given) if match.type == fs.FileType.Directory else [match])
        ]
        if not is_allowed:
            _refuse_links_into_tables(where, files, given, search)
        once = _once(where, base, sorted(files, key=lambda file: _natural(file.path)))
    except FlinkcoreError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{given!r} cannot be listed: {error}") from error
    if not once and not named:
        raise SourceError(
            f"{given!r} holds no file to read (names that start with '_' or '.' are passed over)"
        )
    return base, once, list(named.values())


def _natural(path: str) -> tuple[list[str | int], str]:
    """Return what paths are sorted by, so that numbers in them count by their value."""
    parts = _NUMBER.split(path)
    return [int(part) if at % 2 else part for at, part in enumerate(parts)], path


def _named_tables(
    where: Any, matches: Sequence[Any], given: str, search: TableSearch
) -> dict[str, TableDirectory]:
    """Return the tables that matches of a path are, by their paths; raise a SourceError if one only lies in a table."""
    named = {}
    for match in matches:
        store, _, inside = _in_store(where, match.path)
        table = search.around(store, inside, match.type == fs.FileType.File)
        if table is not None and table.path != inside.rstrip("/"):
            _refuse_files_of(table, given, "lies in")
        if table is not None:
            named[match.path] = table
    return named


def _refuse_links_into_tables(where: Any, files: Sequence[Any], given: str, search: TableSearch) -> None:
    """Raise a SourceError if links have led to files of a table; only local files are behind links."""
    for file in files:
        store, kind, inside = _in_store(where, file.path)
        table = search.around(store, inside, True) if kind in _LOCAL else None
        if table is not None:
            _refuse_files_of(table, given, "leads to")


def _refuse_files_of(table: TableDirectory, given: str, how: str) -> NoReturn:
    raise SourceError(
        f"{given!r} {how} {table.kind}, {table.path!r}, whose files still hold rows that were removed. Read the table "
        f"with {how_to_read(table)}, and filter its rows. To read files of it as they are, give "
        "from_event_log a list of them and their format="
    )


def _below(where: Any, directory: str, given: str) -> list[Any]:
    infos = _tree(where, directory)
    for table in tables_among(info.path for info in infos):
        if not any(map(_hidden, _below_base(table.path, directory))):
            _refuse_files_of(table, given, "holds")
    return [info for info in _shown(infos, directory) if info.type == fs.FileType.File]


def _tree(where: Any, directory: str) -> list[Any]:
    """Return all that lies below a directory, logs of tables included, each once; local links are followed."""
    _, store, path = _in_store(where, directory)
    if store not in _LOCAL:
        return list(where.get_file_info(fs.FileSelector(directory, recursive=True)))
    below = local_tree(path, lambda name: _hidden(name) and name not in TABLE_FOLDERS)
    return list(where.get_file_info([f"{directory.rstrip('/')}/{entry.path}" for entry in below]))


def _shown(infos: Iterable[Any], directory: str) -> list[Any]:
    """Return what lies below a directory, except for hidden names."""
    return [info for info in infos if not any(map(_hidden, _below_base(info.path, directory)))]


def _once(where: Any, base: str, files: Iterable[Any]) -> dict[str, Any]:
    """Files by their paths without links, each once: by its path without links below a directory, or the first."""
    _, store, directory = _in_store(where, base)
    if store not in _LOCAL:
        return {file.path: file for file in files}
    found: dict[str, Any] = {}
    folders: dict[str, str] = {}
    root = os.path.realpath(directory)
    for file in files:
        path = _in_store(where, file.path)[2]
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        real = target_of(path) if os.path.islink(path) else os.path.join(folders[folder], name)
        if real not in found or real == os.path.join(root, *_below_base(file.path, base)):
            found[real] = file
    return found


def _below_base(path: str, base: str) -> list[str]:
    """Return the names on the way from a directory to what is below it."""
    return path.strip("/")[len(base.strip("/")) :].strip("/").split("/")


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _glob(where: Any, base: str, names: Sequence[str]) -> list[Any]:
    """Match one directory level after the other, so that only directories on the way are listed."""
    level = [where.get_file_info(base)]
    for name in names:
        directories = [info for info in level if info.type == fs.FileType.Directory]
        level = []
        for directory in directories:
            if name == "**":
                level += [directory, *_shown(_tree(where, directory.path), directory.path)]
            elif _WILDCARD.search(name):
                expression = re.compile(_name_expression(name))
                for info in _within(where, directory.path):
                    last = info.path.rpartition("/")[
                        2
                    ]  # an error of base_name would not contain the whole path
                    is_match = expression.fullmatch(last) and (name[0] in "._" or not _hidden(last))
                    if is_match and not _leads_back(where, info.path):
                        level.append(info)
            else:
                info = where.get_file_info(f"{directory.path.rstrip('/')}/{name}")
                level.extend([] if info.type == fs.FileType.NotFound else [info])
    return level


def _within(where: Any, directory: str) -> list[Any]:
    """Return what is in a directory, local links that lead to nothing included."""
    _, store, path = _in_store(where, directory)
    if store in _LOCAL:
        return list(where.get_file_info([f"{directory.rstrip('/')}/{name}" for name in os.listdir(path)]))
    return list(where.get_file_info(fs.FileSelector(directory)))


def _leads_back(where: Any, path: str) -> bool:
    _, store, local = _in_store(where, path)
    return store in _LOCAL and leads_back(local)


def _name_expression(name: str) -> str:
    expression = ""
    i = 0
    while i < len(name):
        end = name.find("]", i + 2)
        if name[i] == "*":
            expression += ".*"
        elif name[i] == "?":
            expression += "."
        elif name[i] == "[" and end > 0:
            content = name[i + 1 : end].replace("\\", r"\\")
            expression += f"[^{content[1:]}]" if content[0] == "!" else f"[{content}]"
            i = end
        else:
            expression += re.escape(name[i])
        i += 1
    return expression


def _partition(names: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Return the partitions that the names of directories give; the last name is the file's."""
    pairs = [part.split("=", 1) for part in names[:-1] if "=" in part.strip("=")]
    return tuple(
        (unquote(name), None if value == NULL_PARTITION else unquote(value)) for name, value in pairs
    )
