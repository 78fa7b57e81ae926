"""Data files of a table of a lake as tasks write them: in a folder of the write, apart by the values of partitions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from flinkcore.common.free_room import directory_remedy
from flinkcore.errors import DataError, FlinkcoreError, SourceError
from flinkcore.replay.log.files import NULL_PARTITION

_OPEN_FILES: Final = 100
"""A task closes the file that it opened first when it would have more."""

_MICROSECONDS: Final = {"day": 86_400_000_000, "hour": 3_600_000_000}


@dataclass(frozen=True)
class PartitionField:
    """What a table is partitioned by.

    Attributes
    ----------
    name : str
        Of the field, as directories have it.
    column : str
        Whose values give it.
    transform : str
        "identity"; or "year", "month", "day" or "hour": how many have begun since 1970.
    """

    name: str
    column: str
    transform: str = "identity"

    def values(self, column: pa.Array) -> pa.Array:
        """The field's values for those of the column."""
        if self.transform == "identity":
            return column
        zone = column.type.tz if pa.types.is_timestamp(column.type) else None
        micros = column.cast(pa.timestamp("us", zone)).cast(pa.int64())
        times = micros.cast(pa.timestamp("us"))
        if self.transform == "year":
            return pc.subtract(pc.year(times), 1970)
        if self.transform == "month":
            months = pc.multiply(pc.subtract(pc.year(times), 1970), 12)
            return pc.add(months, pc.subtract(pc.month(times), 1))
        begun = micros.fill_null(0).to_numpy() // _MICROSECONDS[self.transform]
        return pa.array(begun, mask=micros.is_null().to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class WrittenFile:
    """A data file that a task has completed.

    Attributes
    ----------
    path : str
        Within the table's directory.
    partition : tuple of str or None
        The values of its partition as text.
    """

    path: str
    partition: tuple[str | None, ...]

    def to_text(self) -> str:
        """The text from which `of_text` makes it."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> WrittenFile:
        """Read the text that `to_text` gives."""
        content = json.loads(text)
        return cls(content["path"], tuple(content["partition"]))


@dataclass(frozen=True)
class TableFiles:
    """How the tasks of one write make data files; picklable, and without the library of the table's format.

    Attributes
    ----------
    table : str
        What messages call the table.
    filesystem : pyarrow.fs.FileSystem
    directory : str
        That of the table, in the file system.
    folder : str
        Within it, for the files of this write alone.
    schema : pyarrow.Schema
        Columns of the table; a field that is not nullable takes no null.
    partitions : tuple of PartitionField
    keeps_partition_columns : bool
        Whether files have the columns by whose values the table is partitioned.
    """

    table: str
    filesystem: Any
    directory: str
    folder: str
    schema: pa.Schema
    partitions: tuple[PartitionField, ...]
    keeps_partition_columns: bool

    def open_parts(self, partition: int) -> TableParts:
        """The files of one task."""
        return TableParts(self, partition)

    @property
    def file_schema(self) -> pa.Schema:
        """Columns of the files."""
        left_out = set() if self.keeps_partition_columns else {field.column for field in self.partitions}
        return pa.schema([field for field in self.schema if field.name not in left_out])

    def prepare(self) -> None:
        """Make the folder.

        Raises
        ------
        SourceError
            If it cannot be made.
        """
        with self.writing():
            self.filesystem.create_dir(f"{self.directory}/{self.folder}", recursive=True)

    def withdraw(self) -> None:
        """Remove the folder with all that tasks have written."""
        self.filesystem.delete_dir(f"{self.directory}/{self.folder}")

    def remove_all_but(self, files: Iterable[WrittenFile]) -> None:
        """Remove what attempts of tasks have written that do not count."""
        kept = {f"{self.directory}/{file.path}" for file in files}
        if not kept:
            self.withdraw()
            return
        folder = fs.FileSelector(f"{self.directory}/{self.folder}", recursive=True)
        for info in self.filesystem.get_file_info(folder):
            if info.type == fs.FileType.File and info.path not in kept:
                self.filesystem.delete_file(info.path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Let an error of the block name the table, how much room is left there, and what to do.

        Raises
        ------
        SourceError
            If the file system fails.
        """
        try:
            yield
        except FlinkcoreError:
            raise
        except (OSError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())
            raise SourceError(
                f"results cannot be written to {self.table}: {reason}. The table has none of them; give "
                f"{directory_remedy(self.directory, error)}"
            ) from error


class TableParts:
    """The files of one task, one for each partition of the table of which it has rows.

    Parameters
    ----------
    files
        Where and how.
    partition
        Number of the task, for the files' names.
    """

    def __init__(self, files: TableFiles, partition: int) -> None:
        self._files = files
        self._partition = partition
        self._written: list[WrittenFile] = []
        self._open: dict[tuple[str | None, ...], _OpenFile] = {}

    @property
    def names(self) -> dict[str | None, list[str]]:
        """The completed files of the results, as text."""
        return {None: [file.to_text() for file in self._written]}

    def open_all(self, schemas: Mapping[str | None, pa.Schema]) -> None:
        """Make nothing: a table has columns without files."""

    def write(self, tag_id: str | None, batches: Iterable[pa.RecordBatch]) -> None:
        """Append results; side outputs are left out.

        Raises
        ------
        DataError
            If a value does not fit into the table.
        SourceError
            If a file cannot be written.
        """
        for batch in batches if tag_id is None else ():
            fitting = fitting_batch(batch, self._files.schema, self._files.table)
            for values, rows in partitioned(fitting, self._files.partitions):
                self._file(values).write(rows)

    def _file(self, values: tuple[str | None, ...]) -> _OpenFile:
        if values not in self._open:
            if len(self._open) == _OPEN_FILES:
                self._close(next(iter(self._open)))
            names = [field.name for field in self._files.partitions]
            folders = [
                f"{quote(name, safe='')}={NULL_PARTITION if value is None else quote(value, safe=' ')}"
                for name, value in zip(names, values, strict=True)
            ]
            name = f"part-{self._partition:05d}-{uuid.uuid4().hex}.parquet"
            path = "/".join([self._files.folder, *folders, name])
            self._open[values] = _OpenFile(self._files, WrittenFile(path, values))
        return self._open[values]

    def _close(self, values: tuple[str | None, ...]) -> None:
        file = self._open.pop(values)
        file.close()
        self._written.append(file.written)

    def __enter__(self) -> TableParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with ExitStack() as all_of_them:  # each is closed, whichever fails
                for values in list(self._open):
                    all_of_them.callback(self._close, values)
        except SourceError:
            if error is None:
                raise


class _OpenFile:
    def __init__(self, files: TableFiles, written: WrittenFile) -> None:
        self.written = written
        self._files = files
        self._schema = files.file_schema
        path = f"{files.directory}/{written.path}"
        with files.writing():
            files.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            self._stream = files.filesystem.open_output_stream(path)
            self._writer = pq.ParquetWriter(self._stream, self._schema, compression="snappy")

    def write(self, batch: pa.RecordBatch) -> None:
        with self._files.writing():
            columns = [batch.column(name) for name in self._schema.names]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        try:
            with self._files.writing(), closing(self._stream):
                self._writer.close()
        except SourceError:
            self._writer.is_open = False  # it would try again when it is forgotten
            raise


def fitting_batch(batch: pa.RecordBatch, schema: pa.Schema, table: str) -> pa.RecordBatch:
    """Return a batch with the columns of a table, null where it has none.

    Raises
    ------
    DataError
        If a value does not fit, or a null is in a column that takes none.
    """
    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as error:
            raise DataError(
                f"column {field.name!r} does not fit into {table}, where it is {field.type}: {error}. Convert it "
                "before the key, with with_columns(...)"
            ) from error
        if not field.nullable and column.null_count:
            raise DataError(f"column {field.name!r} has a null, which {table} does not take there")
    return pa.RecordBatch.from_arrays(columns, schema.names)


def partitioned(
    batch: pa.RecordBatch, fields: tuple[PartitionField, ...]
) -> Iterator[tuple[tuple[str | None, ...], pa.RecordBatch]]:
    """Yield the rows of a batch by the values of the partition that they belong to, as text."""
    if not fields or batch.num_rows == 0:
        if batch.num_rows:
            yield (), batch
        return
    codes = np.zeros(batch.num_rows, np.int64)
    values: list[pa.Array] = []
    for field in fields:
        encoded = field.values(batch.column(field.column)).dictionary_encode(null_encoding="encode")
        _, codes = np.unique(
            codes * len(encoded.dictionary) + encoded.indices.to_numpy().astype(np.int64), return_inverse=True
        )
        values.append(encoded)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        first = int(rows[0])
        texts = tuple(
            partition_text(encoded.dictionary[encoded.indices[first].as_py()].as_py()) for encoded in values
        )
        yield texts, batch.take(pa.array(rows))


def partition_text(value: Any) -> str | None:
    """A value as the log of a Delta table has it: times in UTC with microseconds."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "hour"):
        return str(value.replace(tzinfo=None).isoformat(" ", "microseconds"))
    return format(value, "f") if hasattr(value, "quantize") else str(value)
