"""Pieces of an event log that any worker can read alone: a file or a part of it, a slice of a table."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import Filter, apply_ops, expression_columns
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.joined_batches import compacted
from flinkcore._internal.arrow.plain_columns import fitting_pieces, narrowest, plain_column, plain_type
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore.common.split_origin import FILE, PARTITION, SplitOrigin
from flinkcore.errors import SourceError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.file_format import ColumnsToRead, FileFormat


@dataclass(frozen=True)
class LogSchema:
    """The columns that all files of a log have.

    Parameters
    ----------
    schema : pyarrow.Schema
        Plain types; partition columns come last.
    origins : mapping of str to str
        Column name to the file that gave its type.
    stored : StoredColumns or None
        Columns of a table as the files store them, or None if by these names and types.
    of_conditions : pyarrow.Schema
        Columns of the table that only conditions read: the log does not have them.
    """

    schema: pa.Schema
    origins: Mapping[str, str]
    stored: StoredColumns | None = None
    of_conditions: pa.Schema = field(default_factory=lambda: pa.schema([]))

    @property
    def read(self) -> pa.Schema:
        """The columns that reading may take: those of the log, and of conditions."""
        return pa.schema([*self.schema, *self.of_conditions])


@dataclass(frozen=True)
class Chunk(ABC):
    """A self-contained, picklable piece of an event log.

    Parameters
    ----------
    index : int
        Place in the log's order.
    label : str
        Names the file and the part of it in messages.
    rows : int or None
        If known without reading.
    size_bytes : int or None
        About how much is read, if known; a share of the file for a part of it.
    first_row : int or None
        Row number in the file (from 0) of the chunk's first row; None if not known without reading.
    """

    index: int
    label: str
    rows: int | None
    size_bytes: int | None
    first_row: int | None

    @property
    def is_columnar(self) -> bool:
        """Return whether some columns are read without decoding the others."""
        return True

    @property
    def is_checked(self) -> bool:
        """Return whether reading it again may give other rows unnoticed by `read`, so that a replay compares them."""
        return False

    def read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        dictionary_columns: Sequence[str] = (),
        warnings: list[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the chunk's rows in order.

        Parameters
        ----------
        columns : sequence of str or None
            Which columns, in which order; None for all.
        batch_rows : int
            Rows of a batch at most.
        dictionary_columns : sequence of str
            Columns that may stay dictionary-encoded.
        warnings : list of str, optional
            Takes what is suspicious of the file and yet no error, by the end of the reading.

        Yields
        ------
        pyarrow.RecordBatch
            With plain types, except that a dictionary column may be a dictionary of a plain type.

        Raises
        ------
        SourceError
            If the file cannot be read to its end, or, after the last row, if a chunk that compares its rows itself has
            others than in the first pass.
        SchemaError
            If a column is missing in the file or has another type than in the log's first file.
        """
        return self._read(columns, batch_rows, dictionary_columns, warnings)

    @abstractmethod
    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        """As `read`, which has the defaults."""

    def constant(self, column: str) -> tuple[bool, Any]:
        """Return (True, value) if the column has one value in all rows, known without reading, else (False, None)."""
        return False, None

    def only_split(self, split: str | SplitOrigin | None) -> tuple[bool, Any]:
        """Return (True, value) if all rows are of one split, known without reading, else (False, None).

        Parameters
        ----------
        split : str, SplitOrigin or None
            As of `EventLog`.
        """
        if split is None:
            return True, None
        if split is FILE:
            return True, self.file_name
        if split is PARTITION:
            return True, self.path_partition
        known, value = self.constant(str(split))
        return known and value is not None, value

    @property
    def path_partition(self) -> int | str | None:
        """The partition that the file's path names, where the log is split so."""
        return None

    def rows_where(self, conditions: Sequence[Expression]) -> "Chunk":
        """Return a chunk of those rows for which all conditions are true, read as far as statistics do not decide."""
        return self

    def held(self, columns: Sequence[str]) -> "Chunk":
        """Return a chunk of the same rows, with these columns at least, that can be read more than once."""
        return self

    def row_name(self, row: int) -> str:
        """Name a row, given by its number in the chunk, as a user would look for it."""
        if self.first_row is None:
            return f"row {row} (from 0) of {self.label}"
        return f"row {self.first_row + row} (from 0) of {self.file_name}"

    @property
    @abstractmethod
    def file_name(self) -> str:
        """The file's name, or "table"."""


ChunkTask: TypeAlias = Callable[[Chunk], Iterable[bytes]]
"""Work on one chunk of a log; picklable, so that it runs anywhere."""


@dataclass(frozen=True)
class FileChunk(Chunk):
    """A file, or a run of its row groups or record batches (``pieces``, or None for all of it).

    ``where``: conditions over columns of the log, all of which are true of its rows; the file may have others.
    """

    file: LogFile
    format: FileFormat
    pieces: range | None
    log_schema: LogSchema
    where: tuple[Expression, ...] = ()

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        expected = self.log_schema.read
        names = list(self.log_schema.schema.names if columns is None else columns)
        read = self._read_by_conditions()
        encoded = [name for name in encoded if name not in read]
        taken = names + [name for name in expected.names if name in read and name not in names]
        partition = dict(self.file.partition)
        in_file = [name for name in taken if name not in partition]
        if not in_file:
            # Only partition columns are asked for: any column of the file has as many rows.
            in_file = narrowest(pa.schema([field for field in expected if field.name not in partition]))
        encoded_here = [name for name in encoded if name in in_file]
        to_read = ColumnsToRead(
            pa.schema([expected.field(name) for name in in_file]),
            self.log_schema.origins,
            tuple(encoded_here),
            batch_rows,
            [] if warnings is None else warnings,
            None if warnings is None or self.log_schema.stored is not None else self.log_schema.schema,
            self.log_schema.stored,
            self.where,
        )
        self.file.check_unchanged()
        conditions = [Filter(condition) for condition in self.where]
        try:
            for batch in self._batches(taken, to_read, batch_rows):
                yield apply_ops(conditions, batch)[0].select(names) if conditions else batch
        except SourceError:
            self.file.check_unchanged()  # which says more than what the reader stumbled over
            raise
        self.file.check_unchanged()

    def _read_by_conditions(self) -> frozenset[str]:
        read: frozenset[str] = frozenset()
        for condition in self.where:
            of_one = expression_columns(condition)
            read |= frozenset(self.log_schema.read.names) if of_one is None else of_one
        return read

    def _batches(
        self, names: Sequence[str], to_read: ColumnsToRead, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        partition = dict(self.file.partition)
        encoded = to_read.dictionary_columns
        schema, in_file = self.log_schema.read, to_read.names
        batches = self.format.batches(self.file, self.pieces, to_read)
        decoded = [name for name in in_file if name not in encoded]
        for batch in _fitting(_even(batches, batch_rows, self.label), decoded, self.label):
            arrays = []
            for name in names:
                field = schema.field(name)
                if name in partition:
                    arrays.append(pa.repeat(pa.scalar(self.constant(name)[1], field.type), batch.num_rows))
                    continue
                column = batch.column(name)
                arrays.append(
                    column if _stays(column, name, encoded, field.type) else plain_column(column, field.type)
                )
            yield _record_batch(arrays, list(names))

    @property
    def is_checked(self) -> bool:
        return True

    def rows_where(self, conditions: Sequence[Expression]) -> Chunk:
        return replace(self, where=(*self.where, *conditions))

    def constant(self, column: str) -> tuple[bool, Any]:
        for name, value in self.file.partition:
            if name == column:
                integer = value is not None and pa.types.is_int64(self.log_schema.read.field(name).type)
                return True, int(value) if integer and value is not None else value
        return False, None

    @property
    def file_name(self) -> str:
        return self.file.name

    @property
    def path_partition(self) -> int | str | None:
        return self.file.split

    @property
    def is_columnar(self) -> bool:
        return self.format.is_columnar


@dataclass(frozen=True)
class TableChunk(Chunk):
    """A slice of an in-memory table."""

    table: pa.Table

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        table = self.table if columns is None else self.table.select(list(columns))
        decoded = [name for name in table.column_names if name not in encoded]
        batches = _even(iter(table.to_batches(max_chunksize=batch_rows)), batch_rows, self.label)
        for batch in _fitting(batches, decoded, self.label):
            arrays = [
                column
                if _stays(column, name, encoded, plain_type(column.type))
                else plain_column(column, plain_type(column.type))
                for name, column in zip(table.column_names, batch.columns, strict=True)
            ]
            yield _record_batch(arrays, table.column_names)

    @property
    def file_name(self) -> str:
        return "the table"

    def __getstate__(self) -> dict[str, Any]:
        # The IPC stream holds the slice only; pyarrow's own pickle takes the whole table's buffers along.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return {**self.__dict__, "table": sink.getvalue().to_pybytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, table=pa.ipc.open_stream(state["table"]).read_all())


def _stays(column: pa.Array, name: str, encoded: Sequence[str], plain: pa.DataType) -> bool:
    return name in encoded and pa.types.is_dictionary(column.type) and column.type.value_type == plain


def _record_batch(arrays: list[pa.Array], names: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, names)


def _fitting(
    batches: Iterable[pa.RecordBatch], decoded: Collection[str], label: str
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from fitting_pieces(batch, decoded, label)


def _even(batches: Iterator[pa.RecordBatch], batch_rows: int, label: str) -> Iterator[pa.RecordBatch]:
    """Cut batches that are too long, join those that are much too short, drop those without rows.

    Columns whose dictionaries have no common one are plain where they are joined.
    """
    short: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if held and held + batch.num_rows > batch_rows:
            yield from _joined(short, label)
            short, held = [], 0
        if batch.num_rows < batch_rows // 4:
            short.append(batch)
            held += batch.num_rows
            continue
        if held:
            yield from _joined(short, label)
            short, held = [], 0
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)
    yield from _joined(short, label)


def _joined(batches: list[pa.RecordBatch], label: str) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    table = compacted(pa.Table.from_batches(batches))
    apart = frozenset(name for name in table.column_names if table.column(name).num_chunks > 1)
    if apart:  # their dictionaries have no common one
        pieces = _fitting(table.to_batches(), apart, label)
        table = compacted(pa.Table.from_batches([_with_plain(piece, apart) for piece in pieces]))
    return table.to_batches()  # type: ignore[no-any-return]


def _with_plain(batch: pa.RecordBatch, names: frozenset[str]) -> pa.RecordBatch:
    arrays = [
        plain_column(column, plain_type(column.type)) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return _record_batch(arrays, batch.schema.names)
