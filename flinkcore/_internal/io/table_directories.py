"""Directories of lake tables, recognised by their logs and metadata: their files are not the rows of the table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from flinkcore._internal.io.locations import is_local

DELTA: Final = "Delta"
ICEBERG: Final = "Iceberg"
HUDI: Final = "Hudi"
"""Formats of tables, as messages call them."""

TABLE_FOLDERS: Final = {"_delta_log": DELTA, ".hoodie": HUDI}
"""Hidden directories of tables, and their formats."""
_METADATA: Final = "metadata"
_ICEBERG_FILE: Final = re.compile(r".*\.metadata\.json(\.gz)?|version-hint\.text")


@dataclass(frozen=True)
class TableDirectory:
    """A directory that is a table.

    Attributes
    ----------
    path : str
        Path within its file system, or URI.
    formats : tuple of str
        Formats whose log or metadata it holds: one, unless several describe the same files.
    """

    path: str
    formats: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Kind of the table, in words."""
        return f"{'an' if self.formats[0] == ICEBERG else 'a'} {' and '.join(self.formats)} table"


class TableSearch:
    """A search for the tables that paths of one file system lie in, which looks at each directory once."""

    def __init__(self) -> None:
        self._found: dict[str, TableDirectory | None] = {}
        self._real: dict[str, str] = {}

    def around(self, filesystem: Any, path: str, is_file: bool) -> TableDirectory | None:
        """Return the table that a path is or lies in, or that a symbolic link leads into, or None.

        Parameters
        ----------
        filesystem : pyarrow.fs.FileSystem
            File system of the path, which wraps no other one.
        path : str
        is_file : bool
            Whether it is a file, and no directory.
        """
        directory = path.rpartition("/")[0] if is_file else path.rstrip("/")
        found = self._upwards(filesystem, directory)
        if found is None and isinstance(filesystem, fs.LocalFileSystem):
            if directory not in self._real:
                self._real[directory] = os.path.realpath(directory)
            found = self._upwards(filesystem, self._real[directory])
            if found is None and is_file and os.path.islink(path):
                found = self._upwards(filesystem, os.path.dirname(os.path.realpath(path)))
        return found

    def _upwards(self, filesystem: Any, path: str) -> TableDirectory | None:
        passed = []
        while path and path not in self._found:
            formats = _formats(filesystem, path)
            self._found[path] = TableDirectory(path, formats) if formats else None
            if not formats:
                passed.append(path)
                path = path.rpartition("/")[0]
        found = self._found.get(path)
        self._found.update(dict.fromkeys(passed, found))
        return found


def _formats(filesystem: Any, directory: str) -> tuple[str, ...]:
    """Return the formats of the table that a directory is; none where it may not be looked into."""
    names = (*TABLE_FOLDERS, _METADATA)
    try:
        infos = filesystem.get_file_info([f"{directory}/{name}" for name in names])
        there = [name for name, info in zip(names, infos, strict=True) if info.type == fs.FileType.Directory]
        formats = [TABLE_FOLDERS[name] for name in there if name in TABLE_FOLDERS]
        if _METADATA in there:
            inside = filesystem.get_file_info(fs.FileSelector(f"{directory}/{_METADATA}"))
            if any(_ICEBERG_FILE.fullmatch(info.base_name) for info in inside):
                formats.append(ICEBERG)
    except (pa.ArrowException, OSError):
        return ()
    return tuple(formats)


def tables_among(paths: Iterable[str]) -> Iterator[TableDirectory]:
    """Yield the tables whose logs or metadata are among listed paths, each as often as it is there."""
    for path in paths:
        if "_delta_log" in path or ".hoodie" in path or _METADATA in path:
            names = path.split("/")
            for at, name in enumerate(names):
                if name in TABLE_FOLDERS:
                    yield TableDirectory("/".join(names[:at]), (TABLE_FOLDERS[name],))
            if len(names) > 1 and names[-2] == _METADATA and _ICEBERG_FILE.fullmatch(names[-1]):
                yield TableDirectory("/".join(names[:-2]), (ICEBERG,))


def refusal_of_files(table: TableDirectory, given: str, how: str, as_files: str) -> str:
    """Return the text of the refusal to read files of a table, with what to do.

    Parameters
    ----------
    table : TableDirectory
    given : str
        Location that leads to the files.
    how : str
        Verb between the location and the table, such as ``lies in``.
    as_files : str
        Sentence that says how to read the files as they are.
    """
    return (
        f"{given!r} {how} {table.kind}, {table.path!r}, whose files still hold rows that were removed. Read the table "
        f"with {how_to_read(table)}, and filter its rows. {as_files}"
    )


def how_to_read(table: TableDirectory) -> str:
    """Return the calls that read a table, and its name in commands."""
    from_iceberg = repr(table.path) if is_local(table.path) else "catalog.load_table(name)"
    ways = {
        DELTA: f"from_delta({table.path!r}) (delta:{table.path} in commands)",
        ICEBERG: f"from_iceberg({from_iceberg}) (iceberg:CATALOG.TABLE in commands)",
        HUDI: "Spark, and give from_event_log the DataFrame",
    }
    return ", or with ".join(ways[each] for each in table.formats)
