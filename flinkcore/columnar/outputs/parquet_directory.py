"""One directory of Parquet files that a replay writes: staged, published, taken back, cleaned up."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from flinkcore._internal.io.locations import utf_8_paths
from flinkcore._internal.io.stores import ENVIRONMENT, Place, Stores, folders_of
from flinkcore._internal.io.table_directories import TableSearch
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.show.times import format_timestamp
from flinkcore.columnar.outputs.hive_partitions import partition_fault, path_of_other_value, recorded_types
from flinkcore.columnar.outputs.parquet_parts import STAGING, PartFiles, published
from flinkcore.columnar.outputs.staging_owner import (
    SILENT_SECONDS,
    UNKNOWN_SECONDS,
    StagingOwner,
    has_ended,
    is_abandoned,
    owner_of,
)
from flinkcore.errors import ConfigurationError, SchemaError

# A file in the staging folder: the directory was made by the replay.
_NEW = "_new_directory"
# A folder in it, for what the results replace.
_REPLACED = "_replaced"
# A file in it: which parts are moved into the place of which files.
_MOVES = "_moves"


@dataclass(frozen=True)
class AppendedRun:
    """A run that appends its files.

    Attributes
    ----------
    name
        Part of the names of its files, which no other run has.
    is_repeated
        Whether the same run, should it run again, has the same name, and so replaces these files.
    """

    name: str
    is_repeated: bool

    @classmethod
    def of(cls, name: str | None) -> AppendedRun:
        """Return the run with a name, or one that is like no other."""
        return cls(uuid.uuid4().hex[:16], False) if name is None else cls(name, True)


@dataclass(frozen=True)
class ParquetOutput:
    """A directory of Parquet files, written by workers.

    Workers write into a staging folder inside; `publish` moves the files of the attempts that counted into place, so
    that a task tried twice never doubles rows and a failed replay leaves no part of a result. Files of an older result,
    if they are to be replaced, are kept in that folder from then on until all is in place.

    Parameters
    ----------
    place
        The directory.
    repeating
        Columns that have few values for their rows, such as keys.
    compression
        Parquet compression codec.
    replaces
        Whether Parquet files that are there already are replaced.
    run
        Run that appends its files to those that are there, or None if none does.
    partition_by
        Columns by whose values files are in directories ``name=value``.
    schema
        Columns of the rows, which those of older files are compared with, or None if they are not compared.
    """

    place: Place
    repeating: tuple[str, ...] = ()
    compression: str = "snappy"
    replaces: bool = False
    run: AppendedRun | None = None
    partition_by: tuple[str, ...] = ()
    schema: pa.Schema | None = None

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str],
        repeating: tuple[str, ...] = (),
        replaces: bool = False,
        stores: Stores = ENVIRONMENT,
        run: AppendedRun | None = None,
        partition_by: tuple[str, ...] = (),
        schema: pa.Schema | None = None,
    ) -> ParquetOutput:
        """Return the output at a path of this process; tasks take its file system and settings from here.

        Raises
        ------
        ConfigurationError
            If it is not a path.
        SourceError
            If no library reaches it.
        """
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ConfigurationError(
                f"results are written to a directory, given by its path, not to {path!r}"
            )
        return cls(
            stores.locate(path),
            repeating,
            replaces=replaces,
            run=run,
            partition_by=partition_by,
            schema=schema,
        )

    @property
    def path(self) -> str:
        """Directory in messages and in checkpoints: a local path or a URI."""
        return self.place.name

    def contains(self, other: ParquetOutput) -> bool:
        """Return whether the directory of the other is this one, or lies within it."""
        folders = folders_of(self.path)
        return folders_of(other.path)[: len(folders)] == folders

    def prepare(self, owner: StagingOwner) -> list[str]:
        """Create the directory, and return the names of the files in it that the results replace.

        Where files are replaced, what a killed run left is removed first, and what it had replaced is put back.

        Parameters
        ----------
        owner
            Owner of the staging folder.

        Raises
        ------
        ConfigurationError
            If the directory already has something in it that is not replaced, is a file, or belongs to a table.
        SourceError
            If it cannot be made.
        """
        with self.writing(), utf_8_paths():
            filesystem, directory = self.place.filesystem, self.place.path
            info = filesystem.get_file_info(directory)
            if info.type == fs.FileType.File:
                raise ConfigurationError(f"{self.path} is a file; give a directory for the Parquet files")
            table = TableSearch().around(filesystem, directory, is_file=False)
            if table is not None:
                where = "is" if table.path == directory else f"lies in {table.path}, which is"
                raise ConfigurationError(
                    f"{self.path} {where} {table.kind}, and Parquet files beside its own are not rows of it. Give "
                    "another directory, or write into the table with write_delta or write_iceberg (in commands: "
                    "--output delta:PATH or iceberg:CATALOG.NAMESPACE.TABLE)"
                )
            old: list[str] = []
            if info.type == fs.FileType.Directory:
                if (self.replaces or self.run is not None) and self._recover():
                    info = filesystem.get_file_info(directory)
                if info.type == fs.FileType.Directory:
                    found = filesystem.get_file_info(fs.FileSelector(directory, recursive=True))
                    old = self._replaceable({each.path[len(directory) + 1 :]: each for each in found})
            filesystem.create_dir(f"{directory}/{STAGING}", recursive=True)
            if not owner.claim(filesystem, f"{directory}/{STAGING}"):
                raise ConfigurationError(f"{self.path} has a folder {STAGING}: {self._doubt_of_staging()}")
            if info.type == fs.FileType.NotFound:
                try:
                    filesystem.open_output_stream(f"{directory}/{STAGING}/{_NEW}").close()
                except OSError:
                    filesystem.delete_dir(directory)
                    raise
            return old

    @property
    def staging(self) -> tuple[fs.FileSystem, str]:
        """File system and path of the staging folder."""
        filesystem, directory = self.place.filesystem, self.place.path
        return filesystem, f"{directory}/{STAGING}"

    def _recover(self) -> bool:
        """Remove what a run left that has ended without removing it; return whether there was any such thing."""
        filesystem, staging = self.staging
        if filesystem.get_file_info(staging).type == fs.FileType.NotFound:
            return False
        owner = owner_of(filesystem, staging)
        if not (
            is_abandoned(filesystem, staging) if owner is None else has_ended(owner, filesystem, staging)
        ):
            return False
        try:
            with filesystem.open_input_stream(f"{staging}/{_MOVES}") as file:
                moves = json.loads(file.read())
        except (OSError, ValueError):  # it was killed before it moved anything
            moves = {"names": [], "old": [], "is_kept": False}
        left = filesystem.get_file_info([f"{staging}/{name}" for name, _ in moves["names"]])
        is_whole = moves["names"] and all(info.type == fs.FileType.NotFound for info in left)
        if is_whole and moves["is_kept"]:
            self.finish(moves["old"])  # all parts are in their places, and a checkpoint may name them
        else:
            self._withdraw(dict(moves["names"]), moves["old"])
        return True

    def _replaceable(self, found: Mapping[str, fs.FileInfo]) -> list[str]:
        """The files in the directory that are replaced; a ConfigurationError, if something in it does not belong there.

        Parameters
        ----------
        found
            Content of the directory, by its path there.
        """
        if STAGING in found:
            raise ConfigurationError(f"{self.path} has a folder {STAGING}: {self._doubt_of_staging()}")
        if found and not self.replaces and self.run is None:
            raise ConfigurationError(
                f"{self.path} is not empty; remove it, give another directory, or mode='overwrite', which replaces its "
                "Parquet files"
            )
        files = [path for path, info in sorted(found.items()) if info.type == fs.FileType.File]
        for path, info in sorted(found.items()):
            name = path.rpartition("/")[2]
            is_mark = name.startswith(("_", "."))  # as Spark leaves them
            is_of_results = is_mark or name.endswith(".parquet")
            fault = partition_fault(path if info.type == fs.FileType.File else f"{path}/", self.partition_by)
            if fault is None and info.type == fs.FileType.File and not is_of_results:
                fault = path
            if fault is not None:
                raise ConfigurationError(self._refusal_of(fault))
        if self.run is None:
            return files
        results = [path for path in files if path.endswith(".parquet") and not _is_mark(path)]
        flat = [path for path in results if path.count("/") != len(self.partition_by)]
        if flat:
            raise ConfigurationError(self._refusal_of(flat[0]))
        own = [path for path in results if path.endswith(f"-{self.run.name}.parquet")]
        self._warn_of_replaced(own)
        self._require_columns({path: found[path] for path in results if path not in own})
        return own

    def _warn_of_replaced(self, files: Iterable[str]) -> None:
        filesystem, directory = self.place.filesystem, self.place.path
        rows = sum(pq.read_metadata(f"{directory}/{file}", filesystem=filesystem).num_rows for file in files)
        if rows:
            warn_user(
                f"mode='append' replaces the {rows:,} {'row' if rows == 1 else 'rows'} of this run in {self.path}: the "
                "same job over the same logs has added them, and had its checkpoint in the same directory. If they are "
                "of other data, stop, and give stop_with_checkpoint= another directory"
            )

    def _refusal_of(self, other: str) -> str:
        if self.run is None:
            return (
                f"mode='overwrite' replaces a directory of Parquet files, and {self.path} also has "
                f"{other.rpartition('/')[2]!r}: remove that, or give another directory"
            )
        by = ", ".join(self.partition_by)
        layout = f"directories of partitions by {by}" if by else "Parquet files that are not partitioned"
        return (
            f"mode='append' adds to {layout}, and {self.path} has {other!r}: give the partition_by that it was written "
            "with, or another directory"
        )

    def _require_columns(self, files: Mapping[str, fs.FileInfo]) -> None:
        """Compare the columns of the newest of other runs' files with those of the results, partitions among them."""
        if not files or self.schema is None:
            return
        filesystem, directory = self.place.filesystem, self.place.path
        newest = max(files, key=lambda path: (files[path].mtime_ns or 0, path))
        there = pq.read_schema(f"{directory}/{newest}", filesystem=filesystem)
        types = {field.name: str(field.type) for field in self.schema}
        before = {field.name: str(field.type) for field in there}
        of_partitions = recorded_types(there)
        if of_partitions is None:  # another program has written the file
            self._require_values(files)
            of_partitions = {name: types[name] for name in self.partition_by}
        before |= of_partitions
        for name in dict.fromkeys([*types, *before]):
            if types.get(name) != before.get(name):
                is_now, was = (found.get(name, "missing") for found in (types, before))
                raise SchemaError(
                    f"mode='append' adds rows of the same columns, and {name!r} is {is_now} in the results and {was} "
                    f"in {self.path}/{newest}: give another directory, or make the column what it was"
                )

    def _require_values(self, files: Iterable[str]) -> None:
        """Raise a SchemaError unless the names of directories hold values of the columns of partitions."""
        assert self.schema is not None
        for name in self.partition_by:
            kind = self.schema.field(name).type
            path = path_of_other_value(files, self.partition_by.index(name), kind)
            if path is not None:
                raise SchemaError(
                    f"mode='append' adds to partitions of the same types, and {name!r} is {kind} in the results, which "
                    f"{self.path}/{path} is not: give another directory, or make the column what it was"
                )

    def _doubt_of_staging(self) -> str:
        owner = owner_of(*self.staging)
        if owner is None:
            doubt = (
                "another program writes its results there, or was killed as it did, and does not say which. If none is "
                "running, remove that folder"
            )
            if not self.replaces and self.run is None:
                return doubt
            return f"{doubt}; it counts as ended {UNKNOWN_SECONDS // 60} minutes after the last change there"
        since = format_timestamp(owner.since_ms)
        writer = f"process {owner.process} of {owner.host} writes its results there, since {since}"
        if not self.replaces and self.run is None:
            return (
                f"{writer}, or was killed as it did. If it is no longer running, give the mode= that it had, 'append' "
                "or 'overwrite', which takes back what it left. If it had neither, empty the directory"
            )
        return (
            f"{writer}. Wait for its end, or write to another directory; on another machine, it counts as ended "
            f"{SILENT_SECONDS // 60} minutes after its last sign of life"
        )

    def writing(self) -> AbstractContextManager[None]:
        """Let an error of the block name the directory: see `writing_results`."""
        return self.parts.writing()

    @property
    def parts(self) -> PartFiles:
        """Return the files of tasks."""
        place = self.place
        return PartFiles(
            place.filesystem, place.path, self.path, self.repeating, self.compression, self.partition_by
        )

    def publish(self, names: Iterable[str], old: Sequence[str] = ()) -> None:
        """Move the named parts into the place of old files; the staging folder stays, as a sign that this is not all.

        Raises
        ------
        SourceError
            If one cannot be moved.
        """
        filesystem, directory = self.place.filesystem, self.place.path
        places = self._places(names)
        is_kept = self.run is None or self.run.is_repeated
        moves = {"names": list(places.items()), "old": list(old), "is_kept": is_kept}
        replaced = {name: f"{STAGING}/{_REPLACED}/{name}" for name in old}
        with self.writing():
            with filesystem.open_output_stream(f"{directory}/{STAGING}/{_MOVES}") as file:
                file.write(json.dumps(moves).encode())
            self._make_folders([*replaced.values(), *places.values()])
            self.place.move(replaced)
            self.place.move({f"{STAGING}/{name}": place for name, place in places.items()})

    def _places(self, names: Iterable[str]) -> dict[str, str]:
        """Return the places of staged files."""
        run = "" if self.run is None else self.run.name
        return {name: published(name, run) for name in sorted(names)}

    def _make_folders(self, paths: Iterable[str]) -> None:
        for folder in dict.fromkeys(path.rpartition("/")[0] for path in paths):
            if folder:
                self.place.filesystem.create_dir(f"{self.place.path}/{folder}", recursive=True)

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows of this write."""
        from pyarrow.dataset import dataset, partitioning  # slow to load

        filesystem, directory = self.place.filesystem, self.place.path
        found = filesystem.get_file_info(fs.FileSelector(directory, recursive=True))
        ending = ".parquet" if self.run is None else f"-{self.run.name}.parquet"
        files = [info.path for info in found if info.path.endswith(ending)]
        by, schema = None, None
        if self.schema is not None and self.partition_by:
            fields = pa.schema([self.schema.field(name) for name in self.partition_by])
            by, schema = partitioning(fields, flavor="hive"), self.schema
        rows = dataset(files, schema, format="parquet", filesystem=filesystem, partitioning=by)
        yield from rows.to_batches(columns=list(columns))

    def withdraw(self, names: Iterable[str], old: Sequence[str] = ()) -> None:
        """Remove everything that was staged, the named parts if they were published, and a directory that was made.

        Old files are put back.
        """
        self._withdraw(self._places(names), old)

    def _withdraw(self, places: Mapping[str, str], old: Sequence[str]) -> None:
        filesystem, directory = self.place.filesystem, self.place.path
        staging = f"{directory}/{STAGING}"

        def is_file(path: str) -> bool:
            return bool(filesystem.get_file_info(path).type == fs.FileType.File)

        replaced = [name for name in old if is_file(f"{staging}/{_REPLACED}/{name}")]
        for name in places.values():
            is_old = name in old and name not in replaced
            if not is_old and is_file(f"{directory}/{name}"):
                filesystem.delete_file(f"{directory}/{name}")
        self._make_folders(replaced)
        self.place.move({f"{STAGING}/{_REPLACED}/{name}": name for name in replaced})
        is_new = filesystem.get_file_info(f"{staging}/{_NEW}").type == fs.FileType.File
        filesystem.delete_dir(staging)
        self._remove_empty_folders(places.values())
        if is_new and not filesystem.get_file_info(fs.FileSelector(directory)):
            filesystem.delete_dir(directory)

    @property
    def remedy_of_parts(self) -> str:
        """Return what to do if parts of a failed replay stay, so that files of other runs do, too."""
        if self.run is None and not self.replaces:
            return "empty it"
        return "once they can be removed, the next write with the same mode= takes them back"

    def finish(self, old: Sequence[str] = ()) -> None:
        """Remove everything that is still staged, and what was replaced."""
        self._remove_empty_folders(old)
        self.place.filesystem.delete_dir(f"{self.place.path}/{STAGING}")

    def _remove_empty_folders(self, files: Iterable[str]) -> None:
        """Remove directories of partitions in which these files were the only ones."""
        filesystem, directory = self.place.filesystem, self.place.path
        folders = {path.rpartition("/")[0] for path in files}
        for folder in sorted(filter(None, folders), key=len, reverse=True):
            while folder:
                path = f"{directory}/{folder}"
                selector = fs.FileSelector(path, allow_not_found=True)
                if filesystem.get_file_info(selector):
                    break
                if filesystem.get_file_info(path).type == fs.FileType.Directory:
                    filesystem.delete_dir(path)
                folder = folder.rpartition("/")[0]


def _is_mark(path: str) -> bool:
    return path.rpartition("/")[2].startswith(("_", "."))
