"""Data files of a table of a lake as tasks write them: in a folder of the write, apart by the values of partitions."""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import date
from functools import partial
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from flinkcore._internal.arrow.required_values import refused_null
from flinkcore.columnar.outputs.result_files import close_all, writing_results
from flinkcore.errors import DataError, SourceError
from flinkcore.log.files.log_files import NULL_PARTITION

_EPOCH: Final = date(1970, 1, 1).toordinal()

_OPEN_FILES: Final = 100
"""A task closes the file that it opened first when it would have more."""

_LONGEST_NAME: Final = 255
"""Bytes of a directory's name. Tables know the values of partitions by their metadata; directories only show them."""

_SECONDS: Final = {"day": 86_400, "hour": 3_600}
_TICKS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_YEARS_1_TO_9999: Final = range(date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH + 1)
"""Days since 1970 that text, Python and Spark have."""


@dataclass(frozen=True)
class PartitionField:
    """Partition field of a table.

    Attributes
    ----------
    name : str
        Name of the field, as directories have it.
    column : str
        Whose values give it.
    transform : str
        "identity"; or "year", "month", "day" or "hour": how many have begun since 1970.
    """

    name: str
    column: str
    transform: str = "identity"

    def values(self, column: pa.Array) -> pa.Array:
        """Return the field's values for those of the column."""
        if self.transform == "identity":
            return column
        if self.transform == "hour":
            return _begun(column, "hour")
        days = _begun(column, "day")
        if self.transform == "day":
            return days
        years = pc.subtract(pc.year(days.cast(pa.date32())), 1970)
        if self.transform == "month":
            years = pc.add(pc.multiply(years, 12), pc.subtract(pc.month(days.cast(pa.date32())), 1))
        return years.cast(pa.int32())


def _begun(column: pa.Array, unit: str) -> pa.Array:
    """Return how many days or hours have begun since 1970 at each date or time."""
    numbers = column.cast(f"int{column.type.bit_width}")
    begun = numbers.fill_null(0).to_numpy() // _ticks(column.type, unit)
    return pa.array(begun.astype(np.int32), mask=numbers.is_null().to_numpy(zero_copy_only=False))


def _ticks(kind: pa.DataType, unit: str) -> int:
    return 1 if pa.types.is_date32(kind) else _SECONDS[unit] * _TICKS[kind.unit]


@dataclass(frozen=True)
class WrittenFile:
    """A data file that a task has completed.

    Attributes
    ----------
    path : str
        Within the table's directory.
    partition : tuple of pyarrow.Scalar
        The values of its partition.
    """

    path: str
    partition: tuple[pa.Scalar, ...]

    def to_text(self) -> str:
        """Return the text from which `of_text` makes it."""
        names = [str(number) for number in range(len(self.partition))]
        values = pa.RecordBatch.from_arrays([pa.repeat(value, 1) for value in self.partition], names)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, values.schema) as writer:
            writer.write_batch(values)
        partition = base64.b64encode(stream.getvalue()).decode()
        return json.dumps({"path": self.path, "partition": partition})

    @classmethod
    def of_text(cls, text: str) -> WrittenFile:
        """Read the text that `to_text` gives."""
        content = json.loads(text)
        with pa.ipc.open_stream(base64.b64decode(content["partition"])) as reader:
            values = reader.read_next_batch()
        return cls(content["path"], tuple(column[0] for column in values.columns))


@dataclass(frozen=True)
class TableFiles:
    """Files of one write, which its tasks make; picklable, and without the library of the table's format.

    Attributes
    ----------
    table : str
        Name of the table in messages.
    filesystem : pyarrow.fs.FileSystem
    directory : str
        Directory of the table, in the file system.
    folder : str
        Within it, for the files of this write alone.
    schema : pyarrow.Schema
        Columns of the table; a field that is not nullable takes no null.
    partitions : tuple of PartitionField
    keeps_partition_columns : bool
        Whether files have the columns by whose values the table is partitioned; otherwise their values are text
        alone, where an empty one is null.
    """

    table: str
    filesystem: Any
    directory: str
    folder: str
    schema: pa.Schema
    partitions: tuple[PartitionField, ...]
    keeps_partition_columns: bool

    def open_parts(self, partition: int) -> TableParts:
        """Return the files of one task."""
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

    def writing(self) -> AbstractContextManager[None]:
        """Let an error of the block name the table: see `writing_results`."""
        return writing_results(self.table, self.directory, "The table has none of them")


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
        self._open: dict[tuple[pa.Scalar, ...], _OpenFile] = {}

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
            for values, rows in partitioned(fitting, self._files.partitions, self._files.table):
                self._file(values).write(rows)

    def _file(self, values: tuple[pa.Scalar, ...]) -> _OpenFile:
        if values not in self._open:
            if len(self._open) == _OPEN_FILES:
                self._close(next(iter(self._open)))
            folders = [
                self._folder(field, value)
                for field, value in zip(self._files.partitions, values, strict=True)
            ]
            name = f"part-{self._partition:05d}-{uuid.uuid4().hex}.parquet"
            path = "/".join([self._files.folder, *folders, name])
            self._open[values] = _OpenFile(self._files, WrittenFile(path, values))
        return self._open[values]

    def _folder(self, field: PartitionField, value: pa.Scalar) -> str:
        text = partition_text(value)
        if text == "" and not self._files.keeps_partition_columns:
            raise DataError(
                f"column {field.column!r} has an empty text, which {self._files.table} reads as null in a partition: "
                "write null or another text in its place, or partition by another column",
                column=field.column,
            )
        name = NULL_PARTITION if text is None else quote(text, safe=" ")
        folder = f"{quote(field.name, safe='')}={name}"
        return re.sub("%.?$", "", folder[:_LONGEST_NAME])

    def _close(self, values: tuple[pa.Scalar, ...]) -> None:
        file = self._open.pop(values)
        file.close()
        self._written.append(file.written)

    def __enter__(self) -> TableParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close_all([partial(self._close, values) for values in self._open], error is not None)


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
        place = refused_null(column, field)
        if place is not None:
            raise DataError(f"column {place!r} has a null, which {table} does not take there", column=place)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as error:
            raise DataError(
                f"column {field.name!r} does not fit into {table}, where it is {field.type}: {error}. Convert it "
                "before the key, with with_columns(...)",
                column=field.name,
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema.names)


def partitioned(
    batch: pa.RecordBatch, fields: tuple[PartitionField, ...], table: str
) -> Iterator[tuple[tuple[pa.Scalar, ...], pa.RecordBatch]]:
    """Yield the rows of a batch by the values of the partition that they belong to.

    Raises
    ------
    DataError
        If a day is not of the years 1 to 9999.
    """
    if batch.num_rows == 0:
        return
    if not fields:
        yield (), batch
        return
    codes = np.zeros(batch.num_rows, np.int64)
    values: list[pa.Array] = []
    for field in fields:
        column = batch.column(field.column)
        _require_known_years(column, field.column, table)
        encoded = field.values(column).dictionary_encode(null_encoding="encode")
        _, codes = np.unique(
            codes * len(encoded.dictionary) + encoded.indices.to_numpy().astype(np.int64), return_inverse=True
        )
        values.append(encoded)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        first = int(rows[0])
        yield (
            tuple(encoded.dictionary[encoded.indices[first].as_py()] for encoded in values),
            batch.take(pa.array(rows)),
        )


def _require_known_years(column: pa.Array, name: str, table: str) -> None:
    if not pa.types.is_date(column.type) and not pa.types.is_timestamp(column.type):
        return
    ends = pc.min_max(column.cast(f"int{column.type.bit_width}")).as_py()
    days = [end // _ticks(column.type, "day") for end in ends.values() if end is not None]
    if any(day not in _YEARS_1_TO_9999 for day in days):
        raise DataError(
            f"column {name!r} has a day that is not of the years 1 to 9999, for which {table} has no partition: write "
            "null or another day in its place, or partition by another column",
            column=name,
        )


def partition_text(value: pa.Scalar) -> str | None:
    """Return a value as the log of a Delta table has it: times in UTC with microseconds."""
    [text] = partition_texts(pa.repeat(value, 1))
    return text


def partition_texts(values: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Values as `partition_text` gives each."""
    kind = values.type
    if pa.types.is_decimal(kind):  # Arrow's text may have an exponent
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp(kind.unit))
    texts: list[str | None] = values.cast(pa.string()).to_pylist()
    return texts


def bounds(footer: Any, at: int) -> list[tuple[Any, Any]] | None:
    """Return the least and greatest value of a column in each row group with statistics; None if Python lacks some."""
    told = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
    try:
        return [(each.min, each.max) for each in told if each is not None and each.has_min_max]
    except (OverflowError, ValueError):  # a day of year 10000
        return None
