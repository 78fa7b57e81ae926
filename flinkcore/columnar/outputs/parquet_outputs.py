"""The Parquet directories of one replay: its files appear in all of them, or in none."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from types import TracebackType
from typing import Final

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from flinkcore._internal.arrow.required_values import null_fault, refused_null_of
from flinkcore._internal.io.locations import utf_8_paths
from flinkcore._internal.io.stores import ENVIRONMENT, Place, Stores, folders_of
from flinkcore._internal.io.table_directories import TableSearch
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.columnar.outputs.result_files import PartNames, require_mode, writing_results
from flinkcore.columnar.outputs.staging_owner import SILENT_SECONDS, StagingOwner, has_ended, owner_of
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.common import OutputTag
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError

_STAGING = "_temporary"
# A file in the staging folder: the directory was made by the replay.
_NEW = "_new_directory"
# A folder in it, for what the results replace.
_REPLACED = "_replaced"
# A file in it: which parts are moved into the place of which files.
_MOVES = "_moves"

MODES: Final = ("error", "overwrite")


def _encodings(schema: pa.Schema, repeating: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Columns with a dictionary, and the encodings of others.

    A dictionary pays where values repeat. Aggregates hardly do: integers are smaller and written in a third of the
    time as differences, and for floating point nothing is better than the plain values.
    """
    types = pa.types
    dictionaries, encodings = [], {}
    for field in schema:
        path, inner = field.name, field.type
        while types.is_list(inner) or types.is_large_list(inner):
            path, inner = f"{path}.list.element", inner.value_type
        if field.name in repeating or types.is_string(inner) or types.is_large_string(inner):
            dictionaries.append(path)
        elif types.is_integer(inner) or (types.is_temporal(inner) and not types.is_interval(inner)):
            encodings[path] = "DELTA_BINARY_PACKED"
    return dictionaries, encodings


class ParquetPart:
    """One worker's file in the staging folder; `name` identifies it to `ParquetOutput.publish`.

    Parameters
    ----------
    output
        The directory.
    schema
        Columns of all batches.
    partition
        Number of the partition, for the file's name.

    Raises
    ------
    SourceError
        If the file cannot be written, also by its methods.
    """

    def __init__(self, output: ParquetOutput, schema: pa.Schema, partition: int) -> None:
        self.name = f"part-{partition:05d}-{uuid.uuid4().hex}.parquet"
        filesystem, directory = output.place.filesystem, output.place.path
        dictionaries, encodings = _encodings(schema, output.repeating)
        self._output = output
        with output.writing():
            self._file = filesystem.open_output_stream(f"{directory}/{_STAGING}/{self.name}")
            self._writer = pq.ParquetWriter(
                self._file,
                schema,
                compression=output.compression,
                use_dictionary=dictionaries,
                column_encoding=encodings,
            )

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch.

        Raises
        ------
        DataError
            If a null is in a column, or in what it nests, whose type takes none.
        """
        place = refused_null_of(batch)
        if place is not None:
            raise DataError(null_fault(place, f"the results for {self._output.path}"), column=place)
        with self._output.writing():
            self._writer.write_batch(batch)

    def __enter__(self) -> ParquetPart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._output.writing():
                self._writer.close()
                self._file.close()
        except SourceError:
            self._writer.is_open = False  # it would try again when it is forgotten
            with suppress(OSError):
                self._file.close()
            if error is None:
                raise


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
    """

    place: Place
    repeating: tuple[str, ...] = ()
    compression: str = "snappy"
    replaces: bool = False

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str],
        repeating: tuple[str, ...] = (),
        replaces: bool = False,
        stores: Stores = ENVIRONMENT,
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
        return cls(stores.locate(path), repeating, replaces=replaces)

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
                    "another directory, or write into the table with write_delta or write_iceberg"
                )
            old: list[str] = []
            if info.type == fs.FileType.Directory:
                if self.replaces and self._recover():
                    info = filesystem.get_file_info(directory)
                if info.type == fs.FileType.Directory:
                    old = self._replaceable(filesystem.get_file_info(fs.FileSelector(directory)))
            filesystem.create_dir(f"{directory}/{_STAGING}", recursive=True)
            owner.write(filesystem, f"{directory}/{_STAGING}")
            if info.type == fs.FileType.NotFound:
                try:
                    filesystem.open_output_stream(f"{directory}/{_STAGING}/{_NEW}").close()
                except OSError:
                    filesystem.delete_dir(directory)
                    raise
            return old

    @property
    def staging(self) -> tuple[fs.FileSystem, str]:
        """File system and path of the staging folder."""
        filesystem, directory = self.place.filesystem, self.place.path
        return filesystem, f"{directory}/{_STAGING}"

    def _recover(self) -> bool:
        """Remove what a run left that has ended without removing it; return whether there was any such thing."""
        filesystem, staging = self.staging
        owner = owner_of(filesystem, staging)
        if owner is None or not has_ended(owner, filesystem, staging):
            return False
        try:
            with filesystem.open_input_stream(f"{staging}/{_MOVES}") as file:
                moves = json.loads(file.read())
        except (OSError, ValueError):  # it was killed before it moved anything
            moves = {"names": [], "old": []}
        left = filesystem.get_file_info([f"{staging}/{name}" for name in moves["names"]])
        if moves["names"] and all(info.type == fs.FileType.NotFound for info in left):
            self.finish()  # all parts are in their places, and a checkpoint may name them
        else:
            self.withdraw(moves["names"], moves["old"])
        return True

    def _replaceable(self, found: Sequence[fs.FileInfo]) -> list[str]:
        """The names of what is in the directory; a ConfigurationError, if that is not to be replaced."""
        if any(each.base_name == _STAGING for each in found):
            raise ConfigurationError(f"{self.path} has a folder {_STAGING}: {self._doubt_of_staging()}")
        if found and not self.replaces:
            raise ConfigurationError(
                f"{self.path} is not empty; remove it, give another directory, or mode='overwrite', which replaces its "
                "Parquet files"
            )
        for each in found:
            is_mark = each.base_name.startswith(("_", "."))  # as Spark leaves them
            if each.type != fs.FileType.File or not (is_mark or each.base_name.endswith(".parquet")):
                raise ConfigurationError(
                    f"mode='overwrite' replaces a directory of Parquet files, and {self.path} also has "
                    f"{each.base_name!r}: remove that, or give another directory"
                )
        return [each.base_name for each in found]

    def _doubt_of_staging(self) -> str:
        owner = owner_of(*self.staging)
        if owner is None:
            return (
                "another replay writes its results there, or one was killed as it did. If none is running, empty the "
                "directory"
            )
        writer = f"process {owner.process} of {owner.host} writes its results there"
        if not self.replaces:
            return (
                f"{writer}, or was killed as it did. If it is no longer running, empty the directory, or give "
                "mode='overwrite'"
            )
        return (
            f"{writer}. Wait for its end, or write to another directory; on another machine, it counts as ended "
            f"{SILENT_SECONDS // 60} minutes after its last sign of life"
        )

    def writing(self) -> AbstractContextManager[None]:
        """Let an error of the block name the directory: see `writing_results`."""
        return writing_results(self.path, self.path, "Nothing of them stays")

    def open_part(self, schema: pa.Schema, partition: int) -> ParquetPart:
        """Open a new file for one partition's results."""
        return ParquetPart(self, schema, partition)

    def publish(self, names: Iterable[str], old: Sequence[str] = ()) -> None:
        """Move the named parts into the place of old files; the staging folder stays, as a sign that this is not all.

        Raises
        ------
        SourceError
            If one cannot be moved.
        """
        filesystem, directory = self.place.filesystem, self.place.path
        names = sorted(names)
        with self.writing():
            with filesystem.open_output_stream(f"{directory}/{_STAGING}/{_MOVES}") as file:
                file.write(json.dumps({"names": names, "old": list(old)}).encode())
            if old:
                filesystem.create_dir(f"{directory}/{_STAGING}/{_REPLACED}")
            self.place.move({name: f"{_STAGING}/{_REPLACED}/{name}" for name in old})
            self.place.move({f"{_STAGING}/{name}": _published(name) for name in names})

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of all rows of the directory."""
        from pyarrow.dataset import dataset  # slow to load

        filesystem, directory = self.place.filesystem, self.place.path
        rows = dataset(directory, format="parquet", filesystem=filesystem)
        yield from rows.to_batches(columns=list(columns))

    def withdraw(self, names: Iterable[str], old: Sequence[str] = ()) -> None:
        """Remove everything that was staged, the named parts if they were published, and a directory that was made.

        Old files are put back.
        """
        filesystem, directory = self.place.filesystem, self.place.path
        staging = f"{directory}/{_STAGING}"

        def is_file(path: str) -> bool:
            return bool(filesystem.get_file_info(path).type == fs.FileType.File)

        replaced = [name for name in old if is_file(f"{staging}/{_REPLACED}/{name}")]
        for name in map(_published, names):
            is_old = name in old and name not in replaced
            if not is_old and is_file(f"{directory}/{name}"):
                filesystem.delete_file(f"{directory}/{name}")
        self.place.move({f"{_STAGING}/{_REPLACED}/{name}": name for name in replaced})
        is_new = filesystem.get_file_info(f"{staging}/{_NEW}").type == fs.FileType.File
        filesystem.delete_dir(staging)
        if is_new and not filesystem.get_file_info(fs.FileSelector(directory)):
            filesystem.delete_dir(directory)

    def finish(self) -> None:
        """Remove everything that is still staged, and what was replaced."""
        filesystem, directory = self.place.filesystem, self.place.path
        filesystem.delete_dir(f"{directory}/{_STAGING}")


def _published(name: str) -> str:
    return f"{name.rsplit('-', 1)[0]}.parquet"


@dataclass(frozen=True)
class ParquetOutputs:
    """A directory for the results, and one for each side output that is wanted.

    Parameters
    ----------
    directories
        By name of the side output; that of the results under None.

    Raises
    ------
    ConfigurationError
        If two are the same, or one lies within the other.
    """

    directories: Mapping[str | None, ParquetOutput]

    def __post_init__(self) -> None:
        for (outer_id, outer), (inner_id, inner) in permutations(self.directories.items(), 2):
            if outer.contains(inner):
                raise ConfigurationError(
                    f"{_output_name(inner_id)} would go to {inner.path}, which lies in the directory of "
                    f"{_output_name(outer_id)}, {outer.path}: whoever reads that would read both; give each output a "
                    "directory apart from the others"
                )

    @classmethod
    def of(
        cls,
        plan: JobPlan,
        path: str | os.PathLike[str],
        side_outputs: Mapping[OutputTag, str | os.PathLike[str]] | None,
        mode: str,
        stores: Stores = ENVIRONMENT,
    ) -> ParquetOutputs:
        """The directories that the user names for a plan's outputs.

        Raises
        ------
        ConfigurationError
            If the plan has no such side output, a directory is that of another output or lies within it, or there is no
            such mode.
        SchemaError
            If Parquet has no type for a column.
        """
        require_mode(mode, MODES)
        _require_types(plan.result_schema())
        replaces = mode == "overwrite"
        directories: dict[str | None, ParquetOutput] = {
            None: ParquetOutput.at(path, plan.stages[-1].repeating_columns, replaces, stores)
        }
        for tag, directory in (side_outputs or {}).items():
            _require_types(plan.side_output_schema(tag))
            directories[tag.tag_id] = ParquetOutput.at(directory, plan.keys, replaces, stores)
        return cls(directories)

    @property
    def for_tasks(self) -> ParquetOutputs:
        """Return what tasks need: all of it."""
        return self

    @property
    def paths(self) -> list[str]:
        """All directories."""
        return [output.path for output in self.directories.values()]

    def require_apart_from(self, files: Iterable[str]) -> None:
        """Check that no file of the job's logs would be replaced.

        Parameters
        ----------
        files
            Paths or URIs.

        Raises
        ------
        ConfigurationError
            If one lies in a directory whose files are replaced, by itself or as what a link leads to.
        """
        replaced = {
            folders_of(output.path): output for output in self.directories.values() if output.replaces
        }
        folders = cache(folders_of)
        for file in files if replaced else ():
            folder, _, name = file.rpartition("/")
            for place in ((*folders(folder), name), folders_of(file)):
                output = next(
                    (replaced[place[:at]] for at in range(len(place)) if place[:at] in replaced), None
                )
                if output is not None:
                    raise ConfigurationError(
                        f"mode='overwrite' would delete a log that the job reads: {file} lies in {output.path}. Write "
                        "to another directory"
                    )

    def write(self, run: Callable[[], PartNames], commit: Callable[[], None] = lambda: None) -> None:
        """Run what writes parts, then publish them all; whatever fails, each directory is as it was.

        A process that is killed while it publishes leaves what it has moved so far. The folder `_temporary` then is
        still there: a directory with one is not a result. The next write that replaces files removes it first.

        Parameters
        ----------
        run
            Writes parts and gives the names of those that count.
        commit
            Completes what else the run leaves, once all files are there and before `_temporary` goes.

        Raises
        ------
        ConfigurationError
            If a directory has what is not to be replaced.
        """
        owner = StagingOwner.of_this_process()
        with owner.live():
            self._write(owner, run, commit)

    def _write(self, owner: StagingOwner, run: Callable[[], PartNames], commit: Callable[[], None]) -> None:
        prepared: dict[str | None, ParquetOutput] = {}
        old: dict[str | None, list[str]] = {}
        names: PartNames = {}
        try:
            for tag_id, output in self.directories.items():
                old[tag_id] = output.prepare(owner)
                prepared[tag_id] = output
            with owner.beating([output.staging for output in prepared.values()]):
                names = run()
            for tag_id, output in self.directories.items():
                output.publish(names[tag_id], old[tag_id])
            commit()
        except BaseException:
            for tag_id, output in prepared.items():
                with _warning(f"{output.path} has parts of a failed replay: empty it"):
                    output.withdraw(names.get(tag_id, ()), old[tag_id])
            raise
        for output in prepared.values():
            with _warning(f"{output.path} is complete; its folder _temporary can be removed"):
                output.finish()

    def open_parts(self, partition: int) -> ParquetParts:
        """Files for one partition's outputs."""
        return ParquetParts(self.directories, partition)


def _require_types(schema: pa.Schema) -> None:
    for field in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except (pa.ArrowException, OSError) as failure:
            raise SchemaError(
                f"column {field.name!r} of the results is {field.type}, for which Parquet has no type ({failure}): "
                "convert it, or take to_arrow()"
            ) from failure


def _output_name(tag_id: str | None) -> str:
    return "the results" if tag_id is None else f"the side output {tag_id!r}"


@contextmanager
def _warning(advice: str) -> Iterator[None]:
    # An error of the clean-up would hide the one that led to it, or deny a result that is there.
    try:
        yield
    except OSError as error:
        warn_user(f"{advice} ({error})", RuntimeWarning)


class ParquetParts:
    """One partition's files, each made when it has its first batch; what nobody wants is left out.

    Parameters
    ----------
    directories
        By name of the side output; that of the results under None.
    partition
        Number of the partition.
    """

    def __init__(self, directories: Mapping[str | None, ParquetOutput], partition: int) -> None:
        self._directories = directories
        self._partition = partition
        self._parts: dict[str | None, ParquetPart] = {}
        self._open = ExitStack()

    @property
    def names(self) -> dict[str | None, list[str]]:
        """Names of the files made so far."""
        return {tag_id: [part.name] for tag_id, part in self._parts.items()}

    def open_all(self, schemas: Mapping[str | None, pa.Schema]) -> None:
        """Make all files: a directory without rows still has their columns."""
        for tag_id, schema in schemas.items():
            self._part(tag_id, schema)

    def write(self, tag_id: str | None, batches: Iterable[pa.RecordBatch]) -> None:
        """Append batches of an output."""
        for batch in batches:
            part = self._part(tag_id, batch.schema)
            if part is not None:
                part.write(batch)

    def _part(self, tag_id: str | None, schema: pa.Schema) -> ParquetPart | None:
        if tag_id not in self._parts:
            if tag_id not in self._directories:
                return None
            part = self._directories[tag_id].open_part(schema, self._partition)
            self._parts[tag_id] = self._open.enter_context(part)
        return self._parts[tag_id]

    def __enter__(self) -> ParquetParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)
