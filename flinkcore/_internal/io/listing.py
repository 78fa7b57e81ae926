"""Files that a location names: paths, globs, directories and URIs to a list of files, none of them a table's."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NoReturn

import pyarrow as pa
from pyarrow import fs

from flinkcore._internal.io.local_tree import leads_back, local_tree, target_of
from flinkcore._internal.io.locations import naming_file, utf_8_paths
from flinkcore._internal.io.store_errors import missing_bucket, reason_of
from flinkcore._internal.io.stores import Place, in_store, local_path, looked_at, uri_in
from flinkcore._internal.io.table_directories import (
    TABLE_FOLDERS,
    TableDirectory,
    TableSearch,
    refusal_of_files,
    tables_among,
)
from flinkcore.errors import FlinkcoreError, SourceError

_NUMBER: Final = re.compile(r"([0-9]+)")
_WILDCARD: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class ListedFiles:
    """The files that a location names.

    Attributes
    ----------
    base : str
        Directory below which directories are partitions, in the file system.
    files : dict of str to pyarrow.fs.FileInfo
        Files by their paths without links, in the order of their paths, numbers in them by their value.
    tables : tuple of TableDirectory
        Tables that the location names; their paths are those by which they are read.
    """

    base: str
    files: dict[str, Any]
    tables: tuple[TableDirectory, ...]


def listed_files(
    place: Place, given: str, search: TableSearch, *, as_files: str, takes_files_of_tables: bool = False
) -> ListedFiles:
    """Return the files that a location names.

    In directories, and under wildcards, names that start with ``_`` or ``.`` are passed over, except a ``_name=value``
    partition directory. Links of the local file system are followed, except to a directory that contains them.

    Parameters
    ----------
    place : Place
        A file, a directory, or a path with wildcards.
    given : str
        Name of the location in messages.
    search : TableSearch
        Tables that were found around earlier locations of the same file system.
    as_files : str
        Remedy for messages: a sentence that says how to read files of a table as they are.
    takes_files_of_tables : bool
        Whether the location may name one file of a table.

    Raises
    ------
    SourceError
        If nothing is there, it cannot be listed, a link leads to nothing, or files belong to a table.
    """
    with naming_file(given), utf_8_paths():
        return _Listing(place, given, search, as_files).listed(takes_files_of_tables)


@dataclass(frozen=True)
class _Listing:
    place: Place
    given: str
    search: TableSearch
    as_files: str

    def listed(self, takes_files_of_tables: bool) -> ListedFiles:
        where, path, given = self.place.filesystem, self.place.path, self.given
        try:
            info = where.get_file_info(path)
            base = path if info.type == fs.FileType.Directory else path.rpartition("/")[0]
            if info.type == fs.FileType.NotFound and _WILDCARD.search(path):
                names = path.split("/")
                fixed = next(i for i, name in enumerate(names) if _WILDCARD.search(name))
                base = "/".join(names[:fixed]) or path[: path.startswith("/")]
                matches = _glob(where, base, names[fixed:])
                if not matches:
                    raise SourceError(f"no file matches {given!r}{self._missing_bucket()}")
            elif info.type == fs.FileType.NotFound:
                raise SourceError(f"{given!r} does not exist{self._missing_bucket()}")
            else:
                matches = [info]
            for match in matches:
                if match.type == fs.FileType.Unknown:
                    raise SourceError(
                        f"{match.path!r} is neither a file nor a directory but a pipe, a socket or a device: write "
                        "what it gives to a file first",
                        file=match.path,
                    )
            is_allowed = takes_files_of_tables and info.type == fs.FileType.File
            named = {} if is_allowed else self._named_tables(matches)
            wanted = [match for match in matches if match.path not in named]
            folders = [match.path for match in wanted if match.type == fs.FileType.Directory]
            below = dict(zip(folders, looked_at(where, folders, self._below), strict=True))
            files = [file for match in wanted for file in below.get(match.path, [match])]
            if not is_allowed:
                self._refuse_links_into_tables(files)
            once = _once(where, base, sorted(files, key=lambda file: _natural(file.path)))
        except FlinkcoreError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{given!r} cannot be listed: {reason_of(error)}") from error
        if not once and not named:
            raise SourceError(
                f"{given!r} holds no file to read (names that start with '_' or '.' are passed over)"
            )
        return ListedFiles(base, once, tuple(map(self._by_name, named.values())))

    def _missing_bucket(self) -> str:
        """Return a sentence about the bucket of a location, after a full stop, if there is no such bucket."""
        bucket, _, below = self.place.path.partition("/")
        if not (bucket and below) or "://" not in self.given:
            return ""
        with suppress(OSError):  # whoever may read files need not be allowed to look at the bucket
            if self.place.filesystem.get_file_info(bucket).type == fs.FileType.NotFound:
                return f". {missing_bucket(bucket)}"
        return ""

    def _named_tables(self, matches: Sequence[Any]) -> dict[str, TableDirectory]:
        """Return the tables that matches of a path are, by their paths; raise a SourceError if one lies in a table."""
        named = {}
        for match in matches:
            store, _, inside = in_store(self.place.filesystem, match.path)
            table = self.search.around(store, inside, match.type == fs.FileType.File)
            if table is not None and table.path != inside.rstrip("/"):
                self._refuse_files_of(table, "lies in")
            if table is not None:
                named[match.path] = table
        return named

    def _refuse_links_into_tables(self, files: Sequence[Any]) -> None:
        """Raise a SourceError if links have led to files of a table; only local files are behind links."""
        for file in files:
            local = local_path(self.place.filesystem, file.path)
            table = None if local is None else self.search.around(fs.LocalFileSystem(), local, True)
            if table is not None:
                self._refuse_files_of(table, "leads to")

    def _refuse_files_of(self, table: TableDirectory, how: str) -> NoReturn:
        by_name = self._by_name(table)
        raise SourceError(refusal_of_files(by_name, self.given, how, self.as_files), file=by_name.path)

    def _by_name(self, table: TableDirectory) -> TableDirectory:
        """Return a table with the path or URI by which it is read."""
        place = self.place
        path = place.name_of(table.path) if place.prefix else uri_in(place.filesystem, table.path)
        return replace(table, path=path)

    def _below(self, directory: str) -> list[Any]:
        infos = _tree(self.place.filesystem, directory)
        for table in tables_among(info.path for info in infos):
            if not any(map(_hidden, below_base(table.path, directory))):
                self._refuse_files_of(table, "holds")
        return [info for info in _shown(infos, directory) if info.type == fs.FileType.File]


def _natural(path: str) -> tuple[list[str | int], str]:
    """Return the key by which paths are sorted, so that numbers in them count by their value."""
    parts = _NUMBER.split(path)
    return [int(part) if at % 2 else part for at, part in enumerate(parts)], path


def _tree(where: Any, directory: str) -> list[Any]:
    """Return all that lies below a directory, logs of tables included, each once; local links are followed."""
    local = local_path(where, directory)
    if local is None:
        return list(where.get_file_info(fs.FileSelector(directory, recursive=True)))
    below = local_tree(local, lambda name: _hidden(name) and name not in TABLE_FOLDERS)
    return list(where.get_file_info([f"{directory.rstrip('/')}/{entry.path}" for entry in below]))


def _shown(infos: Iterable[Any], directory: str) -> list[Any]:
    """Return what lies below a directory, except for hidden names."""
    return [info for info in infos if not any(map(_hidden, below_base(info.path, directory)))]


def _once(where: Any, base: str, files: Iterable[Any]) -> dict[str, Any]:
    """Return files by their paths without links, each once: by such a path below a directory, or the first."""
    directory = local_path(where, base)
    if directory is None:
        return {file.path: file for file in files}
    found: dict[str, Any] = {}
    folders: dict[str, str] = {}
    root = os.path.realpath(directory)
    for file in files:
        path = in_store(where, file.path)[2]
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        real = target_of(path) if os.path.islink(path) else os.path.join(folders[folder], name)
        if real not in found or real == os.path.join(root, *below_base(file.path, base)):
            found[real] = file
    return found


def below_base(path: str, base: str) -> list[str]:
    """Return the names on the way from a directory to what is below it."""
    return path.strip("/")[len(base.strip("/")) :].strip("/").split("/")


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _glob(where: Any, base: str, names: Sequence[str]) -> list[Any]:
    """Match one directory level after the other, so that only directories on the way are listed."""
    level = [where.get_file_info(base)]
    for name in names:
        directories = {info.path: info for info in level if info.type == fs.FileType.Directory}
        found = looked_at(where, list(directories), partial(_matches, where, name))
        of_each = zip(directories.values(), found, strict=True)
        level = [info for directory, below in of_each for info in ([directory] * (name == "**") + below)]
    return level


def _matches(where: Any, name: str, directory: str) -> list[Any]:
    """Return what is in a directory by a name, with wildcards or not, or at any depth below it by `**`."""
    if name == "**":
        return _shown(_tree(where, directory), directory)
    if not _WILDCARD.search(name):
        info = where.get_file_info(f"{directory.rstrip('/')}/{name}")
        return [] if info.type == fs.FileType.NotFound else [info]
    expression = re.compile(_name_expression(name))
    found = []
    for info in _within(where, directory):
        last = info.path.rpartition("/")[2]  # an error of base_name would not name the whole path
        is_match = expression.fullmatch(last) and (name[0] in "._" or not _hidden(last))
        if is_match and not _leads_back(where, info.path):
            found.append(info)
    return found


def _within(where: Any, directory: str) -> list[Any]:
    """Return what is in a directory, local links that lead to nothing included."""
    local = local_path(where, directory)
    if local is None:
        return list(where.get_file_info(fs.FileSelector(directory)))
    return list(where.get_file_info([f"{directory.rstrip('/')}/{name}" for name in os.listdir(local)]))


def _leads_back(where: Any, path: str) -> bool:
    local = local_path(where, path)
    return local is not None and leads_back(local)


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
