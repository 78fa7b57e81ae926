"""The Parquet files of one task, which are in the staging folders of their directories until all tasks are done."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from flinkcore._internal.arrow.required_values import null_fault, refused_null_of
from flinkcore.columnar.outputs.hive_partitions import hive_folder, with_recorded_types
from flinkcore.columnar.outputs.result_files import close_all, writing_results
from flinkcore.columnar.outputs.table_files import PartitionField, partitioned
from flinkcore.errors import DataError, SourceError

STAGING: Final = "_temporary"
"""Folder in a directory of results for files that do not count yet."""

NOTHING_STAYS: Final = "Nothing of them stays"
"""Outcome of a failed write in messages, if its clean-up does not fail, too."""

_OPEN_FILES: Final = 100
"""A task closes the file that it opened first when it would have more."""


@dataclass(frozen=True)
class PartFiles:
    """Files that tasks write for a directory; picklable.

    Attributes
    ----------
    filesystem : pyarrow.fs.FileSystem
    directory : str
        Directory of the results, in the file system.
    name : str
        Directory in messages.
    repeating : tuple of str
        Columns that have few values for their rows, such as keys.
    compression : str
        Parquet compression codec.
    partition_by : tuple of str
        Columns by whose values files are in directories, and which files do not have.
    """

    filesystem: Any
    directory: str
    name: str
    repeating: tuple[str, ...] = ()
    compression: str = "snappy"
    partition_by: tuple[str, ...] = ()

    def writing(self) -> AbstractContextManager[None]:
        """Let an error of the block name the directory: see `writing_results`."""
        return writing_results(self.name, self.name, NOTHING_STAYS)


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
    """One worker's file in the staging folder; `name` is its path there.

    Parameters
    ----------
    files
        Files of the directory.
    schema
        Columns of all batches.
    name
        Path below the staging folder, without what makes it unlike that of another attempt.

    Raises
    ------
    SourceError
        If the file cannot be written, also by its methods.
    """

    def __init__(self, files: PartFiles, schema: pa.Schema, name: str) -> None:
        self.name = f"{name}-{uuid.uuid4().hex}.parquet"
        dictionaries, encodings = _encodings(schema, files.repeating)
        self._files = files
        path = f"{files.directory}/{STAGING}/{self.name}"
        with files.writing():
            if "/" in self.name:
                files.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            self._file = files.filesystem.open_output_stream(path)
            self._writer = pq.ParquetWriter(
                self._file,
                schema,
                compression=files.compression,
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
            raise DataError(null_fault(place, f"the results for {self._files.name}"), column=place)
        with self._files.writing():
            self._writer.write_batch(batch)

    def close(self) -> None:
        """Complete the file."""
        try:
            with self._files.writing():
                self._writer.close()
                self._file.close()
        except SourceError:
            self._writer.is_open = False  # it would try again when it is forgotten
            with suppress(OSError):
                self._file.close()
            raise


_Place: TypeAlias = tuple[str | None, tuple[str, ...]]
"""Id of a side output, or None, and the directories of a partition."""


def published(name: str, run: str = "") -> str:
    """Return the name of a staged file in its place, with that of a run that appends."""
    return f"{name.rsplit('-', 1)[0]}{run and f'-{run}'}.parquet"


class ParquetParts:
    """One task's files, each made when it has its first batch; what nobody wants is left out.

    Parameters
    ----------
    directories
        By name of the side output; that of the results under None.
    partition
        Number of the task.
    """

    def __init__(self, directories: Mapping[str | None, PartFiles], partition: int) -> None:
        self._directories = directories
        self._partition = partition
        self._open: dict[_Place, ParquetPart] = {}
        self._made: dict[_Place, int] = {}
        self._names: dict[str | None, list[str]] = {}

    @property
    def names(self) -> dict[str | None, list[str]]:
        """Names of the files made so far."""
        return self._names

    def open_all(self, schemas: Mapping[str | None, pa.Schema]) -> None:
        """Make all files: a directory without rows still has their columns, unless these are partitioned."""
        for tag_id, schema in schemas.items():
            files = self._directories.get(tag_id)
            if files is not None and not files.partition_by:
                self._part((tag_id, ()), schema)

    def write(self, tag_id: str | None, batches: Iterable[pa.RecordBatch]) -> None:
        """Append batches of an output.

        Raises
        ------
        DataError
            If a null is in a column, or in what it nests, whose type takes none; or a value has no directory.
        SourceError
            If a file cannot be written.
        """
        files = self._directories.get(tag_id)
        if files is None:
            return
        for batch in batches:
            if not files.partition_by:
                self._part((tag_id, ()), batch.schema).write(batch)
                continue
            fields = tuple(PartitionField(column, column) for column in files.partition_by)
            for values, rows in partitioned(batch, fields, files.name):
                folders = tuple(map(hive_folder, files.partition_by, values))
                left = rows.drop_columns(list(files.partition_by))
                schema = with_recorded_types(left.schema, rows.select(files.partition_by).schema)
                self._part((tag_id, folders), schema).write(left)

    def _part(self, place: _Place, schema: pa.Schema) -> ParquetPart:
        part = self._open.get(place)
        if part is None:
            if len(self._open) == _OPEN_FILES:
                self._close(next(iter(self._open)))
            tag_id, folders = place
            made = self._made[place] = self._made.get(place, -1) + 1
            number = f"part-{self._partition:05d}{f'-{made}' if made else ''}"
            part = self._open[place] = ParquetPart(
                self._directories[tag_id], schema, "/".join([*folders, number])
            )
            self._names.setdefault(tag_id, []).append(part.name)
        return part

    def _close(self, place: _Place) -> None:
        self._open.pop(place).close()

    def __enter__(self) -> ParquetParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close_all([partial(self._close, place) for place in self._open], error is not None)
